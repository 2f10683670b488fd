"""`install(client)`: put retries into a finished client of Google's generator, sync or asyncio, over gRPC or REST.

Such a client keeps its methods, each with its default retry, in a private table of its transport. Only this module uses
that table.
"""

import re
import sys
from typing import TYPE_CHECKING, Any

try:
    from google.api_core import gapic_v1
except ImportError as error:
    raise ImportError(
        'forbear.clients.google needs google-api-core; install it with: pip install "forbear[google]"'
    ) from error

from forbear.exchange.chosen import choose
from forbear.exchange.grpc import Rpcs
from forbear.grpc.definitions import paths_of
from forbear.grpc.vouch import RpcVouch

if TYPE_CHECKING:
    from collections.abc import Callable

    from forbear.exchange.grpc import Rpc
    from forbear.grpc.vouch import SafeRpcs
    from forbear.policy import Policy
    from forbear.run.derive import ClientOptions

_DEFAULT = gapic_v1.method.DEFAULT
_TRANSPORT = re.compile(r"(\w+?)(?:Grpc|Rest)\w*Transport")
_OTHER = "retry=forbear.clients.google.retry_for(...) in each call, or forbear.clients.grpc.RetryInterceptor"


class RetriedMethod:
    """A method of a client whose default retry is forbear's; a call with its own `retry=` keeps that."""

    def __init__(self, send: "Callable[..., Any]", retry: object) -> None:
        self._send = send
        self._retry = retry

    def __call__(self, *args: Any, retry: Any = _DEFAULT, **options: Any) -> Any:
        return self._send(*args, retry=self._retry if retry is _DEFAULT else retry, **options)


def install_in(
    client: object,
    kinds: "tuple[Callable[[Rpc], object], Callable[[Rpc], object]]",
    raised: tuple[type[Exception], ...],
    policy: "Policy | None",
    safe: "SafeRpcs",
    options: "ClientOptions",
) -> None:
    """Replace the default retries in a generated client by those of `kinds`, for sync and for asyncio."""
    chosen, changes = choose("install", policy, options, ("safe",))
    rpcs = Rpcs(chosen, RpcVouch(safe), changes, raised)
    transport = getattr(client, "transport", None)
    methods: dict[Any, Any] | None = getattr(transport, "_wrapped_methods", None)
    paths = {} if methods is None else _paths(transport)
    if methods is None or not paths:
        raise TypeError(f"`client` must be a generated client of Google; for any other write {_OTHER}; got {client!r}")
    if any(isinstance(method, RetriedMethod) for method in methods.values()):
        raise ValueError("`client` has forbear's retries already; install them once, or make a new client")
    make = kinds["asyncio" in str(getattr(transport, "kind", ""))]
    stubs = {getattr(transport, attribute): path for attribute, path in paths.items()}
    methods.update({
        stub: RetriedMethod(methods[stub], make(rpcs[path])) for stub, path in stubs.items() if stub in methods
    })  # fmt: skip


def _paths(transport: object) -> dict[str, str]:
    """Return the paths of RPCs by the attributes of a transport, from the gRPC transport of the same service."""
    for kind in type(transport).__mro__:
        package, dot, _ = kind.__module__.rpartition(".")
        match = _TRANSPORT.fullmatch(kind.__name__)
        beside = sys.modules.get(f"{package}{dot}grpc")
        if match is not None and beside is not None:
            found = paths_of(getattr(beside, f"{match[1]}GrpcTransport", None))
            if found:
                return found
    return {}
