"""An embedded cloud on loopback: Cloud Storage, IAM and Memorystore, with scripted faults and a journal of effects.

It shares no code with forbear, so that it cannot share its mistakes. `python -m forbear_cloud` serves one.
"""

from forbear_cloud.faults.fault import Fault
from forbear_cloud.faults.plan import RandomFaults, random_faults
from forbear_cloud.server import Cloud, serve

__all__ = ["Cloud", "Fault", "RandomFaults", "random_faults", "serve"]
