"""Transfers to and from Cloud Storage that survive faults, the death of their process and restarts of the machine.

Needs `forbear[transfer]`.
"""

from forbear.transfer.cloud.address import Url
from forbear.transfer.cloud.credentials import ANONYMOUS, Credentials
from forbear.transfer.cloud.objects import Object
from forbear.transfer.cloud.settings import Settings
from forbear.transfer.cloud.storage import Storage
from forbear.transfer.commands import acp, aplan, arsync, cp, plan, rsync
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
from forbear.transfer.execution import execute, perform_one
from forbear.transfer.items import Action, Item, Listener, Outcome, Status, Summary
from forbear.transfer.meter import Meter

__all__ = [
    "ANONYMOUS",
    "Action",
    "ChecksumMismatch",
    "Credentials",
    "HttpError",
    "Item",
    "Listener",
    "Locked",
    "Meter",
    "Object",
    "Outcome",
    "Settings",
    "SourceChanged",
    "Stalled",
    "Status",
    "Storage",
    "Summary",
    "TargetChanged",
    "TargetExists",
    "TransferError",
    "UnsafeName",
    "Url",
    "acp",
    "aplan",
    "arsync",
    "cp",
    "execute",
    "perform_one",
    "plan",
    "rsync",
]
