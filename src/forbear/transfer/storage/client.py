"""Storage: the connections to Cloud Storage that transfers share. It knows requests and replies, but no transfer."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import urljoin

from forbear.core.events import Event
from forbear.core.report import attach, text_of
from forbear.core.verdict import PERMANENT, Verdict
from forbear.exchange.http.options import HttpOptions
from forbear.http.request import Request
from forbear.http.status import reason
from forbear.policy import Policy
from forbear.services import cloud_storage
from forbear.transfer.errors import HttpError, WrongResponse
from forbear.transfer.objects import FIELDS, Object, Url, quoted
from forbear.transfer.progress import forward
from forbear.transfer.storage.bodies import (
    ANSWER,
    PAGE,
    Deadline,
    Pages,
    RequestBody,
    WholeResponse,
    read_whole,
    refusal,
    seconds_of,
)
from forbear.transfer.storage.calls import StorageCall, verdict
from forbear.transfer.storage.credentials import ANONYMOUS, NO_TOKENS, Credentials, Tokens, tokens
from forbear.transfer.storage.endpoint import ENDPOINT, checked, is_home, is_private, origin, proxy
from forbear.transfer.wire.pool import Pool
from forbear.transfer.wire.response import Response

if TYPE_CHECKING:
    from forbear.http.request import HttpService


EMULATOR_VARIABLE = "STORAGE_EMULATOR_HOST"
CONNECTIONS = 64
STALL_TIMEOUT = 60.0
_PAGE = 1000
_ANY = Request("GET", "storage.googleapis.com", "/storage/v1/b/-/o/-")
_NOT_ENTERED = "a Storage must be entered before it is used: `async with Storage() as storage:`"


class Storage:
    """One pool of connections to Cloud Storage: `async with Storage() as storage:`.

    `endpoint` is a URL; without one it is $STORAGE_EMULATOR_HOST or the real service. `credentials` are the application
    default ones; an emulator gets none unless they are named. `policy` is the patience of every request, and must be
    one of Cloud Storage; its attempt_timeout does not hold for data. `connections` is how many there may be at a time
    (64), `stall_timeout` for how many seconds no byte may move (60). `user_project` pays for requests to buckets whose
    requester pays.
    """

    def __init__(
        self,
        *,
        endpoint: str | None = None,
        credentials: Credentials | None = None,
        policy: Policy | None = None,
        connections: int = CONNECTIONS,
        stall_timeout: float = STALL_TIMEOUT,
        user_project: str | None = None,
    ) -> None:
        emulator = endpoint or os.environ.get(EMULATOR_VARIABLE)
        self.endpoint = checked(emulator or ENDPOINT)
        self.connections = connections
        self.policy = _heard(policy or cloud_storage.policy)
        self._service = _service(self.policy)
        self._credentials = credentials or (ANONYMOUS if emulator else Credentials())
        if not self._credentials.anonymous and not is_private(self.endpoint):
            raise ValueError(
                f"`credentials` must be anonymous where the endpoint is {self.endpoint}: over plain http anybody on "
                "the way could read them; use https, or leave them out for an emulator"
            )
        self.stall_timeout = stall_timeout
        self.expectation = Expectation()
        self._project = {} if user_project is None else {"userProject": user_project}
        self._pool: Pool | None = None
        self._tokens: Tokens | None = None
        self._settings = HttpOptions(self.policy.with_attempt_timeout(None))  # which is within `seconds`
        self._seconds = seconds_of(self.policy)

    async def __aenter__(self) -> Self:
        self._tokens = await tokens(self._credentials, self.policy)
        headers = {"User-Agent": "forbear", "Accept-Encoding": "identity"}
        self._pool = Pool(self.connections, self.stall_timeout, headers, proxy(self.endpoint))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def call(
        self,
        what: str,
        method: str,
        path: str,
        query: Mapping[str, str | int | None] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | RequestBody = b"",
        most: int = ANSWER,
    ) -> WholeResponse:
        """Make a request as often as its safety and the policy allow, and return the reply.

        Raises HttpError for a status from 300 on, with the report; `what` is how it names the request. Parameters in
        `query` that are None are left out. A response that takes too long has failed, and one of more than `most`
        bytes (ANSWER or PAGE) is a WrongResponse.
        """
        url = self.url(path, query)
        attempt = partial(self._attempt, method, url, headers or {}, body or None, self._source)
        call = StorageCall(self._settings, method, url, headers or {}, body, attempt, seconds=self._seconds, most=most)
        response = await call.run()
        if response.status < 300:
            return WholeResponse(response.status, response.headers, call.body)
        error = await self.refusal(what, response)  # whoever redirects has done nothing
        if call.report is not None:
            attach(error, call.report)
        raise error

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, headers: Mapping[str, str], body: Callable[[], RequestBody] | None = None
    ) -> AsyncGenerator[Response]:
        """Make one attempt of a request for data, or with data, and hand out the response whatever its status.

        Whether there is another is the caller's to decide. Only a response that the credentials have expired (401) is
        answered here, once, by sending the request anew, with a new `body`: that one was not executed. Another host of
        the service, to which a session's own URL may lead, is not shown the credentials; any other is sent nothing.
        """
        source = self._source
        if not url.startswith(f"{self.endpoint}/"):
            self.home(url, f"{method} data")
            source = NO_TOKENS
        data = None if body is None else body()
        async with await self._attempt(
            method, url, headers, data, source, {}, Deadline(self._seconds, data)
        ) as response:
            yield response

    async def read(self, response: Response) -> bytes:
        """Read the body of a response of `stream` that brings no data, within the bounds of `call`."""
        return await read_whole(response, ANSWER, Deadline(self._seconds))

    async def refusal(self, what: str, response: Response) -> HttpError:
        """Return the error for a response of 300 or more, with the server's own message; `what` names the request."""
        return await refusal(what, response, self._seconds)

    def url(self, path: str, query: Mapping[str, str | int | None] | None = None) -> str:
        """The URL of a request: `path` is percent-encoded, `query` is not."""
        given = (*(query or {}).items(), *self._project.items())
        text = "&".join(f"{name}={_quoted(str(value))}" for name, value in given if value is not None)
        return f"{self.endpoint}{path}?{text}" if text else f"{self.endpoint}{path}"

    def is_home(self, url: str) -> bool:
        """Return whether data may go to `url`, which a server or a file has named: it belongs to the endpoint."""
        return is_home(url, self.endpoint)

    def home(self, location: str, what: str) -> str:
        """Return the URL that a Location names; WrongResponse where data may not go there."""
        try:
            url = urljoin(f"{self.endpoint}/", location)
        except ValueError:
            url = ""
        if self.is_home(url):
            return url
        raise WrongResponse(
            f"{what}: the server names {origin(url)} as the place for the data, which does not belong to "
            f"{self.endpoint}",
            "look at what answers; an emulator must be told the address that clients know it by",
        )

    def verdict(self, error: Exception, request: Request | None = None) -> Verdict:
        """What an error of `stream`, or an HttpError for the reply to it, means; `request` is what was asked for."""
        if isinstance(error, HttpError):
            judgement = self._service.classify(request or _ANY)
            return self._service.verdict(judgement, error.status, error.headers) or PERMANENT
        return verdict(error)

    async def stat(self, url: Url) -> Object | None:
        """What is there, None where there is nothing."""
        try:
            reply = await self.call(f"look at {url}", "GET", url.path, {"generation": url.generation, "fields": FIELDS})
        except HttpError as error:
            if error.status != 404:
                raise
            return None
        return Object.of(reply.json())

    async def objects(
        self, bucket: str, prefix: str = "", *, delimiter: str | None = None
    ) -> AsyncIterator[Object | Url]:
        """The live objects whose names begin with `prefix`, by name.

        With a `delimiter`, those beyond the next one come as one Url, of the names' common beginning.
        """
        token: str | None = None
        what = f"list gs://{bucket}/{prefix}"
        path, pages = Url(bucket).list_path, Pages(what)
        fields = f"kind,nextPageToken,prefixes,items({FIELDS})"
        last = {Object: "", Url: ""}
        while True:
            query = {"prefix": prefix or None, "delimiter": delimiter, "pageToken": token, "maxResults": _PAGE}
            page = _page(what, await self.call(what, "GET", path, {**query, "fields": fields}, most=PAGE))
            listed = _listed(what, page, bucket)
            for found in listed:
                if found.bucket != bucket or not found.name.startswith(prefix):  # its name would be cut as if it did
                    raise WrongResponse(f"{what}: {found.url if isinstance(found, Object) else found} is not there")
                before, last[type(found)] = last[type(found)], found.name
                if found.name <= before:
                    how = "twice" if found.name == before else f"after {before!r}, not in order of names"
                    raise WrongResponse(f"{what}: {found.name!r} comes {how}")
                yield found
            token = pages.turned(page.get("nextPageToken"), empty=not listed)
            if token is None:
                return

    async def is_folder(self, url: Url) -> bool:
        """Whether there are objects below a name: folders are nothing else in the cloud."""
        query = {"prefix": url.prefix or None, "maxResults": 1, "fields": "kind,items(name)"}
        what = f"list {url}"
        return bool(_page(what, await self.call(what, "GET", url.list_path, query)).get("items"))

    async def delete(self, item: Object) -> None:
        """Delete one version of an object; that it is gone already is no error."""
        query = {"generation": item.generation}
        try:
            await self.call(f"delete {item.url}", "DELETE", item.url.path, query)
        except HttpError as error:
            if error.status != 404:
                raise

    @property
    def _opened(self) -> Pool:
        if self._pool is None:
            raise RuntimeError(_NOT_ENTERED)
        return self._pool

    @property
    def _source(self) -> Tokens:
        if self._tokens is None:
            raise RuntimeError(_NOT_ENTERED)
        return self._tokens

    async def _attempt(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | RequestBody | None,
        source: Tokens,
        more: Mapping[str, str],
        deadline: Deadline,
    ) -> Response:
        """Send a request once; with other credentials once more where the response is that these have expired."""
        pool = self._opened
        authorised = await source.headers()
        async with deadline:
            response = await pool.request(method, url, {**headers, **more, **authorised}, body)
        if response.status != 401:
            return response
        try:
            renewed = await source.renew(authorised)
        except BaseException:
            response.close()  # nobody else has it yet, and it keeps its connection
            raise
        if not renewed:
            return response
        response.close()
        async with deadline:
            return await pool.request(method, url, {**headers, **more, **await source.headers()}, body)


