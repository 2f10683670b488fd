"""Retries of the storage client: of one request, and of transfers that continue and make progress."""

import os
from collections.abc import Awaitable, Callable, Mapping
from itertools import starmap
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import urlsplit

from forbear import Policy
from forbear.adapters import (
    AsyncHttpSender,
    DetailedFailure,
    FixedBody,
    HostBudgets,
    HttpBody,
    HttpOptions,
    Request,
    RequestIds,
    Run,
    Spending,
    Variation,
    add_wait,
    admit,
    adrive,
    count_success,
    current_runtime,
    find_wait,
    refuse_for_clients,
    request_ids,
    retries_are_off,
)
from forbear.events import Event
from forbear.verdicts import PERMANENT, TRANSIENT, Verdict
from forbear_transfer.errors import HttpError, Stalled
from forbear_transfer.objects import Url
from forbear_transfer.progress import forward
from forbear_transfer.storage.bodies import RequestBody, read_whole
from forbear_transfer.wire.origin import split
from forbear_transfer.wire.response import Response, WireError

IDEMPOTENCY = "x-goog-gcs-idempotency-token"

_take_groups = itemgetter(*starmap(slice, ((0, 8), (8, 12), (13, 16), (17, 20), (20, 32))))
_READ = Request("GET", "storage.googleapis.com", "/storage/v1/b/-/o/-")


class StorageCall(AsyncHttpSender[Response]):
    """One request through its attempts; `body` is the whole body of a successful response (below 300).

    `attempt` sends the request once, with additional headers. `content` is its body. A response may have `most` bytes.
    `absent` is the status that says that there is no such object, if that is an answer. The `headers` of a write have
    its token, so that a first attempt that succeeds needs nothing else.
    """

    def __init__(
        self,
        settings: HttpOptions,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | RequestBody,
        attempt: Callable[[Mapping[str, str]], Awaitable[Response]],
        most: int,
        absent: int | None,
    ) -> None:
        self.body = b""
        self._url = url
        self._own = headers
        self._content = content
        self._attempt = attempt
        self._most = most
        self._absent = absent
        super().__init__(settings, method, plain=isinstance(content, bytes))

    def _target(self) -> tuple[str, str]:
        server, path = split(self._url)
        return server.host, path

    def _scheme_and_port(self) -> tuple[str, int | None]:
        server, _ = split(self._url)
        return server.scheme, server.port

    def _headers(self) -> Mapping[str, str]:
        return {name.lower(): value for name, value in self._own.items()}

    def _adds_token(self) -> bool:
        return False

    def _read_body(self) -> HttpBody:
        return FixedBody(self._content) if isinstance(self._content, bytes) else self._content

    async def run(self) -> Response:
        """Send the request as often as its safety and the policy allow, and return the last response.

        If retries are turned off, send it once.
        """
        if not retries_are_off():
            return await adrive(self)
        response = await self.first()
        if self.is_read_at_once(response):
            await self.settle(response)
        return response

    async def first(self) -> Response:
        return await self._attempt({})

    async def send(self, variation: Variation, limit: float | None) -> Response:
        return await self._attempt(variation.headers)

    async def read_copy(self, response: Response) -> Response:
        """Return the response: `on_result` sees its status and headers."""
        return response

    def status(self, response: Response) -> int:
        """Return the status of a response, 200 for `absent`: that is an answer, and no failure."""
        return 200 if response.status == self._absent else response.status

    def is_read_at_once(self, response: Response) -> bool:
        """Return whether the whole response is read at once: if its status is below 300. Errors are read later."""
        return response.status < 300 or response.status == self._absent

    async def settle(self, response: Response) -> None:
        self.body = await read_whole(response, self._most)

    async def close(self, response: Response) -> None:
        response.close()

    def verdict(self, error: Exception) -> Verdict:
        return verdict(error)


