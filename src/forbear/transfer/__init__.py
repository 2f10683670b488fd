"""Transfers to and from Cloud Storage that survive faults, the death of their process and restarts of the machine.

Needs `forbear[transfer]`.
"""

from forbear.transfer.address import Url
from forbear.transfer.credentials import ANONYMOUS, Credentials
from forbear.transfer.errors import (
    ChecksumMismatch,
    HttpError,
    Locked,
    SourceChanged,
    Stalled,
    TargetChanged,
    TargetExists,
    TransferError,
    UnsafeName,
)
from forbear.transfer.meter import Meter
from forbear.transfer.objects import Object
from forbear.transfer.storage import Storage

__all__ = [
    "ANONYMOUS",
    "ChecksumMismatch",
    "Credentials",
    "HttpError",
    "Locked",
    "Meter",
    "Object",
    "SourceChanged",
    "Stalled",
    "Storage",
    "TargetChanged",
    "TargetExists",
    "TransferError",
    "UnsafeName",
    "Url",
]
