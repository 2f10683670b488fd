"""Transfers to and from Cloud Storage that survive faults, the death of their process and restarts of the machine.

Needs `forbear[transfer]`. `cp`, `rsync` and `plan` block. `acp`, `arsync`, `aplan`, and `upload`, `download` and `copy`
for one object each, are async and take an open `Storage`. `execute` runs the items of a plan on an executor of
concurrent.futures. `ls`, `du`, `stat`, `cat`, `hashes`, `check`, `mv` and `rm` work on gs:// addresses and block;
`als`, `adu` and so on take an open `Storage`.
"""

from forbear.adapters import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear_transfer.commands.comparison import CheckResult, CheckStatus, acheck, check
    from forbear_transfer.commands.hashing import FileHashes, ahashes, hashes
    from forbear_transfer.commands.listing import Usage, adu, als, du, ls
    from forbear_transfer.commands.metadata import ObjectDetails, astat, stat
    from forbear_transfer.commands.moving import amv, mv
    from forbear_transfer.commands.reading import acat, cat
    from forbear_transfer.commands.removal import arm, rm
    from forbear_transfer.downloads.download import download
    from forbear_transfer.encryption import EncryptionKey, EncryptionOptions, ObjectEncryption
    from forbear_transfer.errors import (
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
    from forbear_transfer.execution import execute, perform_one
    from forbear_transfer.functions import acp, aplan, arsync, cp, plan, rsync
    from forbear_transfer.items import Action, Item, Outcome, Status, Summary
    from forbear_transfer.metadata import MetadataOptions, ObjectMetadata
    from forbear_transfer.objects import Object, Url
    from forbear_transfer.progress import (
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
    from forbear_transfer.rewrite import copy
    from forbear_transfer.storage.client import Settings, Storage
    from forbear_transfer.storage.credentials import ANONYMOUS, Credentials
    from forbear_transfer.uploads.upload import upload

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

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "ANONYMOUS": "storage.credentials",
            "Action": "items",
            "CheckResult": "commands.comparison",
            "CheckStatus": "commands.comparison",
            "ChecksumMismatch": "errors",
            "Credentials": "storage.credentials",
            "EncryptionKey": "encryption",
            "EncryptionOptions": "encryption",
            "FileHashes": "commands.hashing",
            "Finished": "progress",
            "HttpError": "errors",
            "Item": "items",
            "Listener": "progress",
            "Locked": "errors",
            "MetadataOptions": "metadata",
            "Moved": "progress",
            "NoCredentials": "errors",
            "NoEncryptionKey": "errors",
            "Object": "objects",
            "ObjectDetails": "commands.metadata",
            "ObjectEncryption": "encryption",
            "ObjectMetadata": "metadata",
            "Outcome": "items",
            "Planned": "progress",
            "Retried": "progress",
            "Settings": "storage.client",
            "Sized": "progress",
            "SourceChanged": "errors",
            "Stalled": "errors",
            "Started": "progress",
            "Status": "items",
            "Storage": "storage.client",
            "Summary": "items",
            "TargetChanged": "errors",
            "TargetExists": "errors",
            "TransferError": "errors",
            "TransferEvent": "progress",
            "UnsafeName": "errors",
            "Url": "objects",
            "Usage": "commands.listing",
            "Warned": "progress",
            "acat": "commands.reading",
            "acheck": "commands.comparison",
            "acp": "functions",
            "adu": "commands.listing",
            "ahashes": "commands.hashing",
            "als": "commands.listing",
            "amv": "commands.moving",
            "aplan": "functions",
            "arm": "commands.removal",
            "arsync": "functions",
            "astat": "commands.metadata",
            "cat": "commands.reading",
            "check": "commands.comparison",
            "copy": "rewrite",
            "cp": "functions",
            "download": "downloads.download",
            "du": "commands.listing",
            "execute": "execution",
            "hashes": "commands.hashing",
            "listening": "progress",
            "ls": "commands.listing",
            "mv": "commands.moving",
            "perform_one": "execution",
            "plan": "functions",
            "rm": "commands.removal",
            "rsync": "functions",
            "stat": "commands.metadata",
            "upload": "uploads.upload",
        },
    )
