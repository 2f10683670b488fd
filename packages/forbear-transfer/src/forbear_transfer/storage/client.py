"""The storage client: a Storage with the connections to Cloud Storage, and Settings that describe one."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Self
from urllib.parse import urljoin

from forbear import Policy
from forbear.adapters import HiddenText, HttpOptions, Request, attach_report, dataclass, field
from forbear.services import cloud_storage
from forbear.verdicts import Verdict
from forbear_transfer.encryption import EncryptionKey, matching
from forbear_transfer.errors import HttpError, WrongResponse
from forbear_transfer.objects import FIELDS, Object, Url, quote_all
from forbear_transfer.storage.bodies import (
    ANSWER,
    RequestBody,
    WholeResponse,
    http_error,
    read_whole,
    seconds_of,
)
from forbear_transfer.storage.calls import IDEMPOTENCY, StorageCall, adapt_policy, new_token, verdict
from forbear_transfer.storage.credentials import ANONYMOUS, NO_TOKENS, Credentials, Tokens, tokens
from forbear_transfer.storage.endpoint import (
    ENDPOINT,
    check_endpoint,
    check_headers,
    conceal_key,
    is_private,
    is_trusted,
    origin,
    proxy,
)
from forbear_transfer.storage.expectation import Expectation
from forbear_transfer.storage.listing import list_objects, parse_page
from forbear_transfer.wire.pool import Pool
from forbear_transfer.wire.response import Response
from forbear_transfer.wire.watched import RateLimit

EMULATOR_VARIABLE = "STORAGE_EMULATOR_HOST"
CONNECTIONS = 64
STALL_TIMEOUT = 60.0
_NO_HEADERS: Mapping[str, str] = {}
_NOT_ENTERED = "a Storage must be entered before it is used: `async with Storage() as storage:`"


class Storage:
    """One pool of connections to Cloud Storage: `async with Storage() as storage:`.

    `endpoint` is a URL, by default $STORAGE_EMULATOR_HOST or the real service. `credentials` are by default the
    application default ones, and none if `endpoint` or that variable is set. `policy` limits the retries of every
    request and must be one of Cloud Storage; its attempt_timeout does not apply to data. `connections` is the largest
    number of connections (64). `stall_timeout` is the number of seconds without a byte after which a connection is
    closed (60). `user_project` pays for requests to buckets whose requester pays. `headers` are added to every request
    to the endpoint, for test servers; they cannot replace those that transfers need. `limit_rate` is the largest number
    of bytes per second, sent and received together (None: no limit). Example: see `upload`.
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
        headers: Mapping[str, str] | None = None,
        limit_rate: float | None = None,
    ) -> None:
        emulator = endpoint or os.environ.get(EMULATOR_VARIABLE)
        self.endpoint = check_endpoint(emulator or ENDPOINT)
        self.connections = connections
        self.policy = adapt_policy(policy or cloud_storage.policy, self.endpoint)
        self._credentials = credentials or (ANONYMOUS if emulator else Credentials())
        if not self._credentials.anonymous and not is_private(self.endpoint):
            raise ValueError(
                f"`credentials` must be anonymous where the endpoint is {self.endpoint}: over plain http anybody on "
                "the way could read them; use https, or leave them out for an emulator"
            )
        self._extra = check_headers(headers or {}, self.endpoint)
        if "authorization" in self._extra and not self._credentials.anonymous:
            raise ValueError("`headers` must not set Authorization beside `credentials`; leave one of them out")
        if limit_rate is not None and not limit_rate > 0:
            raise ValueError(f"`limit_rate` must be more than 0 bytes per second, or None, got {limit_rate!r}")
        self._rate = None if limit_rate is None else RateLimit(limit_rate)
        self.stall_timeout = stall_timeout
        self.expectation = Expectation()
        self._project = {} if user_project is None else {"userProject": user_project}
        self._pool: Pool | None = None
        self._tokens: Tokens | None = None
        self._options = HttpOptions(self.policy.with_attempt_timeout(None))  # `seconds` limits each attempt
        self._seconds = seconds_of(self.policy)

    async def __aenter__(self) -> Self:
        self._tokens = await tokens(self._credentials, self.policy)
        headers = {"User-Agent": "forbear", "Accept-Encoding": "identity"}
        self._pool = Pool(self.connections, self.stall_timeout, headers, proxy(self.endpoint), self._rate)
        return self

    async def __aexit__(self, *_: object) -> None:
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
        absent: int | None = None,
    ) -> WholeResponse:
        """Make a request as often as its safety and the policy allow, and return the response.

        Raises HttpError, with the report, for a status from 300 on, except `absent`; `what` names the request in it.
        Parameters in `query` that are None are left out. A response that takes too long counts as failed. A successful
        response of more than `most` bytes raises WrongResponse.
        """
        url, headers = self.url(path, query), headers or {}
        if method != "GET":
            headers = {IDEMPOTENCY: new_token(), **headers}
        attempt = partial(self._attempt, method, url, headers, body or None, self._source)
        call = StorageCall(self._options, method, url, headers, body, attempt, most, absent)
        response = await call.run()
        if response.status < 300 or response.status == absent:
            return WholeResponse(response.status, response.headers, call.body)
        error = await self.error_for(what, response)  # a server that redirects has done nothing
        if call.report is not None:
            attach_report(error, call.report)
        raise error

    async def stream(
        self, method: str, url: str, headers: Mapping[str, str], body: Callable[[], RequestBody] | None = None
    ) -> Response:
        """Make one attempt of a request that receives or sends data; return the open response whatever its status.

        The caller decides on retries. Only a response that the credentials have expired (401) is handled here. The
        request, which was not executed, is then sent once more with renewed credentials, and its body is read anew. A
        session's own URL may lead to another host of the service, which gets no credentials. Any other host gets no
        request at all (WrongResponse).
        """
        url, source = HiddenText(url), self._source  # it may be that of a session
        if not url.startswith(f"{self.endpoint}/"):
            self.check_url(url, f"{method} data")
            source = NO_TOKENS
        response = await self._attempt(method, url, headers, None if body is None else body(), source)
        response.limit(None)
        return response

    async def read(self, response: Response) -> WholeResponse:
        """Return a response of `stream` with its body; WrongResponse for over 1 MiB, Stalled if it takes too long."""
        body = await read_whole(response, ANSWER, self._seconds)
        return WholeResponse(response.status, response.headers, body)

    async def error_for(self, what: str, response: Response) -> HttpError:
        """Return the error for a response of 300 or more, with the server's own message; `what` names the request."""
        return await http_error(what, response, self._seconds)

    def url(self, path: str, query: Mapping[str, str | int | None] | None = None) -> str:
        """Return the URL of a request: `path` is percent-encoded already; parameters that are None are left out."""
        asked = {**(query or {}), **self._project}
        text = "&".join([f"{name}={_quote(value)}" for name, value in asked.items() if value is not None])
        return f"{self.endpoint}{path}?{text}" if text else f"{self.endpoint}{path}"

    def is_trusted(self, url: str) -> bool:
        """Return whether data may be sent to a URL that a server or a file has named."""
        return is_trusted(url, self.endpoint)

    def check_url(self, location: str, what: str) -> str:
        """Return the absolute URL of `location`, a Location header; WrongResponse if data must not be sent there.

        It is a hidden text: whoever has the URL of an upload session may finish the upload. `what` names the request in
        the error.
        """
        try:
            url = urljoin(f"{self.endpoint}/", location)
        except ValueError:
            url = ""
        if self.is_trusted(url):
            return HiddenText(url)
        raise WrongResponse(
            f"{what}: the server names {origin(url)} as the place for the data, which does not belong to "
            f"{self.endpoint}",
            "check the server; an emulator must know the address that clients use",
        )

    def verdict(self, error: Exception, request: Request | None = None) -> Verdict:
        """Return the verdict on an error of `stream` or an HttpError; `request` is the one that failed."""
        return verdict(error, self.policy, request)

    def key_headers(self, key: EncryptionKey | None, *, of_source: bool = False) -> dict[str, str]:
        """Return the headers of a request that needs an encryption key, `of_source` for a copy's source; {} for None.

        From now on, no text of forbear shows the key, even if a server repeats it. TransferError if the endpoint is
        plain http on another machine.
        """
        return {} if key is None else conceal_key(key.headers(of_source=of_source), self.endpoint)

    async def stat(self, url: Url, keys: Sequence[EncryptionKey] = ()) -> Object | None:
        """Return the object at an address, None without one; its checksums need its customer-supplied key in `keys`."""
        there = await self._look(url, None)
        key = None if there is None else matching(there, keys)
        if there is None or key is None:
            return there
        return await self._look(there.url, key) or there  # it may be gone by now, which the caller will find out

    async def completed(self, listed: Object, keys: Sequence[EncryptionKey]) -> Object:
        """Return an object of a listing with its checksums, which listings lack for objects that have a key.

        Return it as it is if its customer-supplied key is not among `keys`, or if that version is gone meanwhile.
        """
        key = matching(listed, keys)
        if listed.crc32c is not None or (listed.key_sha256 is not None and key is None):
            return listed
        return await self._look(listed.url, key) or listed

    async def _look(self, url: Url, key: EncryptionKey | None) -> Object | None:
        query, headers = {"generation": url.generation, "fields": FIELDS}, self.key_headers(key)
        response = await self.call(f"look at {url}", "GET", url.path, query, headers=headers, absent=404)
        return None if response.status == 404 else Object.of(response.json())

    def objects(
        self, bucket: str, prefix: str = "", *, delimiter: str | None = None, versions: bool = False
    ) -> AsyncIterator[Object | Url]:
        """Yield the live objects, or all `versions`, with a prefix by name; by a `delimiter`, also folders as Urls."""
        return list_objects(self.call, bucket, prefix, delimiter, versions=versions)

    async def is_folder(self, url: Url) -> bool:
        """Return whether objects exist below a name, or at all in a bucket: folders in the cloud are nothing else."""
        what, query = f"list {url}", {"prefix": url.prefix or None, "maxResults": 1, "fields": "kind,items(name)"}
        return bool(parse_page(what, await self.call(what, "GET", url.list_path, query)).get("items"))

    async def delete(self, url: Url, query: Mapping[str, int | None] | None = None) -> None:
        """Delete an object, or the generation that `url` has, under preconditions; no error if it is gone (404)."""
        asked = {"generation": url.generation, **(query or {})}
        await self.call(f"delete {url}", "DELETE", url.path, asked, absent=404)

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
        more: Mapping[str, str] = _NO_HEADERS,
    ) -> Response:
        """Send a request once, or twice after a 401 if `source` has other credentials, and return the response."""
        pool = self._pool
        if pool is None:
            raise RuntimeError(_NOT_ENTERED)
        authorised = await source.headers()
        if self._extra and url.startswith(f"{self.endpoint}/"):
            headers = {**self._extra, **headers}
        response = await pool.request(method, url, {**headers, **more, **authorised}, body, self._seconds)
        if response.status != 401:
            return response
        try:
            renewed = await source.renew(authorised)
        except BaseException:
            response.close()  # the caller does not have it, and it holds a connection
            raise
        if not renewed:
            return response
        response.close()
        return await pool.request(method, url, {**headers, **more, **await source.headers()}, body, self._seconds)


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of a Storage, which describes them, as a value that can be sent to other processes.

    Example: see `perform_one`.
    """

    endpoint: str | None = None
    credentials: Credentials | None = None
    policy: Policy | None = None
    connections: int = CONNECTIONS
    stall_timeout: float = STALL_TIMEOUT
    user_project: str | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    limit_rate: float | None = None

    def storage(self) -> Storage:
        """Return a new Storage, which must be entered."""
        return Storage(**{name: getattr(self, name) for name in self.__slots__})


@lru_cache(maxsize=1024, typed=True)
def _quote(value: str | int) -> str:
    """Percent-encode a value of a query, with a cache; most values occur again and again, and one is long."""
    return quote_all(str(value))
