"""An embedded cloud on loopback (Cloud Storage, IAM, Memorystore), with scripted faults and a journal of effects.

It shares no code with the rest of forbear, so that it cannot share its mistakes. Needs `forbear[cloud]`.
"""

from forbear.testing.cloud.faults.fault import Fault
from forbear.testing.cloud.faults.plan import Storm, storm
from forbear.testing.cloud.server import Cloud, serve

__all__ = ["Cloud", "Fault", "Storm", "serve", "storm"]
