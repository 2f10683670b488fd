"""An embedded cloud on loopback (Cloud Storage, IAM, Memorystore), with scripted faults and a journal of effects.

It shares no code with the rest of forbear, so that it cannot share its mistakes. Needs `forbear[cloud]`.
"""

from forbear.testing.cloud.faults import Fault
from forbear.testing.cloud.serve import serve
from forbear.testing.cloud.server import Cloud
from forbear.testing.cloud.storm import Storm, storm

__all__ = ["Cloud", "Fault", "Storm", "serve", "storm"]
