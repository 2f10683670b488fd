"""Copies within the cloud: the service rewrites an object, in as many calls as it takes; no byte passes through here.

The source is pinned to one version, and the target to what is there, as for uploads. The token of a rewrite that takes
several calls is kept, so that the next process goes on with it. A source that is replaced meanwhile is copied anew.
"""

from contextlib import ExitStack

from forbear.core.report import text_of
from forbear.core.verdict import TRANSIENT
from forbear.transfer.errors import (
    ChecksumMismatch,
    HttpError,
    Stalled,
    StrPath,
    TransferError,
    WrongResponse,
    maybe_done,
)
from forbear.transfer.objects import FIELDS, Object, Url
from forbear.transfer.precondition import Precondition
from forbear.transfer.progress import current_progress, warner
from forbear.transfer.state import SMALL, State
from forbear.transfer.storage.bodies import LONGEST_TOKEN
from forbear.transfer.storage.calls import Retries
from forbear.transfer.storage.client import Storage
from forbear.transfer.wire.response import WireError

_GRAIN = 1024 * 1024
_FIELDS = f"done,rewriteToken,totalBytesRewritten,resource({FIELDS})"


async def copy(
    storage: Storage,
    source: Url | Object,
    target: Url,
    *,
    generation: int | None = None,
    state: StrPath | None = None,
    chunk_size: int | None = None,
) -> Object:
    """Copy an object with its metadata, and return the new one.

    `generation` is the version that the target must have: 0 for none (TargetExists), a number for that one
    (TargetChanged), None for whatever is there. `state` is the folder for what the next process needs to go on,
    `chunk_size` how many bytes the service may rewrite in one call (a multiple of 1 MiB; by default it decides).
    Raises HttpError, ChecksumMismatch, Locked, and TransferError for an object that would be copied onto itself.
    """
    if chunk_size is not None and (chunk_size <= 0 or chunk_size % _GRAIN):
        raise ValueError(f"`chunk_size` must be a multiple of {_GRAIN} (1 MiB) or None, got {chunk_size!r}")
    condition = Precondition(storage, target, generation)
    if isinstance(source, Url):
        source.check_object("source")
    found = source if isinstance(source, Object) else await storage.stat(source)
    if found is None:
        raise HttpError(f"copy {source}", 404, "there is no such object")
    await _check_other(storage, found, target)
    current_progress.get().sized(found.size)
    pinned = isinstance(source, Url) and source.generation is not None
    with ExitStack() as stack:
        kept: State | None = None
        if found.size > SMALL:
            parts = str(Url(found.bucket, found.name)), str(target)
            kept = stack.enter_context(State(state, "rewrite", storage.endpoint, *parts, warn=warner()))
        return await _Rewrite(storage, found, condition, kept, pinned=pinned, chunk_size=chunk_size).run()


async def _check_other(storage: Storage, source: Object, target: Url) -> None:
    """Raise TransferError where the source is what the target is now; an older version of it may replace it."""
    if (source.bucket, source.name) != (target.bucket, target.name):
        return
    there = await storage.stat(target)
    if there is not None and there.generation == source.generation:
        raise TransferError(f"{source.url} is what {target} is now: source and target are the same")


