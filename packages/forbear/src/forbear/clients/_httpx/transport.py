"""The base of the transports of httpx and httpx2: their options, for each request; and `install`, for whole clients.

`install` wraps the transports of a client that exists already, also of one inside an SDK. They keep sending, so its
proxies, certificates, HTTP/2 and limits stay. They are private attributes of the client; only this module uses them.
"""

from typing import Any, ClassVar, Generic, TypeVar

from forbear.clients._httpx.errors import HttpxLibrary
from forbear.core.report import ATTRIBUTE, EXTENSION, Report
from forbear.exchange.http.options import BUFFER, HttpOptions, read_options
from forbear.policy import Policy
from forbear.run.switch import is_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from forbear.exchange.http.settling import Settle
    from forbear.http.vouch import Apis, Safe
    from forbear.run.derive import ClientOptions


OVERRIDE = "forbear"
"""The name of the request extension whose value is the policy of that request; the value None sends it once."""

Transport = TypeVar("Transport")
Req = TypeVar("Req")
Resp = TypeVar("Resp")


_OF_THE_OTHER_STYLE = frozenset({
    "handle_request", "close", "__enter__", "__exit__",
    "handle_async_request", "aclose", "__aenter__", "__aexit__",
})  # fmt: skip
"""The methods of a transport that only a sync client calls, and those that only an async one does."""


class RetryingBase(Generic[Transport, Req, Resp]):
    """The base of both transports: the options, and the wrapped transport that sends each attempt."""

    _library: ClassVar[HttpxLibrary]
    _names: ClassVar[tuple[str, str]]
    """The names, in the library, of the transport's base class and of a plain one."""

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        transport: Transport | None = None,
        safe: "Safe" = (),
        apis: "Apis" = (),
        settle: "Settle" = False,
        buffer: int = BUFFER,
        **options: "Unpack[ClientOptions]",
    ) -> None:
        library = self._library
        module, (base, plain) = library.module, self._names
        if transport is not None and not isinstance(transport, getattr(module, base)):
            raise TypeError(f"`transport` must be an {module.__name__}.{base} or None (a plain one), got {transport!r}")
        self._transport: Any = getattr(module, plain)() if transport is None else transport
        is_own = type(self._transport).__module__.partition(".")[0] == module.__name__  # another may raise anything
        raised = library.raised if is_own else ()
        own, name = ("transport",), "RetryTransport"
        self._options = read_options(
            name, policy, options, raised, own, safe=safe, apis=apis, settle=settle, buffer=buffer
        )

    if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError; for a method that a client of the other style calls, its text has the cure."""
            if name not in _OF_THE_OTHER_STYLE:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            kinds = ("AsyncClient", "AsyncRetryTransport"), ("Client", "RetryTransport")
            (client, needed), (_, own) = kinds if hasattr(type(self), "handle_request") else reversed(kinds)
            raise AttributeError(
                f"`transport` of {self._library.module.__name__}.{client} must be {needed}(), got {own}()"
            )

    def __repr__(self) -> str:
        return self._options.show_as(type(self).__name__)

    def _options_for(self, request: Any) -> HttpOptions | None:
        """Return the options for a request, None to send it once and unchanged.

        It is None while retries are off, and if the request's extension "forbear" is None. A policy in that extension
        replaces the transport's policy. TypeError for a request of the other library, httpx or httpx2: the transport
        could send it once, but would fail when it retries.
        """
        if not isinstance(request, self._library.Request):
            name, own = type(self).__name__, self._library.module.__name__
            other = type(request).__module__.partition(".")[0]
            raise TypeError(
                f"`transport` of a client of {other} must not be forbear's {name} for {own}; "
                f"import {name} from forbear.clients.{other}"
            )
        if is_off():
            return None
        if OVERRIDE not in request.extensions:
            return self._options
        policy = request.extensions[OVERRIDE]
        return None if policy is None else self._options.replace(policy=policy)

    def _attach_report(self, response: Any, report: Report) -> None:
        """Attach a report to a response, in its extensions and as an attribute, which it keeps when it is pickled.

        The error of its `raise_for_status()` gets the report, too.
        """
        response.extensions[EXTENSION] = report
        setattr(response, ATTRIBUTE, report)
        if type(response) is self._library.module.Response:
            response.__class__ = self._library.GivenUpResponse


def install_in(
    client: Any,
    module: Any,
    kinds: "tuple[Callable[..., Any], Callable[..., Any]]",
    policy: Policy | None,
    **options: Any,
) -> None:
    """Put transports of one of the `kinds`, sync or async, into a client of `module`, which has `install`."""
    inner = _client_of(client, module)
    if inner is not client:
        from forbear.apis import add_api_of_sdk

        options["apis"] = add_api_of_sdk(options["apis"], client)
    kind = kinds[isinstance(inner, module.AsyncClient)]
    transport, mounts = _transports_of(inner, module)
    wrapped = kind(policy, transport=transport, **options)
    mounted = {url: mount and kind(policy, transport=mount, **options) for url, mount in mounts.items()}
    inner._transport = wrapped
    mounts.update(mounted)


def _client_of(client: Any, module: Any) -> Any:
    """Return the client of the library: `client` itself, or the one inside the client of an SDK."""
    kinds, name = (module.Client, module.AsyncClient), module.__name__
    if isinstance(client, kinds):
        return client
    inner = getattr(client, "_client", None)
    if not isinstance(inner, kinds):
        other = "httpx2" if name == "httpx" else "httpx"
        ending = f"; it sends by {other}, so use forbear.clients.{other}.install" if _is_of(other, client) else ""
        raise TypeError(
            f"`client` must be an {name}.Client or {name}.AsyncClient, or the client of an SDK that has one, "
            f"got {client!r}{ending}"
        )
    if getattr(client, "max_retries", 0):
        raise ValueError(
            f"`client` must not retry by itself, or retries would multiply: make it with max_retries=0; "
            f"got {type(client).__name__}(max_retries={client.max_retries})"
        )
    return inner


def _transports_of(inner: Any, module: Any) -> tuple[Any, dict[Any, Any]]:
    """Return the transport of a client, and those of its proxies and other mounts; None stands for the first."""
    transport: Any = getattr(inner, "_transport", None)
    mounts: Any = getattr(inner, "_mounts", None)
    bases = module.BaseTransport, module.AsyncBaseTransport
    if not isinstance(transport, bases) or not hasattr(mounts, "update"):
        raise RuntimeError(
            f"install cannot find the transports of this version of {module.__name__} ({module.__version__}); "
            f"make the client with transport=RetryTransport() instead"
        )
    if any(isinstance(each, RetryingBase) for each in (transport, *mounts.values())):
        raise ValueError("`client` has forbear's retries already; install them once, or make a new client")
    return transport, mounts


def _is_of(library: str, client: Any) -> bool:
    """Return whether a client, or the client inside it, is one of `library`."""
    kinds = type(client).__mro__ + type(getattr(client, "_client", None)).__mro__
    return any(kind.__module__.partition(".")[0] == library for kind in kinds)
