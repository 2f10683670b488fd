"""Send a source through resumable upload sessions, step by step as `session.SessionState` says.

This is where an upload continues, after a lost connection or with the session of another process. A query asks the
server how many bytes it has, and the next chunk begins there.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from forbear.adapters import Request
from forbear.verdicts import TRANSIENT, Kind, Verdict
from forbear_transfer.errors import HttpError, NoCredentials, Stalled, TransferError, WrongResponse
from forbear_transfer.objects import Object
from forbear_transfer.precondition import Precondition, mismatch, refuses_checksum
from forbear_transfer.progress import current_progress
from forbear_transfer.storage.bodies import RequestBody, WholeResponse
from forbear_transfer.storage.calls import Retries, Sent
from forbear_transfer.storage.client import Storage
from forbear_transfer.threads import to_the_end
from forbear_transfer.uploads.session import Reaction, SessionState, Step, chunk_end
from forbear_transfer.uploads.sources import Source
from forbear_transfer.wire.response import Response, WireError

_CANCEL_TIMEOUT = 5.0
_JSON = "application/json; charset=UTF-8"
_CREDENTIALS = (401, 403)
"""Statuses that the user can cure by other credentials; the session stays usable."""


class ResumableUpload:
    """The upload of one source through sessions; `resource` has the metadata of the object.

    - `save` is called with the URL of each session that begins, so that another process can continue it. It returns
      whether the URL was saved.
    - `resumed` is the URL of a session that an earlier process began, None to begin one.
    - `has_sent` is true once a session was begun or a chunk was sent. It stays false if the resumed session was
      complete.
    """

    def __init__(
        self,
        storage: Storage,
        source: Source,
        condition: Precondition,
        resource: Mapping[str, Any],
        chunk_size: int,
        save: Callable[[str], bool] | None = None,
        resumed: str | None = None,
    ) -> None:
        self.has_sent = False
        self._storage = storage
        self._source = source
        self._condition = condition
        self._resource = resource
        self._chunk_size = chunk_size
        self._save = save
        self._operation = f"upload {source.name}"
        self._session = SessionState(source.size, resumed=resumed is not None)
        self._url = resumed or ""
        self._is_saved = resumed is not None
        self._progress = current_progress.get()
        self._key = condition.key_headers  # the service needs it in each request
        self._hash: Mapping[str, str] = {}  # the header with the checksum of all bytes, once it is known
        self._moved = 0
        self._refusals = 0

    async def run(self) -> Object:
        """Upload all bytes and return the object, whose size and checksum are right.

        On an error, cancel the session if its URL was not saved, or if no later process can continue after the error.
        If the task itself is cancelled, it ends at once and sends nothing more; the server deletes the session after a
        week.
        """
        try:
            made = await self._run()
        except Exception as error:
            if self._url and (not self._is_saved or ends_session(self._storage, error)):
                await cancel(self._storage, self._url)
            raise
        self._move_to(made.size)
        return made

    async def _run(self) -> Object:
        session = self._session
        retries = Retries(self._storage.policy, Sent("PUT", self._condition.target), "storage.objects.insert")
        while True:
            if session.step is Step.START:
                there = await self._start()
                if there is not None:
                    return there
            headers, body = await self._make_chunk() if session.step is Step.SEND else (self._make_query(), None)
            retries.begin()
            try:
                response, result = await self._put(headers, body)
            except Exception as error:
                session.interrupted()
                await retries.after(error, self._storage.verdict(error))
                continue
            if isinstance(result, HttpError) and refuses_checksum(result):
                await self._start_over(result)
                continue
            verdict = self._verdict(result, headers)
            transient = verdict.kind is not Kind.PERMANENT
            reaction = session.responded(response.status, response.headers, transient=transient)
            if isinstance(result, Object):
                retries.progressed()
                return await self._verify(result)
            if reaction is Reaction.DONE:
                session.interrupted()
                reaction = Reaction.WAIT
            if reaction is Reaction.PROGRESSED:
                retries.progressed()
            elif reaction is Reaction.WAIT:
                await retries.after(result, verdict if transient else TRANSIENT)
            elif reaction is Reaction.REFUSED:
                return await self._resolve_refusal(result)
            elif reaction is Reaction.FAIL:
                raise result if session.reason is None else WrongResponse(f"{self._operation}: {session.reason}")

    async def _start(self) -> Object | None:
        """Begin a session and save its URL, or return the object at the target, if this upload has made it."""
        self.has_sent = True
        storage, condition, size = self._storage, self._condition, self._source.size
        headers = {"Content-Type": _JSON, "X-Upload-Content-Type": self._resource["contentType"], **self._key}
        if size is not None:
            headers["X-Upload-Content-Length"] = str(size)
        operation, path = f"begin to {self._operation}", condition.target.upload_path
        body = json.dumps(self._resource).encode()
        response: WholeResponse | None = None
        while response is None:
            query = {"uploadType": "resumable", **condition.query}
            try:
                response = await storage.call(operation, "POST", path, query, headers=headers, body=body)
            except HttpError as error:
                if error.status != 412:
                    raise
                there = await condition.resolve_refusal(error, self._resource, await self._measure_sent())
                if there is not None:
                    return there
        if "location" not in response.headers:
            raise WrongResponse(f"{self._operation}: the server began no session")
        condition.accepted()
        self._url = storage.check_url(response.headers["location"], self._operation)
        if self._save is not None:
            self._is_saved = await to_the_end(self._save, self._url)
        self._session.started()
        return None

    async def _make_chunk(self) -> tuple[Mapping[str, str], Callable[[], RequestBody] | None]:
        """Return the headers of the next chunk, and a function that makes its body.

        The headers of the last chunk have the checksum of all bytes. If the server has all bytes of a stream that an
        earlier process has sent, return a query instead. Raise SourceChanged if a file has changed by then.
        """
        source, session = self._source, self._session
        first = session.stored
        await source.ready(first, self._chunk_size)
        if session.size is None and source.size is not None:
            session.size = source.size
            self._progress.sized(source.size)
            if first == source.size:
                self._hash = {"x-goog-hash": f"crc32c={await source.crc32c()}"}
                session.step = Step.ASK
                return self._make_query(), None
        end = chunk_end(first, source.size, self._chunk_size)
        headers = {"Content-Range": f"bytes {first}-{end - 1}/{_format_total(source.size)}", **self._key}
        if end == source.size:
            self._hash = {"x-goog-hash": f"crc32c={await source.crc32c()}"}
            headers.update(self._hash)
            await source.verify()
        self._move_to(first)
        self.has_sent = True
        session.sending(end)
        pieces = partial(source.pieces, first, end)
        return headers, partial(RequestBody, pieces, end - first, self._move, repeatable=False)

    def _make_query(self) -> Mapping[str, str]:
        """Return the headers of a query for the number of stored bytes.

        They have the checksum once it is known, because a query may complete the upload: the request with the last
        chunk may be lost.
        """
        total = _format_total(self._source.size)
        return {"Content-Range": f"bytes */{total}", "Content-Length": "0", **self._hash, **self._key}

    async def _put(
        self, headers: Mapping[str, str], body: Callable[[], RequestBody] | None
    ) -> tuple[Response, Object | TransferError]:
        """Send a chunk or query (`body` is None) once; return the response, and the object in it or an error.

        The error is an HttpError for a status other than 200, 201 and 308. It is a WrongResponse for a 308, or if the
        body describes no object.
        """
        async with await self._storage.stream("PUT", self._url, headers, body) as response:
            if response.status not in (200, 201, 308):
                return response, await self._storage.error_for(self._operation, response)
            content = await self._storage.read(response)
        if response.status == 308:
            return response, WrongResponse(f"{self._operation}: the server has stored no more of it")
        try:
            return response, Object.of(content.json())
        except WrongResponse as error:
            return response, error

    def _verdict(self, result: Object | TransferError, headers: Mapping[str, str]) -> Verdict:
        """Return the verdict of the storage on an HttpError, by the headers of its request; else TRANSIENT."""
        if not isinstance(result, HttpError):
            return TRANSIENT
        url = urlsplit(self._url)
        lowered = {name.lower(): value for name, value in headers.items()}
        request = Request("PUT", url.hostname or "", f"{url.path}?{url.query}", lowered, None, url.scheme, url.port)
        return self._storage.verdict(result, request)

    async def _start_over(self, error: HttpError) -> None:
        """Cancel the session, whose bytes were refused for their checksum, so that a new one begins."""
        self._source.check()
        self._refusals += 1
        if self._refusals > 1 or not self._source.rewindable:
            raise mismatch(self._source.name, self._condition.target) from error
        await cancel(self._storage, self._url)
        self._session.start_over()

    async def _resolve_refusal(self, error: TransferError) -> Object:
        """Return the object at the target if this upload has made it in spite of the refusal."""
        there = await self._condition.resolve_refusal(error, self._resource, await self._measure_sent(), final=True)
        if there is None:  # a refusal by a session is final: no other generation can be tried
            raise error
        return there

    async def _measure_sent(self) -> tuple[int, str] | None:
        """Return size and checksum of the object that this upload may have made; None if it cannot have made one.

        It may have if the last chunk was sent and no usable response came (lost, or a transient error), or if the
        session is a resumed one.
        """
        return await self._source.measure() if self._session.in_doubt else None

    async def _verify(self, made: Object) -> Object:
        sent = await self._source.measure()
        refused, unsure = self._session.refused, self._session.unsure
        return await self._condition.verify(made, sent, self._source.name, refused=refused, unsure=unsure)

    def _move(self, count: int) -> None:
        self._moved += count
        self._progress.moved(count)

    def _move_to(self, offset: int) -> None:
        if offset != self._moved:
            self._move(offset - self._moved)


def ends_session(storage: Storage, error: Exception) -> bool:
    """Return whether no later process can continue a session after `error`.

    It can after network errors, transient statuses, and missing or refused credentials (401, 403).
    """
    if isinstance(error, HttpError):
        return error.status not in _CREDENTIALS and storage.verdict(error).kind is Kind.PERMANENT
    return not isinstance(error, WireError | OSError | Stalled | NoCredentials)


async def cancel(storage: Storage, url: str) -> None:
    """Delete a session at the server, within 5 s and without an error; it does so itself after a week."""
    with suppress(Exception):
        async with asyncio.timeout(_CANCEL_TIMEOUT):
            (await storage.stream("DELETE", url, {"Content-Length": "0"})).close()


def _format_total(size: int | None) -> str:
    return "*" if size is None else str(size)