def _page(what: str, reply: WholeResponse) -> dict[str, Any]:
    """Return a page of a listing; WrongResponse for anything else, which would count as an empty page and the last one."""
    page = reply.json()
    if reply.status != 200 or page.get("kind") != "storage#objects":
        kind = text_of(ValueError(page.get("error", page.get("kind"))))[:80]
        raise WrongResponse(f"{what}: the answer is no listing: {reason(reply.status)}, {kind}")
    return page


def _listed(what: str, page: Mapping[str, Any], bucket: str) -> list[Object | Url]:
    """Return what a page lists."""
    items, prefixes = (list[object]() if page.get(name) is None else page[name] for name in ("items", "prefixes"))
    if not isinstance(items, list) or not isinstance(prefixes, list):
        raise WrongResponse(f"{what}: the items are no list")
    if not all(isinstance(name, str) for name in cast("list[object]", prefixes)):
        raise WrongResponse(f"{what}: a folder has no name")
    found: list[Object | Url] = [Object.of(resource) for resource in cast("list[dict[str, Any]]", items)]
    return found + [Url(bucket, name) for name in cast("list[str]", prefixes)]


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    """Percent-encoded; most parameters have the same few values, one of them long."""
    return quoted(text)


def _heard(policy: Policy) -> Policy:
    """The policy, with the meters told of its events besides its own listener."""
    own = policy.on_event
    if own is None:
        return policy.with_on_event(forward)

    def both(event: Event) -> None:
        forward(event)
        own(event)

    return policy.with_on_event(both)


