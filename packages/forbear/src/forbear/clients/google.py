"""Retry objects for Google's generated clients (IAM, Memorystore, Cloud Storage over gRPC), sync and async.

An object is made for one RPC, and judges each request message by the table of its service. It works with the gRPC and
the REST transport.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

try:
    from google.api_core import retry as api_retry
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from requests import RequestException
except ImportError as error:
    raise ImportError(
        'forbear.clients.google needs google-api-core; install it with: pip install "forbear[google]"'
    ) from error

from forbear.clients._gapic import fill_key, install_in
from forbear.core.backoff import Exponential
from forbear.exchange.arepeat import arepeat
from forbear.exchange.chosen import choose, refuse_unraised
from forbear.exchange.grpc import Rpc, Rpcs
from forbear.exchange.repeat import repeat
from forbear.exchange.settling import read_settle
from forbear.grpc.vouch import RpcPattern, RpcVouch
from forbear.policy import Policy
from forbear.services.rpcs import rules

if TYPE_CHECKING:
    from typing import Unpack

    from forbear.exchange.call_state import RetriedCall
    from forbear.exchange.settling import RpcReadBack, SettleRpcs
    from forbear.grpc.call import GrpcCall
    from forbear.grpc.vouch import SafeRpcs
    from forbear.run.derive import ClientOptions

C = TypeVar("C")
P = ParamSpec("P")
T = TypeVar("T")

_RAISED = (GoogleAPIError, GoogleAuthError, RequestException)
"""The bases of what a call raises; the last one is of REST transports."""


def retry_for(
    method: str,
    policy: Policy | None = None,
    *,
    safe: "bool | Callable[[GrpcCall], bool]" = False,
    **options: "Unpack[ClientOptions]",
) -> "Retry":
    """Return the object to pass as `retry=` to a call of the RPC `method`.

    - `method` is a full name, such as "google.iam.admin.v1.IAM/CreateRole".
    - `policy` is by default the recommended one of the service; another one brings its limits, backoff and `on`. The
      keywords of `forbear.retry` but `on`, such as `attempts=3, timeout=30`, change it.
    - Errors of a REST transport are judged by their HTTP status, those of gRPC by their code. If an attempt may have
      been executed, the call is repeated only where the table allows it for this request message. Pushback, RetryInfo
      and Retry-After are obeyed.
    - `safe` True vouches for the RPC: it may be executed twice, whatever the table says. A function that takes the call
      (`forbear.grpc.call.GrpcCall`) and returns a bool vouches for some calls. With `safe`, the RPC may be one of any
      API; without a `policy` it gets that of RFC 9110.
    - The original error is raised, with a note and a report.
    - Of a stream of responses only the opening is retried.

    Raises ValueError for an RPC that no table knows if `safe` is False, and for a name that no RPC has. Raises
    TypeError if `method` is no string, or `safe` neither a bool nor a function.

    >>> retry = retry_for("google.storage.v2.Storage/GetObject", attempts=3)
    >>> retry(lambda request: request["object"].upper())({"object": "photo"})
    'PHOTO'
    >>> retry_for("example.v1.Orders/PlaceOrder")
    Traceback (most recent call last):
        ...
    ValueError: `method` must be the full name of an RPC of Google or ...
    """
    return Retry(_find_rpc("retry_for", method, policy, safe, options))


def async_retry_for(
    method: str,
    policy: Policy | None = None,
    *,
    safe: "bool | Callable[[GrpcCall], bool]" = False,
    **options: "Unpack[ClientOptions]",
) -> "AsyncRetry":
    """Return the object to pass as `retry=` to a call of an async client. Example: see `retry_for`."""
    return AsyncRetry(_find_rpc("async_retry_for", method, policy, safe, options))


def install(
    client: C,
    policy: Policy | None = None,
    *,
    safe: "SafeRpcs" = (),
    settle: "SettleRpcs" = False,
    **options: "Unpack[ClientOptions]",
) -> C:
    """Put forbear's retries into a generated client, and return it: `install(redis_v1.CloudRedisClient())`.

    Each method gets the retry object of its RPC as its default, sync or asyncio, over gRPC or REST. Google's own
    defaults repeat what must not be executed twice, too. An empty `request_id` is filled, where the API promises to
    execute a second request with it only once; all attempts, also those of a run around the call, send the same one. A
    call with its own `retry=` keeps that, and gets none; `retry=None` turns retries off. A client of Firestore has a
    generated one inside, which gets them.

    `safe` has the RPCs that may be executed twice, and `settle` says whether a Get may settle a conflict of one's own
    making, as in `forbear.clients.grpc.RetryInterceptor`. The other parameters are those of `retry_for`. TypeError for
    any other object, ValueError for a client with forbear's retries.
    """
    kinds = partial(Retry, fills=True), partial(AsyncRetry, fills=True)
    chosen, changes = choose("install", policy, options, ("safe", "settle"))
    rpcs = Rpcs(chosen, RpcVouch(safe, settle=read_settle(settle)), changes, _RAISED)
    install_in(getattr(client, "_firestore_api", client), rpcs, kinds)
    return client


class _ForRpc(api_retry.retry_base._BaseRetry):
    """The base of both kinds: the RPC, and the `with_…` methods of Google's objects.

    With `fills`, a call whose request may have a key, and has none, gets one. `stubs` are those of the client, by the
    paths of their RPCs, for the reads that settle a conflict.
    """

    def __init__(
        self, rpc: Rpc, *, fills: bool = False, stubs: "Mapping[str, Callable[..., Any]] | None" = None
    ) -> None:
        backoff = rpc.policy.backoff
        shown: dict[str, Any] = {}  # for code that reads Google's attributes
        if isinstance(backoff, Exponential):
            shown = {"initial": backoff.initial, "maximum": backoff.maximum, "multiplier": backoff.multiplier}
        super().__init__(timeout=rpc.policy.limits.timeout, **shown)
        self._rpc = rpc
        self._fills = fills
        self._stubs = stubs or {}

    def _read(self, options: "Mapping[str, Any]", look: "RpcReadBack") -> Any:
        """Send the read of a call that has these options, by the stub of its RPC; an async one is awaited later."""
        return self._stubs[look.method](
            look.request, timeout=look.timeout, metadata=look.route(options.get("metadata"))
        )

    def _begin(self, args: tuple[Any, ...], *, awaits: bool = False) -> "tuple[RetriedCall, Any, tuple[Any, ...]]":
        """Return the state of a call, its request, and the arguments with which all its attempts are made."""
        if not args:
            return self._rpc.begin(awaits=awaits), None, args
        message, key = fill_key(self._rpc.method, args[0], self) if self._fills else (args[0], None)
        return self._rpc.begin(None, message, awaits=awaits, key=key), message, (message, *args[1:])

    def with_timeout(self, timeout: float | None) -> Self:
        limits = self._rpc.policy.limits
        unlimited = limits.unlimited or timeout is None
        return self._with(limits=limits.replace(timeout=timeout, unlimited=unlimited))

    def with_predicate(self, predicate: Callable[[Exception], bool]) -> Self:
        """Return a copy that retries only the errors that `predicate` accepts."""
        return self._with(on=predicate, service=None)

    def with_delay(
        self, initial: float | None = None, maximum: float | None = None, multiplier: float | None = None
    ) -> Self:
        """Return a copy whose waits have full jitter under these delays, in seconds; None keeps a value.

        The wait before retry n (from 0) is random, at most `initial * multiplier**n` and at most `maximum`.
        """
        backoff = Exponential(
            self._initial if initial is None else initial,
            self._multiplier if multiplier is None else multiplier,
            self._maximum if maximum is None else maximum,
            jitter="full",
        )
        return self._with(backoff=backoff)

    def __reduce__(self) -> "tuple[Callable[..., Self], tuple[Rpc]]":
        # Google's default predicate cannot be pickled, nor can the stubs of a channel
        return partial(type(self), fills=self._fills), (self._rpc,)

    def _with(self, **changes: Any) -> Self:
        rpc = self._rpc
        changed = Rpc(rpc.method, rpc.policy.replace(**changes), vouch=rpc.vouch, option=rpc.option)
        return type(self)(changed, fills=self._fills, stubs=self._stubs)


class Retry(_ForRpc, api_retry.Retry):
    """A `google.api_core.retry.Retry` for one RPC; `retry_for` makes it."""

    def __call__(self, func: Callable[P, T], on_error: Callable[[Exception], Any] | None = None) -> Callable[P, T]:
        """Return `func` with retries. `func` sends the request message, which is its first argument.

        `on_error` is called with each error worth a retry, even if no other attempt follows, as google-api-core does.
        """

        @wraps(func)
        def retried(*args: P.args, **kwargs: P.kwargs) -> T:
            call, message, sent = self._begin(args)
            send, read = partial(func, *sent, **kwargs), partial(self._read, kwargs)
            value: T = repeat(self._rpc, call, message, send, read, on_error)
            return value

        return retried


class AsyncRetry(_ForRpc, api_retry.AsyncRetry):
    """A `google.api_core.retry.AsyncRetry` for one RPC; `async_retry_for` makes it."""

    def __call__(
        self, func: Callable[..., Awaitable[T]], on_error: Callable[[Exception], Any] | None = None
    ) -> Callable[P, Awaitable[T]]:
        @wraps(func)
        async def retried(*args: P.args, **kwargs: P.kwargs) -> T:
            call, message, sent = self._begin(args, awaits=True)
            send, read = partial(func, *sent, **kwargs), partial(self._read, kwargs)
            value: T = await arepeat(self._rpc, call, message, send, read, on_error)
            return value

        return retried


def _find_rpc(
    function: str, method: str, policy: Policy | None, safe: "bool | Callable[[GrpcCall], bool]", options: Any
) -> Rpc:
    rule = (
        "`method` must be the full name of an RPC of Google or of one whose definition is loaded, such as "
        f'"google.iam.admin.v1.IAM/CreateRole", or one that you vouch for by `safe`; got {method!r}'
    )
    if not isinstance(method, str):
        raise TypeError(rule)
    if not isinstance(safe, bool) and not callable(safe):
        raise TypeError(f"`safe` must be True, False or a function of the call, got {safe!r}")
    try:
        pattern = RpcPattern(method)
    except ValueError:
        raise ValueError(rule) from None
    if pattern.after is not None:
        raise ValueError(rule)
    vouch = RpcVouch(safe) if callable(safe) else RpcVouch([method] if safe else ())
    policy, changes = choose(function, policy, options, ("safe",))
    rpc = Rpc(method, policy, vouch=vouch, option="safe=True", changes=changes)
    refuse_unraised(policy, _RAISED)
    if safe is False and not rules.is_known(pattern.text.removeprefix("/"), rpc.service):
        raise ValueError(rule)
    return rpc
