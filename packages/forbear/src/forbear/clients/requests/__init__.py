"""An adapter for the sessions of requests that retries requests; `install` puts it into a session that exists."""

from functools import partial
from typing import Any
from weakref import ref

try:
    import requests
    from requests.adapters import HTTPAdapter
except ImportError as error:
    raise ImportError(
        'forbear.clients.requests needs requests; install it with: pip install "forbear[requests]"'
    ) from error

from forbear.clients.requests.port import RequestsPort
from forbear.clients.requests.response import attach_report, continue_body, read
from forbear.exchange.http.drive import drive
from forbear.exchange.http.options import BUFFER, read_options
from forbear.policy import Policy
from forbear.run.switch import is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar, Unpack

    from forbear.exchange.http.settling import Settle
    from forbear.http.vouch import Apis, Safe
    from forbear.run.derive import ClientOptions

    S = TypeVar("S", bound=requests.Session)


_RAISED = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.ContentDecodingError,
)


class RetryAdapter(HTTPAdapter):
    """An adapter that retries requests: `session.mount("https://", RetryAdapter())`.

    It works on google-auth's AuthorizedSession, too.

    - `policy`: without one, known hosts get the recommended policy of their service, and other hosts that of RFC 9110.
      A service's policy, such as `cloud_storage.policy`, applies to every host, emulators included. Any other policy
      brings its limits, backoff and `on`; known hosts keep their tables. For a policy for some URLs, mount an adapter
      at their prefix.
    - The keywords of `forbear.retry` but `on`, such as `attempts=3, timeout=30`, change that policy. Tables stay.
    - `safe`: requests that may be executed twice, as you vouch: patterns such as
      "POST https://api.example.com/v1/search*" (`*` stops at "/"), or a function that takes the
      `forbear.http.request.Request`.
    - `apis`: what you know of APIs, as `forbear.Api` values: their statuses, keys, waits and safe requests.
    - `settle`: whether a read may say what became of a write, if a later attempt finds it done. True: the state counts,
      whoever made it. Patterns as for `safe`: so for these requests. A function `mine(sent, read)` of two resources:
      whether they are the same write. False (default): you get the conflict.
    - `buffer`: the bytes (8 MiB) that are kept of a body that can be read only once, so that it can be sent again.

    Everything else is as in HTTPAdapter, whose own `max_retries` is off: two layers of retries multiply.

    The policy's `attempt_timeout` (seconds) limits the timeouts of the request. It limits each wait for the network,
    not a response that keeps arriving slowly.

    You get the last response as requests returns it. `forbear.report(response)` is its report if forbear gave up. A GET
    body that breaks is continued where that is safe, through `content`, `iter_content` and `raw`. A short response (at
    most 64 KiB) to a write that breaks counts as lost: the write is repeated if it is always safe. Otherwise the note
    and the report (`maybe_done`) say that it had succeeded, as they do where a longer one breaks.

    >>> import requests
    >>> with requests.Session() as session:
    ...     session.mount("http://", RetryAdapter(attempts=3))
    ...     session.get(cloud.url + "/storage/v1/b/my-bucket").status_code
    200
    """

    __attrs__ = [*HTTPAdapter.__attrs__, "_options"]  # noqa: RUF012 - what is pickled, declared there

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        safe: "Safe" = (),
        apis: "Apis" = (),
        settle: "Settle" = False,
        buffer: int = BUFFER,
        pool_connections: int = 10,
        pool_maxsize: int = 10,
        pool_block: bool = False,
        **options: "Unpack[ClientOptions]",
    ) -> None:
        self._options = read_options(
            "RetryAdapter", policy, options, _RAISED, safe=safe, apis=apis, settle=settle, buffer=buffer
        )
        super().__init__(pool_connections, pool_maxsize, max_retries=0, pool_block=pool_block)

    def __repr__(self) -> str:
        return self._options.show_as("RetryAdapter")

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """Send a request as often as its policy allows; return the last response or raise the last error."""
        send = partial(super().send, stream=stream, verify=verify, cert=cert, proxies=proxies)
        if is_off():
            return send(request, timeout=timeout)
        port = RequestsPort(self._options, send, request, timeout)
        response = drive(port)
        if port.needs_reader(response):
            if stream or "content-encoding" in response.headers:
                response = continue_body(port, response, whole=not stream)
                port.raw = ref(response.raw)
            else:
                read(port, response)  # the session would, and takes longer
        if port.report is not None:
            attach_report(response, port.report)
        return response


def install(session: "S", policy: Policy | None = None, **options: "Any") -> "S":
    """Put retries into a session that exists already, and return it.

    A RetryAdapter with the options replaces each of its adapters, and has the same pools. TypeError for other objects
    and for adapters of another class, ValueError for adapters that retry. The session is then as it was.

    >>> import requests
    >>> from forbear_cloud import Fault
    >>> cloud.fault(Fault.status(503))
    >>> with install(requests.Session(), attempts=3) as session:
    ...     session.get(cloud.url + "/storage/v1/b/my-bucket").status_code
    200
    """
    if not isinstance(session, requests.Session):
        raise TypeError(f"`client` must be a requests.Session, got {session!r}")
    replaced: dict[str, RetryAdapter] = {}
    for prefix, present in session.adapters.items():
        if isinstance(present, RetryAdapter):
            raise ValueError("`client` has forbear's retries already; install them once, or make a new session")
        if type(present) is not HTTPAdapter:
            raise TypeError(
                "`client` must have plain adapters, which can be replaced; "
                f"got {type(present).__qualname__} for {prefix}: mount a RetryAdapter at other prefixes instead"
            )
        plain: Any = present
        if plain.max_retries.total:
            raise ValueError(
                f"`client` must not retry by itself, or retries would multiply: make the adapter for {prefix} without "
                "max_retries"
            )
        pools = {name: getattr(plain, f"_{name}") for name in ("pool_connections", "pool_maxsize", "pool_block")}
        replaced[prefix] = RetryAdapter(policy, **pools, **options)
    for prefix, adapter in replaced.items():
        session.mount(prefix, adapter)
    return session
