"""`install(client)`: put retries into a client of httpx or httpx2 that exists already, also one inside an SDK.

The client's own transports keep sending, so its proxies, certificates, HTTP/2 and limits stay. They are private
attributes of the client; only this module uses them.
"""

from typing import Any, TypeVar

from forbear.clients._httpx.transport import RetryingBase
from forbear.exchange.http.options import BUFFER
from forbear.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, Unpack

    from forbear.exchange.http.settling import Settle
    from forbear.http.vouch import Apis, Safe
    from forbear.run.derive import ClientOptions

    AnyClient = TypeVar("AnyClient")

    class Install(Protocol):
        """The protocol of `install`; its parameters but `client` are those of `RetryTransport`."""

        def __call__(
            self,
            client: AnyClient,
            policy: Policy | None = None,
            *,
            safe: Safe = (),
            apis: Apis = (),
            settle: Settle = False,
            buffer: int = BUFFER,
            **options: Unpack[ClientOptions],
        ) -> AnyClient:
            """Put retries into `client`; see `forbear.clients.httpx.install`."""
            ...


def installer(module: Any, transports: "tuple[Callable[..., Any], Callable[..., Any]]") -> "Install":
    """Return the function `install` for the clients of `module`: httpx or httpx2."""
    name = module.__name__
    other = "httpx2" if name == "httpx" else "httpx"

    def install(client: Any, policy: Policy | None = None, **options: Any) -> Any:
        inner = _client_of(client)
        if inner is not client:
            from forbear.apis import add_api_of_sdk

            options["apis"] = add_api_of_sdk(options.get("apis", ()), client)
        kind = transports[isinstance(inner, module.AsyncClient)]
        transport, mounts = _transports_of(inner)
        wrapped = kind(policy, transport=transport, **options)
        mounted = {url: mount and kind(policy, transport=mount, **options) for url, mount in mounts.items()}
        inner._transport = wrapped
        mounts.update(mounted)
        return client

    def _client_of(client: Any) -> Any:
        """Return the client of the library: `client` itself, or the one inside the client of an SDK."""
        kinds = module.Client, module.AsyncClient
        if isinstance(client, kinds):
            return client
        inner = getattr(client, "_client", None)
        if not isinstance(inner, kinds):
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

    def _transports_of(inner: Any) -> tuple[Any, dict[Any, Any]]:
        """Return the transport of a client, and those of its proxies and other mounts; None stands for the first."""
        transport: Any = getattr(inner, "_transport", None)
        mounts: Any = getattr(inner, "_mounts", None)
        bases = module.BaseTransport, module.AsyncBaseTransport
        if not isinstance(transport, bases) or not hasattr(mounts, "update"):
            raise RuntimeError(
                f"install cannot find the transports of this version of {name} ({module.__version__}); "
                f"make the client with transport=RetryTransport() instead"
            )
        if any(isinstance(each, RetryingBase) for each in (transport, *mounts.values())):
            raise ValueError("`client` has forbear's retries already; install them once, or make a new client")
        return transport, mounts

    install.__doc__ = DOCUMENTATION.format(module=name)
    return install


DOCUMENTATION = """Put retries into a client that exists already, and return it: `install({module}.Client(proxy=...))`.

    - `client`: an `{module}.Client` or `AsyncClient`, or the client of an SDK that sends by one, such as those of
      OpenAI and Anthropic. The SDK must not retry by itself: make its client with `max_retries=0`.
    - The others are the parameters of `RetryTransport`. The statuses and headers by which the SDKs of OpenAI,
      Anthropic and Groq retry by themselves count at their `base_url`, too.

    All transports of the client are wrapped, also those of its proxies and mounts, so that its `proxy`, `verify`,
    `http2` and `limits` stay. TypeError or ValueError for another client, for one with retries, and for wrong options;
    RuntimeError if this version of {module} keeps its transports elsewhere. The client is then as it was.

    >>> import {module}
    >>> with install({module}.Client(), attempts=3, safe="POST https://api.example.com/search") as client:
    ...     client.get(cloud.url + "/storage/v1/b/my-bucket").status_code
    200
    """


def _is_of(library: str, client: Any) -> bool:
    """Return whether a client, or the client inside it, is one of `library`."""
    kinds = type(client).__mro__ + type(getattr(client, "_client", None)).__mro__
    return any(kind.__module__.partition(".")[0] == library for kind in kinds)
