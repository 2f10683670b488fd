"""Decide which version of the target a write may replace, what a refusal (412) means, and whether the result is right.

`upload` and `copy` write with a generation precondition, so that a request that was repeated takes effect once at most.
"""

from collections.abc import Mapping
from typing import Any

from forbear.verdicts import TRANSIENT
from forbear_transfer.encryption import DEFAULT_ENCRYPTION, ObjectEncryption
from forbear_transfer.errors import (
    ChecksumMismatch,
    HttpError,
    TargetChanged,
    TargetExists,
    TransferError,
    UnsafeName,
    WrongResponse,
)
from forbear_transfer.metadata import has_metadata
from forbear_transfer.objects import Object, Url
from forbear_transfer.storage.calls import Retries, Sent
from forbear_transfer.storage.client import Storage

_MAX_ROUNDS = 10


class Precondition:
    """The precondition of one write to `target`: `generation` is the version that it may replace, 0 for none.

    If the caller has `required` a version (0: the target must not exist), it is that one. If `required` is None, the
    write replaces any version, but only one that it knows. It begins with the guess that the target does not exist, and
    a refusal corrects the guess. `encryption` has the keys of the object that the write makes.
    """

    def __init__(
        self, storage: Storage, target: Url, required: int | None, encryption: ObjectEncryption = DEFAULT_ENCRYPTION
    ) -> None:
        _check(target, required)
        self.target = target
        self.required = required
        self.encryption = encryption
        self.generation = required or 0
        self._is_known = required is not None  # otherwise the generation is a guess
        self._storage = storage
        self._rounds = 0
        self._retries: Retries | None = None

    @property
    def query(self) -> dict[str, str | int | None]:
        return {
            "name": self.target.name,
            "ifGenerationMatch": self.generation,
            "kmsKeyName": self.encryption.kms_key,
        }

    @property
    def key_headers(self) -> dict[str, str]:
        """The headers with the customer-supplied key of the new object; empty if it has none."""
        return self._storage.key_headers(self.encryption.key)

    async def look(self) -> Object | None:
        """Return the object at the target, with its checksums if the keys of the write can read them; None without."""
        return await self._storage.stat(self.target, self.encryption.keys)

    async def look_first(self) -> None:
        """Look up the target before an upload if it probably exists, since a refusal would waste the data sent.

        If the target exists, set `generation` to its version, or raise TargetExists if the caller requires that it does
        not. Do nothing if the caller requires an existing version. Do nothing either if the Storage guesses that
        targets are absent, as for its first upload. A user who may not look up objects (403) uploads without.
        """
        expectation = self._storage.expectation
        if self.required or not expectation.asks():
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
            if self.required == 0:
                raise self._make_error()
            self.restore(there.generation)

    def accepted(self) -> None:
        """Record that the server has accepted the precondition, so that the generation is no guess any more."""
        self._is_known = True

    def restore(self, generation: int) -> None:
        """Set the generation to a known one, such as one that an earlier process saved; it is no guess any more."""
        self.generation = generation
        self._is_known = True

    def made_new(self) -> None:
        """Tell the Storage that the target was absent, if so: later uploads then rather guess that theirs are."""
        if self.generation == 0:
            self._storage.expectation.met(there=False)

    def is_new(self, there: Object) -> bool:
        """Return whether the version of `there` is another one than `generation`, which the write may replace."""
        return there.generation != self.generation

    def is_made(self, there: Object, sent: tuple[int, str]) -> bool:
        """Return whether this write may have made `there`: new, with the size and CRC32C in `sent`, and the key."""
        return self.is_new(there) and (there.size, there.crc32c) == sent and self.encryption.is_of(there)

    def check_made(self, made: Object) -> None:
        """Raise WrongResponse if `made`, the object that the server reports to have made, cannot be from this write.

        That is so if it has another bucket or name than the target, or the generation that was there before. The caller
        must not act on such a response, least of all delete the object that it names.
        """
        if (made.bucket, made.name) != (self.target.bucket, self.target.name):
            raise WrongResponse(f"the server says that it made {made.url}, and should have made {self.target}")
        if not self.is_new(made):
            raise WrongResponse(f"the server says that it made {made.url}, which was there before")

    async def verify(
        self, made: Object, sent: tuple[int, str], name: str, *, refused: bool = False, unsure: bool = False
    ) -> Object:
        """Return the object `made` by an upload of `name` if it has the size and CRC32C of what was `sent`.

        Otherwise delete that version and raise ChecksumMismatch, or WrongResponse for another encryption. If the server
        states no checksum, has `refused` the upload before, or reported success too early (`unsure`), look at the
        target again. Return the object there, or raise TargetChanged if it is not what was sent. After a refusal delete
        nothing, as another writer may have made the object. If the object has no checksum at all, as in an emulator,
        compare the sizes only. Also raises the WrongResponse of `check_made`.
        """
        self.check_made(made)
        has_content = _has_content(made, sent)
        if not has_content or not self.encryption.is_of(made):
            if not refused:
                await self._storage.delete(made.url)
            raise make_unencrypted_error(made, deleted=not refused) if has_content else mismatch(name, made.url)
        if not (refused or unsure or made.crc32c is None):
            return made
        there = await self.look()
        if there is None or there.generation != made.generation or not _has_content(there, sent):
            actual = "nothing" if there is None else f"{there.url} of {there.size} bytes"
            raise TargetChanged(f"the server says that {name} became {made.url}, and there is {actual}")
        return there

    async def resolve_refusal(
        self, error: TransferError, wanted: Mapping[str, Any], sent: tuple[int, str] | None, *, final: bool = False
    ) -> Object | None:
        """Look at the target after the server has refused the write (`error`, a 412), and decide what to do.

        Return the object there if this very write has made it. Return None if the write should be repeated, with the
        `generation` that this method has set; from the second time on, it waits as the policy says.

        Raise TargetExists if an object is there and the caller requires that there is none. Raise TargetChanged if the
        caller requires another version, or after 10 refusals. Raise it also if another client wrote to a target of
        known generation, and the write cannot be repeated: `final` or `sent` is set.

        `sent` has the size and CRC32C of the object if an earlier attempt may have made it, else it is None. `wanted`
        has the metadata that the object should have. While the generation is a guess, the object may have been there
        before; if it is equal in all, nothing is to do.
        """
        there = await self.look()
        if self.generation == 0 and sent is None and there is not None:
            self._storage.expectation.met(there=True)
        ours = there is not None and sent is not None and self.is_made(there, sent)
        if there is not None and ours and (self._is_known or has_metadata(there, wanted)):
            return there
        if self.required == 0 and there is not None:
            raise self._make_error() from error
        if self.required:
            raise TargetChanged(f"{self.target} is not generation {self.required} any more") from error
        if self._is_known and (final or sent is not None):
            raise TargetChanged(f"another client wrote to {self.target} during the upload") from error
        self._rounds += 1
        if self._rounds == _MAX_ROUNDS:
            raise TargetChanged(
                f"other clients keep writing to {self.target}", "start again when they are done"
            ) from error
        if self._rounds > 1:
            self._retries = self._retries or Retries(
                self._storage.policy, Sent("POST", self.target), "storage.objects.insert"
            )
            await self._retries.after(error, TRANSIENT)
        self.restore(0 if there is None else there.generation)
        return None

    def _make_error(self) -> TargetExists:
        return TargetExists(f"{self.target} exists already")


