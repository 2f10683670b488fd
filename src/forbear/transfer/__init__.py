"""Transfers to and from Cloud Storage that survive faults, the death of their process and restarts of the machine.

Needs `forbear[transfer]`. `cp`, `rsync` and `plan` block. `acp`, `arsync`, `aplan`, and `upload`, `download` and `copy`
for one object each, are async and take an open `Storage`. `execute` runs the items of a plan on an executor of
concurrent.futures.
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
from forbear.transfer.items import Action, Item, Outcome, Status, Summary
from forbear.transfer.metadata import MetadataOptions, ObjectMetadata
from forbear.transfer.objects import Object, Url
from forbear.transfer.progress import (
    Finished,
    Listener,
    Moved,
    Planned,
    Retried,
    Sized,
    Started,
    TransferEvent,
    Warned,
    listening,
)
from forbear.transfer.rewrite import copy
from forbear.transfer.storage.client import Settings, Storage
from forbear.transfer.storage.credentials import ANONYMOUS, Credentials
from forbear.transfer.uploads.upload import upload

__all__ = [
    "ANONYMOUS",
    "Action",
    "ChecksumMismatch",
    "Credentials",
    "Finished",
    "HttpError",
    "Item",
    "Listener",
    "Locked",
    "MetadataOptions",
    "Moved",
    "NoCredentials",
    "Object",
    "ObjectMetadata",
    "Outcome",
    "Planned",
    "Retried",
    "Settings",
    "Sized",
    "SourceChanged",
    "Stalled",
    "Started",
    "Status",
    "Storage",
    "Summary",
    "TargetChanged",
    "TargetExists",
    "TransferError",
    "TransferEvent",
    "UnsafeName",
    "Url",
    "Warned",
    "acp",
    "aplan",
    "arsync",
    "copy",
    "cp",
    "download",
    "execute",
    "listening",
    "perform_one",
    "plan",
    "rsync",
    "upload",
]
