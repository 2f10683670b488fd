"""`install(client)`: put retries into a finished client of Google's generator, sync or asyncio, over gRPC or REST.

Such a client keeps its methods, each with its default retry, in a private table of its transport. Only this module uses
that table. Its requests get keys here.
"""

import re
import sys
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

try:
    from google.api_core import gapic_v1
except ImportError as error:
    raise ImportError(
        'forbear.clients.google needs google-api-core; install it with: pip install "forbear[google]"'
    ) from error

from forbear.exchange.grpc import Rpcs
from forbear.grpc.call import field, to_raw
from forbear.grpc.definitions import paths_of
from forbear.run.doubt import leave_in_doubt
from forbear.run.harm import is_used
from forbear.run.key_uses import AutomaticKey
from forbear.run.keys import RepeatRefused, automatic_key
from forbear.run.runtime import current_runtime
from forbear.services.rpcs.google import find_rules

if TYPE_CHECKING:
    from collections.abc import Callable

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


def install_in(client: object, rpcs: Rpcs, kinds: "tuple[Callable[..., object], Callable[..., object]]") -> None:
    """Replace the default retries in a generated client by those of `kinds`, for sync and for asyncio.

    They also get the stubs of the transport, by the paths of their RPCs.
    """
    transport = getattr(client, "transport", None)
    methods: dict[Any, Any] | None = getattr(transport, "_wrapped_methods", None)
    paths = {} if methods is None else _paths(transport)
    if methods is None or not paths:
        raise TypeError(f"`client` must be a generated client of Google; for any other write {_OTHER}; got {client!r}")
    if any(isinstance(method, RetriedMethod) for method in methods.values()):
        raise ValueError("`client` has forbear's retries already; install them once, or make a new client")
    make = kinds["asyncio" in str(getattr(transport, "kind", ""))]
    stubs = {path: getattr(transport, attribute) for attribute, path in paths.items()}
    methods.update({
        stub: RetriedMethod(methods[stub], make(rpcs[path], stubs=stubs))
        for path, stub in stubs.items() if stub in methods
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


def fill_key(method: str, message: Any, scope: object) -> tuple[Any, AutomaticKey | None]:
    """Return a copy of a request with a new key in its empty `request_id`, and the key.

    The request as it is, and None, if it has one, or if nothing promises that a second request with it is not executed.
    All attempts of the runs around send the same key, if the request is equal and `scope` the same object. Raises
    RepeatRefused if the call may be one of an earlier attempt, but cannot have its key; a report stops the runs around.
    """
    name = method.removeprefix("/")
    path, span = _find_key(name)
    kind: Any = message.__class__
    raw = to_raw(message)
    if path is None or not hasattr(raw, "DESCRIPTOR") or field(message, path):
        return message, None
    filled: Any = type(raw)()
    filled.CopyFrom(raw)  # the caller's may be sent once more, as another call
    *parents, last = path.split(".")
    inner = filled
    for each in parents:
        inner = getattr(inner, each)
    known = inner.DESCRIPTOR.fields_by_name.get(last)
    if known is None or known.type != known.TYPE_STRING:
        return message, None
    content = blake2b(raw.SerializeToString(deterministic=True)).digest() if is_used[0] else None
    try:
        key = automatic_key(name, (scope, content), span)
    except RepeatRefused as error:
        runtime = current_runtime()
        leave_in_doubt(error, name, str(error), runtime, runtime.monotonic())
        raise
    setattr(inner, last, key.key)
    return filled if raw is message else kind.wrap(filled), key


@lru_cache(maxsize=1024)
def _find_key(name: str) -> tuple[str | None, float]:
    """Return the field of an RPC's request that takes a key, None without one, and the span of the key in seconds."""
    allowed = find_rules(name)
    rule = None if allowed is None else next((rule for rule, _ in allowed.rules if rule.kind == "key"), None)
    return (None, 0.0) if rule is None or rule.known_for is None else (rule.condition, rule.known_for)