def mismatch(name: str, target: Url) -> ChecksumMismatch:
    """Return the ChecksumMismatch for an upload of `name` whose bytes were changed on the way to `target`."""
    return ChecksumMismatch(f"{name} did not reach {target} as it was sent: the checksums differ")


def make_key_error(operation: str, sha256: str, path: str) -> TransferError:
    """Return the error for a transfer that an earlier run began with another key; `path` is that of its state."""
    text = f"an earlier run began to {operation} with another encryption key, whose SHA-256 is {sha256}"
    return TransferError(text, f"use that key again; or delete {path} to start over")


def make_unencrypted_error(made: Object, *, deleted: bool = True) -> WrongResponse:
    """Return the WrongResponse for an object that was written with a key, and is encrypted by another one or none."""
    return WrongResponse(
        f"{made.url} was not encrypted by the key that was sent{', and was deleted' if deleted else ''}",
        "check the server: it may be an emulator that ignores keys",
    )


def refuses_checksum(error: HttpError) -> bool:
    """Return whether the server refused an upload because of its CRC32C: status 400, and "crc32c" in the message."""
    return error.status == 400 and "crc32c" in error.message.lower()


def _has_content(there: Object, sent: tuple[int, str]) -> bool:
    size, crc32c = sent
    return there.size == size and there.crc32c in (crc32c, None)


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
