"""`hashes`: the CRC32C and MD5 of local files, which are read, and of objects, for which the service states them."""

import base64
import hashlib
import os
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from forbear.adapters import dataclass
from forbear_transfer.checksum import Crc32c
from forbear_transfer.commands.selection import check_addresses, objects_at
from forbear_transfer.encryption import EncryptionKey, Keys, check_keys
from forbear_transfer.errors import SourceChanged, StrPath, TransferError, unreadable
from forbear_transfer.files import PIECE, identify
from forbear_transfer.objects import Url, check_scheme, is_cloud
from forbear_transfer.plans.matches import expand
from forbear_transfer.plans.sources import Source, parse_source
from forbear_transfer.runs import list_blocking
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.storage.credentials import ANONYMOUS
from forbear_transfer.threads import in_thread

_FOLDER = "name a file or an object in it"


@dataclass(frozen=True, slots=True)
class FileHashes:
    """The size in bytes and the hashes, in base64, of a file or of one version of an object.

    `md5` is None for a composite object, `generation` for a file. Both hashes are None for an object whose
    customer-supplied key was not named. Example: see `hashes`.
    """

    name: str
    size: int
    crc32c: str | None
    md5: str | None
    generation: int | None = None


def hashes(
    names: StrPath | Sequence[StrPath],
    *,
    literal: bool | None = None,
    decryption_keys: Keys | None = None,
    settings: Settings | None = None,
) -> list[FileHashes]:
    """Return the hashes of the files and objects that `names` name, which may have the wildcards of `cp`.

    `literal` is that of `cp`. `decryption_keys` are the customer-supplied keys that objects may have.

    TransferError for a name that is no file or object, or a file that cannot be read. SourceChanged for a file that is
    written meanwhile. ValueError for an invalid address. RuntimeError inside a running event loop, since it blocks.

    >>> [each.crc32c for each in hashes(["photos/1.jpg", "gs://my-bucket/photos/1.jpg"])]
    ['89FYKg==', '89FYKg==']
    """
    checked, keys = list_names(names, literal), check_keys(decryption_keys)

    if not any(is_cloud(name) for name in checked):
        settings = Settings(credentials=ANONYMOUS)  # files need no credentials
    found = partial(ahashes, names=checked, literal=literal, decryption_keys=keys)
    return list_blocking(settings, found, "ahashes")


async def ahashes(
    storage: Storage,
    names: StrPath | Sequence[StrPath],
    *,
    literal: bool | None = None,
    decryption_keys: Keys | None = None,
) -> AsyncGenerator[FileHashes]:
    """Yield over an open Storage what `hashes` returns, one file or object after the other. Example: see `hashes`."""
    keys = check_keys(decryption_keys)
    for name in list_names(names, literal):
        if is_cloud(name):
            async for one in _hash_objects(storage, name, literal, keys):
                yield one
        else:
            for path in _find_paths(parse_source(name, literal)):
                yield await in_thread(hash_file, path)  # which may be endless, such as a pipe


def list_names(names: StrPath | Sequence[StrPath], literal: bool | None = None) -> tuple[str, ...]:
    """Return the names as a tuple of texts; ValueError if there is none, one is empty, or an address is not valid."""
    texts = tuple(os.fspath(name) for name in ((names,) if isinstance(names, str | os.PathLike) else names))
    if not texts or not all(texts):
        raise ValueError("`names` must name at least one file or object, and none may be empty; name one")
    for text in texts:
        check_scheme("names", text)
        if is_cloud(text):
            check_addresses(text, "names", literal)
    return texts


def hash_file(path: str) -> FileHashes:
    """Read a file and return its hashes. TransferError if it cannot be read, SourceChanged if it changes meanwhile."""
    if os.path.isdir(path):
        raise TransferError(f"{path} is a folder", "use a pattern with ** for what lies in it")
    crc32c, md5 = Crc32c(), hashlib.md5(usedforsecurity=False)
    try:
        with open(path, "rb", buffering=0) as file:
            before = os.fstat(file.fileno())
            while data := file.read(PIECE):
                crc32c.update(data)
                md5.update(data)
            after = os.fstat(file.fileno())
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if identify(before) != identify(after):
        raise SourceChanged(f"{path} changed while it was read")
    return FileHashes(path, crc32c.size, crc32c.text, base64.b64encode(md5.digest()).decode())


def _find_paths(source: Source) -> list[str]:
    if not source.wild:
        return [source.text]
    paths = [path for path in expand(source.text) if os.path.isfile(path)]
    if not paths:
        raise TransferError(f"no file matches {source.text}", "quote the pattern if the shell may have read it")
    return paths


async def _hash_objects(
    storage: Storage, address: str, literal: bool | None, keys: Sequence[EncryptionKey]
) -> AsyncGenerator[FileHashes]:
    async for _, listed in objects_at(storage, [address], literal=literal, cure=_FOLDER):
        there = await storage.completed(listed, keys)
        yield FileHashes(str(Url(there.bucket, there.name)), there.size, there.crc32c, there.md5, there.generation)