def verdict(error: Exception, policy: Policy | None = None, request: Request | None = None) -> Verdict:
    """Return the verdict on an error of one attempt: that of a WireError, TRANSIENT for Stalled, else PERMANENT.

    An HttpError is judged by the service of `policy`, and by `request`, or else like a read of an object's metadata.
    """
    if isinstance(error, WireError):
        return error.verdict
    service = None if policy is None else policy.service
    if not isinstance(error, HttpError) or service is None:
        return TRANSIENT if isinstance(error, Stalled) else PERMANENT
    known = service.verdict(service.classify(request or _READ), error.status, error.headers)
    if known is None:
        return PERMANENT
    return add_wait(known, find_wait(error.headers, error.status, now=current_runtime().now))


def new_token() -> str:
    """Return a new random token (a UUID) for one write, to be sent with all its attempts."""
    digits = os.urandom(16).hex()  # the module uuid takes longer, and long to import
    return "{}-{}-4{}-a{}-{}".format(*_take_groups(digits))


class Sent(NamedTuple):
    """The subject of a transfer's reports: the HTTP method, and the address of the object."""

    method: str
    url: Url | str

    @property
    def resource(self) -> str:
        """The address as text: "gs://bucket/name"."""
        return str(self.url)

    def __str__(self) -> str:
        """Return the name of the transfer in errors, such as "download gs://bucket/name"; most need no such text."""
        return f"{'download' if self.method == 'GET' else 'upload'} {self.url}"


class Retries:
    """The retries of a transfer that continues where it stopped; each progress resets the limits of the policy.

    `sent` says in reports what is sent, and `operation` is the name of the operation there, by default the text of
    `sent`. A PUT is part of a resumable upload.
    """

    def __init__(self, policy: Policy, sent: Sent, operation: str = "") -> None:
        self._policy = policy
        self._sent = sent
        self._operation = operation
        self._run: Run | None = None
        self._spending = None if policy.budget is None else Spending(policy.budget)
        self._is_counted = False

    def begin(self) -> None:
        """Count the attempt that begins now in the policy's budget, unless it is a retry, which is counted already.

        Raises Throttled, with a report, if the budget refuses it.
        """
        if self._spending is not None and not self._is_counted:
            self._is_counted = True
            admit(self._spending, current_runtime(), self._record_begin)

    def progressed(self) -> None:
        """Reset the retries: the next failure counts as the first one. The policy's budget gets its deposit."""
        run, self._run = self._run, None
        self._is_counted = False
        count_success(run, self._policy, self._spending)

    async def after(self, error: Exception, verdict: Verdict) -> None:
        """Wait before the next attempt as the policy says; raise `error`, with a report, if no retry is left."""
        runtime = current_runtime()
        self._run = run = self._run or self._record_begin()
        status: int | None = None
        ids: RequestIds = ()
        if isinstance(error, HttpError):
            status, ids = error.status, request_ids(error.headers, resumable=self._sent.method == "PUT")
        grant = run.after(DetailedFailure(verdict, error, details=(runtime.now(), status, ids)))
        if grant is None or not await grant.aask():
            raise error
        self._is_counted = True
        await grant.asleep()

    def _record_begin(self) -> Run:
        runtime, spending = current_runtime(), self._spending
        started = runtime.monotonic()
        name = self._operation or str(self._sent)
        return Run(self._policy, name, runtime, started, awaits=True, subject=self._sent, spending=spending)


def adapt_policy(policy: Policy, endpoint: str) -> Policy:
    """Return a policy whose events go to the current progress, too.

    ValueError unless it is one of Cloud Storage, whose rules are for clients. Of a budget per host it has the one for
    the endpoint, to which all requests go.
    """
    refuse_for_clients(policy, "leave it out: transfers know which of their requests may be executed twice")
    if policy.service is None or policy.service.name != "cloud_storage":
        example = "cloud_storage.policy.with_timeout(60)"
        raise ValueError(f"`policy` must be one of Cloud Storage, such as {example}, got {policy!r}")
    if isinstance(policy.budget, HostBudgets):
        policy = policy.with_budget(policy.budget.of(urlsplit(endpoint).netloc, "cloud_storage"))
    own = policy.on_event

    def forward_both(event: Event) -> None:
        forward(event)
        if own is not None:
            own(event)

    return policy.with_on_event(forward if own is None else forward_both)