def _service(policy: Policy) -> "HttpService":
    if policy.service is None or policy.service.name != "cloud_storage":
        raise ValueError(
            f"`policy` must be one of Cloud Storage, such as cloud_storage.policy.with_timeout(60), got {policy!r}"
        )
    return policy.service


@dataclass(frozen=True, slots=True)
class Settings:
    """What to open a Storage with; see there."""

    endpoint: str | None = None
    credentials: Credentials | None = None
    policy: Policy | None = None
    connections: int = CONNECTIONS
    stall_timeout: float = STALL_TIMEOUT
    user_project: str | None = None

    def storage(self) -> Storage:
        """A Storage to be entered."""
        return Storage(
            endpoint=self.endpoint,
            credentials=self.credentials,
            policy=self.policy,
            connections=self.connections,
            stall_timeout=self.stall_timeout,
            user_project=self.user_project,
        )


_MOST_QUESTIONS = 16
"""How many answers in a row must be "nothing is there" before uploads guess again: so, however many of the targets are
there, about one in forty files at the most is sent twice."""


class Expectation:
    """A record of what is at the targets of uploads, shared by all uploads of one Storage.

    The first upload guesses. Those that begin before it has found out ask, so that a wrong guess costs no more than one
    upload; once it was right all others guess, too.
    """

    __slots__ = ("_first", "_is_allowed", "_questions")

    def __init__(self) -> None:
        self._first = True
        self._is_allowed = True
        self._questions = 1

    def asks(self) -> bool:
        """Return whether an upload that begins now asks first."""
        first, self._first = self._first, False
        return self._is_allowed and self._questions > 0 and not first

    def met(self, *, there: bool) -> None:
        """Learn whether something was at a target."""
        self._questions = _MOST_QUESTIONS if there else max(self._questions - 1, 0)

    def forbid(self) -> None:
        """Learn that this user may not ask: some may only create objects."""
        self._is_allowed = False
