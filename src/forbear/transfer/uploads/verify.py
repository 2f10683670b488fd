"""Verify: whether what arrived is what was sent, by its checksum; what is not is not left behind."""

from forbear.transfer.cloud.address import Url
from forbear.transfer.cloud.objects import Object
from forbear.transfer.cloud.storage import Storage
from forbear.transfer.errors import ChecksumMismatch, HttpError


async def verified(storage: Storage, made: Object, size: int, crc: str, name: str) -> Object:
    """An object just made, if it has these bytes; otherwise that very version is deleted, and ChecksumMismatch raised.

    An emulator that tells no checksum is believed.
    """
    if made.size == size and made.crc32c in (crc, None):
        return made
    await storage.delete(made)
    raise mismatch(name, made.url)


def mismatch(name: str, target: Url) -> ChecksumMismatch:
    """The error for bytes that were changed on their way."""
    return ChecksumMismatch(f"{name} did not reach {target} as it was sent: the checksums differ")


def is_refusal(error: HttpError) -> bool:
    """Whether the server refuses what has arrived, since its checksum is not the one that was announced."""
    return error.status == 400 and "crc32c" in error.message.lower()
