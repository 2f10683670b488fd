"""Verify: whether what arrived is what was sent, by its checksum; what is not is not left behind."""

from forbear.transfer.errors import ChecksumMismatch, HttpError, TargetChanged
from forbear.transfer.objects import Object, Url
from forbear.transfer.precondition import Precondition
from forbear.transfer.storage.client import Storage


async def verified(
    storage: Storage,
    condition: Precondition,
    made: Object,
    sent: tuple[int, str],
    name: str,
    *,
    refused: bool = False,
    unsure: bool = False,
) -> Object:
    """Return what the server says it made, if it has the size and the checksum of what was `sent`.

    Otherwise that very version is deleted, and ChecksumMismatch raised. Where the server cannot know (`unsure`), has
    `refused` the upload before or names no checksum, its word is not enough: the object is looked at. Nothing is
    deleted after a refusal, for it may be somebody else's. An emulator that has no checksums is believed.
    """
    condition.check_made(made)
    if not _is(made, sent):
        if not refused:
            await storage.delete(made.url)
        raise mismatch(name, made.url)
    if not (refused or unsure or made.crc32c is None):
        return made
    there = await storage.stat(condition.target)
    if there is None or there.generation != made.generation or not _is(there, sent):
        raise TargetChanged(f"the server says that {name} became {made.url}, and there is {_named(there)}")
    return there


def _is(there: Object, sent: tuple[int, str]) -> bool:
    size, crc = sent
    return there.size == size and there.crc32c in (crc, None)


def _named(there: Object | None) -> str:
    return "nothing" if there is None else f"{there.url} of {there.size} bytes"


def mismatch(name: str, target: Url) -> ChecksumMismatch:
    """The error for bytes that were changed on their way."""
    return ChecksumMismatch(f"{name} did not reach {target} as it was sent: the checksums differ")


def is_refusal(error: HttpError) -> bool:
    """Whether the server refuses what has arrived, since its checksum is not the one that was announced."""
    return error.status == 400 and "crc32c" in error.message.lower()
