"""`cat`: write objects, or a range of their bytes, to a stream.

After a broken connection, the rest is requested from the same version. Whole objects are verified by their CRC32C. For
a range the service states no checksum, so only its length is verified.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import BinaryIO, Self

from forbear.adapters import dataclass
from forbear_transfer.commands.selection import check_addresses, objects_at
from forbear_transfer.downloads.download import download
from forbear_transfer.downloads.fetch import Fetch, Gone, Unsliceable
from forbear_transfer.downloads.sinks import RangeSink
from forbear_transfer.encryption import EncryptionKey, Keys, check_keys
from forbear_transfer.errors import SourceChanged, TransferError
from forbear_transfer.objects import Object
from forbear_transfer.runs import run_blocking
from forbear_transfer.storage.client import Settings, Storage

_RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18})")
_FOLDER = "name an object in it, or use a pattern such as gs://bucket/folder/*"


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A range of bytes: from `first` to `last` (included; None: the end), or the `suffix` last bytes."""

    first: int = 0
    last: int | None = None
    suffix: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the range for "FIRST-LAST", "FIRST-" or "-COUNT"; ValueError for other texts and backward ranges."""
        match = _RANGE.fullmatch(text)
        if match is not None:
            first, last, suffix = (None if digits is None else int(digits) for digits in match.groups())
            if first is None or last is None or first <= last:
                return cls(first or 0, last, suffix)
        raise ValueError(
            f"`byte_range` must be FIRST-LAST (FIRST <= LAST), FIRST- or -COUNT, in bytes from 0 on, got {text!r}; "
            "write 0-99, 100- or -100"
        )

    def within(self, version: Object) -> tuple[int, int]:
        """Return the first byte of the range in an object and the byte after its last; the end is cut at its size.

        TransferError if the range begins after the end of the object.
        """
        size = version.size
        if self.suffix is not None:
            return max(size - self.suffix, 0), size
        if self.first > size or (self.first == size and size):
            what = f"{version.url} has {size} bytes, and the range begins at byte {self.first}"
            raise TransferError(what, "begin at a byte before its end, or use -COUNT for the last bytes")
        return self.first, size if self.last is None else min(self.last + 1, size)


def cat(
    addresses: str | Sequence[str],
    stream: BinaryIO,
    *,
    byte_range: str | None = None,
    literal: bool | None = None,
    decryption_keys: Keys | None = None,
    settings: Settings | None = None,
) -> list[Object]:
    """Write the objects that `addresses` name to a binary stream, one after the other; return the versions read.

    An address may have the wildcards of `cp`, with its `literal`. `byte_range` is "FIRST-LAST", "FIRST-" or "-COUNT",
    in stored bytes counted from 0, of each object. Without it, gzip is decoded as in `download`, and every object is
    verified by its CRC32C. A connection that breaks is continued with the same version. `decryption_keys` are the
    customer-supplied keys that the objects may have.

    The first failure ends it, with the errors of `download`, so that nothing follows a gap. ValueError for invalid
    arguments. RuntimeError inside a running event loop, since it blocks.

    >>> import io
    >>> stream = io.BytesIO()
    >>> [read] = cat("gs://my-bucket/photos/1.jpg", stream)
    >>> stream.getvalue()
    b'photo 1'
    """
    names, keys = cat_addresses(addresses, byte_range, literal), check_keys(decryption_keys)

    async def read(storage: Storage) -> list[Object]:
        return await acat(storage, names, stream, byte_range=byte_range, literal=literal, decryption_keys=keys)

    return run_blocking(settings, read, "acat")


async def acat(
    storage: Storage,
    addresses: str | Sequence[str],
    stream: BinaryIO,
    *,
    byte_range: str | None = None,
    literal: bool | None = None,
    decryption_keys: Keys | None = None,
) -> list[Object]:
    """Do what `cat` does over an open Storage and without blocking; return the versions that were read.

    Example: see `cat`.
    """
    names = cat_addresses(addresses, byte_range, literal)
    part, keys = None if byte_range is None else ByteRange.parse(byte_range), check_keys(decryption_keys)
    read: list[Object] = []
    async for address, there in objects_at(storage, names, literal=literal, cure=_FOLDER):
        if part is None:
            version = there if address.generation is None else address
            read.append(await download(storage, version, stream, decryption_keys=keys))
        else:
            await _write_range(storage, there, stream, part, keys)
            read.append(there)
    return read


def cat_addresses(
    addresses: str | Sequence[str], byte_range: str | None, literal: bool | None = None
) -> tuple[str, ...]:
    """Return the addresses of `cat` as a tuple; ValueError if one, or the range, is not valid."""
    if byte_range is not None:
        ByteRange.parse(byte_range)
    return check_addresses(addresses, literal=literal)


async def _write_range(
    storage: Storage, version: Object, stream: BinaryIO, part: ByteRange, keys: Sequence[EncryptionKey]
) -> None:
    version = await storage.completed(version, keys)
    first, end = part.within(version)
    if first == end:
        return
    fetch = Fetch(storage, version, decode=False, keys=keys)
    sink = RangeSink(stream, str(getattr(stream, "name", "the stream")), first, end)
    try:
        if end - first == version.size and version.crc32c is not None:
            await fetch.fill_verified(sink, partial(fetch.fill, sink), None, restarts=0)
        else:
            await fetch.fill(sink)
    except Unsliceable:
        raise TransferError(f"{version.url}: the server does not send ranges of it", "read the whole object") from None
    except Gone as gone:
        raise SourceChanged(f"{version.url} was replaced or deleted while it was read", "start again") from gone.error
    await sink.finish()
