"""Resumable: sends a source through sessions, step by step as `Session` says. It keeps nothing on disk."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from forbear.core.verdict import TRANSIENT, Kind, Verdict
from forbear.http.request import Request
from forbear.transfer.errors import HttpError, NoCredentials, Stalled, TransferError, WrongResponse
from forbear.transfer.objects import Object
from forbear.transfer.precondition import Precondition, is_refusal, mismatch, verified
from forbear.transfer.progress import current_progress
from forbear.transfer.storage.bodies import RequestBody
from forbear.transfer.storage.calls import Retries
from forbear.transfer.storage.client import Storage
from forbear.transfer.threads import to_the_end
from forbear.transfer.uploads.session import Session, Step, Turn, chunk_end
from forbear.transfer.uploads.sources import Source
from forbear.transfer.wire.response import WireError

_CANCEL_TIMEOUT = 5.0
_ANSWERS = (200, 201, 308)
_JSON = "application/json; charset=UTF-8"
_MENDED = (401, 403)


class Resumable:
    """The upload of one source through sessions; `resource` is what else the object is to have.

    `began` tells whether there was anything to do; else the session of another process was over already.
    `keep` is called with the URL of every session that begins, so that another process may go on with it; it returns
    whether that process could.
    """

    def __init__(
        self,
        storage: Storage,
        source: Source,
        condition: Precondition,
        resource: Mapping[str, Any],
        chunk_size: int,
        keep: Callable[[str], bool] | None = None,
    ) -> None:
        self.began = False
        self._storage = storage
        self._source = source
        self._condition = condition
        self._resource = resource
        self._chunk_size = chunk_size
        self._keep = keep
        self._what = f"upload {source.name}"
        self._session = Session(source.size)
        self._url = ""
        self._is_kept = False
        self._progress = current_progress.get()
        self._hash: Mapping[str, str] = {}  # of all bytes, once that is known
        self._told = 0
        self._refusals = 0

    def resume(self, url: str) -> None:
        """Go on with a session of another process."""
        self._url = url
        self._is_kept = True
        self._session = Session(self._source.size, resumed=True)

    async def run(self) -> Object:
        """Upload all of it; a session with which nobody can go on is not left behind."""
        try:
            made = await self._run()
        except Exception as error:
            if self._url and (not self._is_kept or is_over(self._storage, error)):
                await cancel(self._storage, self._url)
            raise
        self._settle(made.size)
        return made

    async def _run(self) -> Object:
        session = self._session
        retries = Retries(self._storage.policy, "storage.objects.insert")
        while True:
            if session.step is Step.START:
                found = await self._start()
                if found is not None:
                    return found
            headers, body = await self._chunk() if session.step is Step.SEND else (self._question(), None)
            try:
                reply = await self._put(headers, body)
            except Exception as error:
                session.broken()
                await retries.after(error, self._storage.verdict(error))
                continue
            if isinstance(reply, HttpError):
                failure: TransferError = reply
                if is_refusal(reply):
                    await self._start_over(reply)
                    continue
                verdict = self._verdict(reply, headers)
            else:
                failure = WrongResponse(f"{self._what}: the server has kept nothing more of it")
                verdict = TRANSIENT
            transient = verdict.kind is not Kind.PERMANENT
            turn = session.replied(reply.status, reply.headers, transient=transient)
            if turn is Turn.DONE:
                made = _object(reply)
                if made is not None:
                    retries.progressed()
                    return await self._verified(made)
                session.broken()
                failure = WrongResponse(f"{self._what}: the server's reply does not tell what it has made")
                turn = Turn.WAIT
            if turn is Turn.PROGRESS:
                retries.progressed()
            elif turn is Turn.WAIT:
                await retries.after(failure, verdict if transient else TRANSIENT)
            elif turn is Turn.REFUSED:
                return await self._refused(failure)
            elif turn is Turn.FINAL:
                raise failure if session.why is None else WrongResponse(f"{self._what}: {session.why}")

    async def _start(self) -> Object | None:
        """Begin a session; what is there, if an earlier one has made it already."""
        self.began = True
        storage, condition, size = self._storage, self._condition, self._source.size
        headers = {"Content-Type": _JSON, "X-Upload-Content-Type": self._resource["contentType"]}
        if size is not None:
            headers["X-Upload-Content-Length"] = str(size)
        path, body = condition.target.upload_path, json.dumps(self._resource).encode()
        reply: Reply | None = None
        while reply is None:
            query = {"uploadType": "resumable", **condition.query}
            try:
                reply = await storage.call(f"begin to {self._what}", "POST", path, query, headers=headers, body=body)
            except HttpError as error:
                if error.status != 412:
                    raise
                found = await condition.refused(error, self._resource, await self._sent())
                if found is not None:
                    return found
        if "location" not in reply.headers:
            raise WrongResponse(f"{self._what}: the server began no session")
        condition.held()
        self._url = storage.trusted_url(reply.headers["location"], self._what)
        if self._keep is not None:
            self._is_kept = await to_the_end(self._keep, self._url)
        self._session.started()
        return None

    async def _chunk(self) -> tuple[Mapping[str, str], Callable[[], RequestBody] | None]:
        """The headers and the body of the next chunk; the last one brings the checksum of the whole."""
        source, session = self._source, self._session
        first = session.stored
        await source.ready(first, self._chunk_size)
        if session.size is None and source.size is not None:
            session.size = source.size
            self._progress.sized(source.size)
        end = chunk_end(first, source.size, self._chunk_size)
        headers = {"Content-Range": f"bytes {first}-{end - 1}/{_total(source.size)}"}
        if end == source.size:
            self._hash = {"x-goog-hash": f"crc32c={await source.crc32c()}"}
            headers.update(self._hash)
            source.check()
        self._settle(first)
        self.began = True
        session.sending(end)

        def body() -> RequestBody:
            pieces = partial(source.pieces, first, end)
            return RequestBody(pieces, end - first, self._moved, repeatable=False)

        return headers, body

    def _question(self) -> Mapping[str, str]:
        # A question may be what completes the upload: the reply to the last chunk, and its hash, may have been lost.
        return {"Content-Range": f"bytes */{_total(self._source.size)}", "Content-Length": "0", **self._hash}

    async def _put(self, headers: Mapping[str, str], body: Callable[[], RequestBody] | None) -> Reply | HttpError:
        async with self._storage.stream("PUT", self._url, headers, body) as response:
            if response.status in _ANSWERS:
                return Reply(response.status, response.headers, await self._storage.read(response))
            return await self._storage.error_for(self._what, response)

    def _verdict(self, error: HttpError, headers: Mapping[str, str]) -> Verdict:
        """What an error status means where the protocol of sessions does not say."""
        url = urlsplit(self._url)
        sent = {name.lower(): value for name, value in headers.items()}
        target = f"{url.path}?{url.query}"
        return self._storage.verdict(
            error, Request("PUT", url.hostname or "", target, sent, None, url.scheme, url.port)
        )

    async def _start_over(self, error: HttpError) -> None:
        """Begin anew, once, since what the session holds is not what was sent."""
        self._source.check()
        self._refusals += 1
        if self._refusals > 1 or not self._source.rewindable:
            raise mismatch(self._source.name, self._condition.target) from error
        await cancel(self._storage, self._url)
        self._session.start_over()

    async def _refused(self, failure: TransferError) -> Object:
        """The object, if it is there in spite of a condition that does not hold."""
        found = await self._condition.refused(failure, self._resource, await self._sent(), final=True)
        if found is None:  # nobody asks again for a condition that is final
            raise failure
        return found

    async def _sent(self) -> tuple[int, str] | None:
        """The size and the checksum of what may be there; None where the end was never sent, or has come to nothing."""
        size = self._source.size
        return (size, await self._source.crc32c()) if self._session.in_doubt and size is not None else None

    async def _verified(self, made: Object) -> Object:
        sent = self._source.size or 0, await self._source.crc32c()
        session = self._session
        return await verified(
            self._storage,
            self._condition,
            made,
            sent,
            self._source.name,
            refused=session.refused,
            unsure=session.unsure,
        )

    def _moved(self, count: int) -> None:
        self._told += count
        self._progress.moved(count)

    def _settle(self, place: int) -> None:
        """Tell how far it has really come."""
        if place != self._told:
            self._moved(place - self._told)


def is_over(storage: Storage, error: Exception) -> bool:
    """Whether nothing can come of a session any more; what the network or the credentials did may be mended."""
    if isinstance(error, HttpError):
        return error.status not in _MENDED and storage.verdict(error).kind is Kind.PERMANENT
    return not isinstance(error, WireError | OSError | Stalled | NoCredentials)


async def cancel(storage: Storage, url: str) -> None:
    """Have the server forget a session, if it can be reached; else it does so in a week."""
    with suppress(Exception):
        async with asyncio.timeout(_CANCEL_TIMEOUT), storage.stream("DELETE", url, {"Content-Length": "0"}):
            pass


def _total(size: int | None) -> str:
    return "*" if size is None else str(size)


def _object(reply: Reply | HttpError) -> Object | None:
    try:
        return None if isinstance(reply, HttpError) else Object.of(reply.json())
    except TransferError:
        return None
