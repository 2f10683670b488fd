"""An embedded cloud on loopback: Cloud Storage, IAM and Memorystore, with scripted faults and a journal of effects.

It shares no code with forbear, so that it cannot share its mistakes. `python -m forbear_cloud` serves one.
"""

import warnings

from forbear_cloud.faults.fault import Fault
from forbear_cloud.faults.plan import RandomFaults, random_faults
from forbear_cloud.server import Cloud, serve

__all__ = ["Cloud", "Fault", "RandomFaults", "random_faults", "serve"]

_RENAMED = {"Storm": "RandomFaults", "storm": "random_faults"}


def __getattr__(name: str) -> object:
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = _RENAMED[name]
    warnings.warn(f"`{__name__}.{name}` is deprecated: use `{new}`", DeprecationWarning, stacklevel=2)
    return globals()[new]
