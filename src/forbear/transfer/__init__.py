"""Transfers to and from Cloud Storage that survive faults, the death of their process and restarts of the machine.

Needs `forbear[transfer]`. `cp`, `rsync` and `plan` block. `acp`, `arsync`, `aplan`, and `upload`, `download` and `copy`
for one object each, are async and take an open `Storage`. `execute` runs the items of a plan on an executor of
concurrent.futures. `ls`, `du`, `stat`, `cat`, `hashes`, `check`, `mv` and `rm` work on gs:// addresses and block;
`als`, `adu` and so on take an open `Storage`.
"""

from forbear.transfer.commands.comparison import CheckResult, CheckStatus, acheck, check
from forbear.transfer.commands.hashing import FileHashes, ahashes, hashes
from forbear.transfer.commands.listing import Usage, adu, als, du, ls
from forbear.transfer.commands.metadata import ObjectDetails, astat, stat
from forbear.transfer.commands.moving import amv, mv
from forbear.transfer.commands.reading import acat, cat
from forbear.transfer.commands.removal import arm, rm
from forbear.transfer.downloads.download import download
from forbear.transfer.encryption import EncryptionKey, EncryptionOptions, ObjectEncryption
from forbear.transfer.errors import (
    ChecksumMismatch,
    HttpError,
    Locked,
    NoCredentials,
    NoEncryptionKey,
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
    "CheckResult",
    "CheckStatus",
    "ChecksumMismatch",
    "Credentials",
    "EncryptionKey",
    "EncryptionOptions",
    "FileHashes",
    "Finished",
    "HttpError",
    "Item",
    "Listener",
    "Locked",
    "MetadataOptions",
    "Moved",
    "NoCredentials",
    "NoEncryptionKey",
    "Object",
    "ObjectDetails",
    "ObjectEncryption",
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
    "Usage",
    "Warned",
    "acat",
    "acheck",
    "acp",
    "adu",
    "ahashes",
    "als",
    "amv",
    "aplan",
    "arm",
    "arsync",
    "astat",
    "cat",
    "check",
    "copy",
    "cp",
    "download",
    "du",
    "execute",
    "hashes",
    "listening",
    "ls",
    "mv",
    "perform_one",
    "plan",
    "rm",
    "rsync",
    "stat",
    "upload",
]