class _Rewrite:
    """One copy; `run` it once."""

    def __init__(
        self,
        storage: Storage,
        source: Object,
        condition: Precondition,
        kept: State | None,
        *,
        pinned: bool,
        chunk_size: int | None,
    ) -> None:
        self._storage = storage
        self._source = source
        self._condition = condition
        self._kept = kept
        self._pinned = pinned
        self._chunk_size = chunk_size
        self._retries = Retries(storage.policy, "storage.objects.rewrite")
        self._moved = 0
        self._token: str | None = None
        self._in_doubt = False

    async def run(self) -> Object:
        """Rewrite until it is done."""
        saved = {} if self._kept is None else self._kept.load()
        match saved:
            case {"source": self._source.generation, "token": str(token), "target": int(target)}:
                self._token, self._condition.generation = token, target
                self._in_doubt = True  # the process may have died while the last reply was on its way
            case _:
                pass
        while True:
            made: Object | None = None
            try:
                made = await self._rewritten()
            except HttpError as error:
                if error.status == 412:
                    made = await self._refused(error)
                elif error.status == 404 and not self._pinned:
                    await self._look_again(error)
                elif self._token is None or error.status not in {400, 410}:
                    raise
                if made is None:  # a token holds for one condition, and not for ever
                    self._restart()
                    continue
            except (WireError, Stalled) as error:
                await self._broken_off(error)
                continue
            if self._kept is not None:
                self._kept.forget()
            return await self._checked(made)

    async def _refused(self, error: HttpError) -> Object | None:
        """What is there where it is our own copy, None to try again."""
        source = self._source
        self._in_doubt = self._in_doubt or maybe_done(error)
        wanted = {"contentType": source.content_type, "metadata": source.metadata}
        sent = (source.size, source.crc32c or "") if self._in_doubt else None
        return await self._condition.refused(error, wanted, sent)

    async def _broken_off(self, error: Exception) -> None:
        """After a reply of which only a part came: what was done is told by the same call once more."""
        if not maybe_done(error):
            raise error
        self._in_doubt = True
        text = f"copy {self._source.url} to {self._condition.target}: the reply broke off: {text_of(error)}"
        await self._retries.after(WrongResponse(text), TRANSIENT)

    async def _look_again(self, error: HttpError) -> None:
        """Take the version that has replaced the source."""
        found = await self._storage.stat(Url(self._source.bucket, self._source.name))
        if found is None or found.generation == self._source.generation:
            raise error
        await self._retries.after(error, TRANSIENT)
        self._source = found

    async def _rewritten(self) -> Object:
        """Call until the service is done."""
        source, target = self._source, self._condition.target
        path = source.url.rewrite_path(target)
        while True:
            query = {
                "ifGenerationMatch": self._condition.generation,
                "sourceGeneration": source.generation,
                "rewriteToken": self._token,
                "maxBytesRewrittenPerCall": self._chunk_size,
                "fields": _FIELDS,
            }
            what = f"copy {source.url} to {target}"
            answer = (await self._storage.call(what, "POST", path, query)).json()
            try:
                count, done = int(answer.get("totalBytesRewritten", 0)), answer["done"]
                before, self._token = self._token, None if done else str(answer["rewriteToken"])
                if len(self._token or "") > LONGEST_TOKEN:
                    raise ValueError("its token is too long")
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise WrongResponse(f"{what}: the server's reply does not tell how far it has come") from error
            if count < 0 or count > source.size:
                raise WrongResponse(f"{what}: the server says that it has copied {count} of {source.size} bytes")
            if done:
                self._moved_to(count)
                return Object.of(answer.get("resource", {}))
            if before is None or count > self._moved:
                self._retries.progressed()
            else:
                await self._retries.after(WrongResponse(f"{what}: the server has copied nothing more of it"), TRANSIENT)
            self._moved_to(count)
            if self._kept is not None:
                self._kept.save(
                    {"source": source.generation, "token": self._token, "target": self._condition.generation}
                )

    def _moved_to(self, count: int) -> None:
        current_progress.get().moved(count - self._moved)
        self._moved = count

    def _restart(self) -> None:
        """Begin anew."""
        if self._kept is not None:
            self._kept.forget()
        self._token = None
        self._moved_to(0)

    async def _checked(self, made: Object) -> Object:
        self._condition.check_made(made)
        if made.crc32c != self._source.crc32c or made.size != self._source.size:
            await self._storage.delete(made.url)
            raise ChecksumMismatch(f"the copy {made.url} is not what {self._source.url} is, and was deleted")
        self._moved_to(made.size)
        return made
