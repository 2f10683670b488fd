"""Precondition: which version an upload may replace, and what it means that the condition did not hold (412)."""

from collections.abc import Mapping
from typing import Any

from forbear.core.verdict import TRANSIENT
from forbear.transfer.errors import (
    ChecksumMismatch,
    HttpError,
    TargetChanged,
    TargetExists,
    TransferError,
    UnsafeName,
    WrongResponse,
)
from forbear.transfer.objects import Object, Url
from forbear.transfer.storage.calls import Retries
from forbear.transfer.storage.client import Storage

_ROUNDS = 10


class Precondition:
    """The precondition of an upload to `target`: `generation` is what must be there now, 0 for nothing.

    Where the caller `asked` for a version, it is that one. Where it did not, whatever is there is to be replaced, but
    never blindly: the first guess is that there is nothing, and a refusal is what tells better.
    """

    def __init__(self, storage: Storage, target: Url, asked: int | None) -> None:
        _check(target, asked)
        self.target = target
        self.asked = asked
        self.generation = asked or 0
        self._known = asked is not None
        self._storage = storage
        self._rounds = 0
        self._retries = Retries(storage.policy, "storage.objects.insert")

    @property
    def query(self) -> dict[str, str | int | None]:
        """The parameters of a request that makes the object."""
        return {"name": self.target.name, "ifGenerationMatch": self.generation}

    def held(self) -> None:
        """The condition held: what was there is known now."""
        self._known = True

    async def look(self) -> None:
        """Look at the target first if an object is likely to be there: otherwise all of the data would be sent in vain.

        Raises TargetExists where that is not to be replaced.
        """
        expectation = self._storage.expectation
        if self.asked or not expectation.asks():
            return
        try:
            there = await self._storage.stat(self.target)
        except HttpError as error:
            if error.status != 403:
                raise
            expectation.forbid()
            return
        if there is not None:
            expectation.met(there=True)
            if self.asked == 0:
                raise self._exists()
            self.generation = there.generation
            self._known = True

    def guessed_right(self) -> None:
        """Nothing was there, and the object is made."""
        if self.generation == 0:
            self._storage.expectation.met(there=False)

    def restore(self, generation: int) -> None:
        """Go on with the condition that held in another process."""
        self.generation = generation
        self._known = True

    def is_new(self, there: Object) -> bool:
        """Return whether the object at the target cannot be the one that this upload was to replace."""
        return there.generation != self.generation

    def check_made(self, made: Object) -> None:
        """Raise WrongResponse where what the server says it made cannot come from this upload.

        Nobody may act on such a response, least of all delete what it names.
        """
        if (made.bucket, made.name) != (self.target.bucket, self.target.name):
            raise WrongResponse(f"the server says that it made {made.url}, and should have made {self.target}")
        if not self.is_new(made):
            raise WrongResponse(f"the server says that it made {made.url}, which was there before")

    async def refused(
        self, error: TransferError, wanted: Mapping[str, Any], sent: tuple[int, str] | None, *, final: bool = False
    ) -> Object | None:
        """What is there, if it is this very upload that wrote it; None to try again with another `generation`.

        `sent` are the size and the checksum of the upload where an earlier attempt may have worked, None where none
        did. Raises TargetExists or TargetChanged where somebody else has been there, and it is too late (`final`) or
        not allowed to replace that.
        """
        there = await self._storage.stat(self.target)
        if self.generation == 0 and sent is None and there is not None:
            self._storage.expectation.met(there=True)
        ours = there is not None and self.is_new(there) and (there.size, there.crc32c) == sent
        if there is not None and ours and (self._known or _is(there, wanted)):
            return there
        if self.asked == 0 and there is not None:
            raise self._exists() from error
        if self.asked:
            raise TargetChanged(f"{self.target} is not generation {self.asked} any more") from error
        if self._known and (final or sent is not None):
            raise TargetChanged(f"somebody else wrote to {self.target} during the upload") from error
        self._rounds += 1
        if self._rounds == _ROUNDS:
            raise TargetChanged(f"others keep writing to {self.target}", "start again when they are done") from error
        if self._rounds > 1:
            await self._retries.after(error, TRANSIENT)
        self.generation = 0 if there is None else there.generation
        self._known = True
        return None

    def _exists(self) -> TargetExists:
        return TargetExists(f"{self.target} exists already")


def _is(there: Object, wanted: Mapping[str, Any]) -> bool:
    """Whether an object with the right bytes has all else that the upload sets.

    After a mere guess it may have been there before. If it is the same in everything, there is nothing left to do.
    """
    return (there.content_type, there.metadata) == (wanted["contentType"], wanted["metadata"])


def _check(target: Url, generation: int | None) -> None:
    target.check_object("target")
    if not target.name.isascii():
        try:
            target.name.encode()
        except UnicodeEncodeError as error:
            raise UnsafeName(f"{target.name!r} is not Unicode, as the names of objects are", "rename it") from error
    if target.generation is not None:
        raise ValueError(f"`target` must not name a version, which only the server can make, got {target}")
    if generation is not None and generation < 0:
        raise ValueError(f"`generation` must be a version of the target, 0 (nothing) or None (any), got {generation!r}")


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
    if not _is_what_was_sent(made, sent):
        if not refused:
            await storage.delete(made.url)
        raise mismatch(name, made.url)
    if not (refused or unsure or made.crc32c is None):
        return made
    there = await storage.stat(condition.target)
    if there is None or there.generation != made.generation or not _is_what_was_sent(there, sent):
        raise TargetChanged(f"the server says that {name} became {made.url}, and there is {_named(there)}")
    return there


def _is_what_was_sent(there: Object, sent: tuple[int, str]) -> bool:
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
