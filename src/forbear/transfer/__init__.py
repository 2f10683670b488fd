"""Transfers to and from Cloud Storage that survive faults, the death of their process and restarts of the machine.

Needs `forbear[transfer]`. `cp`, `rsync` and `plan` block; `acp`, `arsync` and `aplan`, and `upload`, `download` and
`copy` for one object each, are awaited and take an open `Storage`. `execute` does what was planned on any executor.
"""

from forbear.transfer.downloads.download import download
from forbear.transfer.errors import (
    ChecksumMismatch,
    HttpError,
    Locked,
    NoCredentials,
    SourceChanged,
    Stalled,
    TargetChanged,
    TargetExists,
    TransferError,
    UnsafeName,
)
from forbear.transfer.execution import execute, perform_one
from forbear.transfer.functions import acp, aplan, arsync, cp, plan, rsync
from forbear.transfer.items import Action, Item, Listener, Outcome, QuietListener, Status, Summary
from forbear.transfer.objects import Object, Url
from forbear.transfer.progress import Meter, QuietMeter, current_meter
from forbear.transfer.rewrite import copy
from forbear.transfer.storage.client import Settings, Storage
from forbear.transfer.storage.credentials import ANONYMOUS, Credentials
from forbear.transfer.uploads.upload import upload

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
    "NoCredentials",
    "Object",
    "Outcome",
    "QuietListener",
    "QuietMeter",
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
    "copy",
    "cp",
    "current_meter",
    "download",
    "execute",
    "perform_one",
    "plan",
    "rsync",
    "upload",
]
