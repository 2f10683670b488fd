"""Faults in grpcio, sync and asyncio: its channels are led through a proxy, which stands below their own retries.

A channel must have been made since `watch_channels` was called, or it is left alone.
"""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from forbear import services
from forbear.adapters import GrpcCall, judge_rpc
from forbear_audit.storm.faults import FAULTS
from forbear_audit.storm.patching import lead, replace, wrap
from forbear_audit.storm.run_record import RunRecord
from forbear_audit.storm.shifted_time import REAL
from forbear_audit.storm.stack import user_stack

if TYPE_CHECKING:
    from forbear_audit.storm.wire.grpc_proxy import GrpcProxy, RpcOrigin

_KINDS = {
    "UnaryUnary": "unary_unary",
    "UnaryStream": "unary_stream",
    "StreamUnary": "stream_unary",
    "StreamStream": "stream_stream",
}
_READS = ("/grpc.health.", "/grpc.reflection.")


class _Channel:
    """The making of a channel: `arguments` are target, options, credentials and compression."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        self.closed = False


_made: "WeakKeyDictionary[Any, _Channel]" = WeakKeyDictionary()
_watching: list[bool] = []


def watch_channels() -> None:
    """Note how each channel is made, from now on; nothing without grpcio."""
    if _watching:
        return
    try:
        modules = import_module("grpc._channel"), import_module("grpc.aio._channel")
    except ImportError:
        return
    _watching.append(True)
    for module in modules:
        kind: Any = module.Channel
        kind.__init__ = wrap(kind.__init__, _note)
        kind._close = wrap(kind._close, _note_end)


def _note(
    original: Callable[..., None], self: Any, target: Any, options: Any, credentials: Any, compression: Any, *rest: Any
) -> None:
    original(self, target, options, credentials, compression, *rest)
    _made[self] = _Channel((target, tuple(options or ()), credentials, compression))


def _note_end(original: Callable[..., Any], self: Any, *args: Any) -> Any:
    if self in _made:
        _made[self].closed = True
    return original(self, *args)


def install(undo: ExitStack, record: RunRecord) -> None:
    """Lead the calls of all known channels through proxies, where grpcio is installed."""
    watch_channels()
    if not _watching:
        return
    routes = _Routes(record)
    undo.callback(routes.close)
    sync, asynchronous = import_module("grpc._channel"), import_module("grpc.aio._channel")
    for name, kind in _KINDS.items():
        kinds = [vars(sync).get(f"{prefix}{name}MultiCallable") for prefix in ("_", "_SingleThreaded")]
        for multicallable in (*kinds, getattr(asynchronous, f"{name}MultiCallable")):
            for method in ("__call__", "with_call", "future"):
                if method in vars(multicallable or object):
                    lead(undo, multicallable, method, partial(_send, routes, kind))
    # A deadline is a time of the real clock.
    replace(undo, sync, "_deadline", _deadline)
    replace(undo, asynchronous, "_timeout_to_deadline", _deadline)
    replace(undo, import_module("grpc.aio._interceptor"), "_timeout_to_deadline", _deadline)


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else REAL["time"]() + timeout


def _send(
    routes: "_Routes", kind: str, record: RunRecord, original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any
) -> Any:
    route = routes.of(self)
    if route is None:
        return original(self, *args, **kwargs)
    record.time.join()
    record.check()
    requests = args[:1] or tuple(kwargs.pop(name) for name in ("request", "request_iterator") if name in kwargs)
    options = dict(zip(_OPTIONS, args[1:], strict=False)) | kwargs
    message = requests[0] if requests and kind.startswith("unary") else None
    mark = route.proxy.mark(_origin(record, self._method, kind, message, options))
    options |= {"metadata": (*(options.get("metadata") or ()), mark), "credentials": None}
    twin = getattr(route.channel, kind)(self._method, self._request_serializer, self._response_deserializer)
    if not hasattr(self, "_interceptors"):
        with record.time.sending():
            return original(twin, *requests, **options)
    twin._interceptors = self._interceptors
    call = original(twin, *requests, **options)
    if kind.endswith("unary"):
        record.time.busy += 1
        call.add_done_callback(record.time.count_landing)
    return call


_OPTIONS = ("timeout", "metadata", "credentials", "wait_for_ready", "compression")


def _origin(record: RunRecord, method: str | bytes, kind: str, message: object, options: dict[str, Any]) -> "RpcOrigin":
    name = method.decode() if isinstance(method, bytes) else method
    is_safe = name.startswith(_READS) or judge_rpc(GrpcCall(name, message), services.find_rpc(name)).repeatable
    streams = kind.endswith("stream")
    from forbear_audit.storm.wire.grpc_proxy import RpcOrigin

    return RpcOrigin(
        name,
        user_stack(record.test),
        unsafe=not is_safe,
        faults=_UNSENT if kind == "stream_stream" else FAULTS,
        streams=streams,
        timeout=options.get("timeout"),
        credentials=options.get("credentials"),
        wait_for_ready=options.get("wait_for_ready"),
    )


_UNSENT = ("refused", "503", "429")
"""The faults of a call with two streams: to wait for a response might be to wait forever."""


class _Route(NamedTuple):
    """The way of a channel in one run: `channel` leads to `proxy`."""

    channel: Any
    proxy: "GrpcProxy"


class _Routes:
    """The routes of one run, made as they are needed."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._routes: dict[tuple[object, object], _Route] = {}

    def of(self, multicallable: Any) -> _Route | None:
        """Return the route for the channel of a multicallable; None for one that is closed or not known."""
        core = multicallable._channel
        known = next((item for item in list(_made.items()) if item[0]._channel is core), None)
        if known is None or known[1].closed:
            return None
        channel, made = known
        loop = getattr(channel, "_loop", None)
        if (channel, loop) not in self._routes:
            self._routes[channel, loop] = self._new(type(channel), made, loop)
        return self._routes[channel, loop]

    def _new(self, kind: Any, made: _Channel, loop: object) -> _Route:
        target, options, credentials, compression = made.arguments
        single = [option for option in options if option[0] != "grpc.enable_retries"]
        from forbear_audit.storm.wire.grpc_proxy import GrpcProxy

        upstream = _unknown(import_module("grpc._channel").Channel)
        proxy = GrpcProxy(
            self._record, upstream(target, [*single, ("grpc.enable_retries", 0)], credentials, compression)
        )
        near = [*options, ("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
        rest = () if loop is None else (None,)
        return _Route(_unknown(kind)(proxy.target, near, None, compression, *rest), proxy)

    def close(self) -> None:
        """Close all routes."""
        for channel, proxy in self._routes.values():
            with suppress(Exception):
                channel.close() if not hasattr(channel, "_loop") else channel._channel.close()
            proxy.stop()


def _unknown(kind: Any) -> Callable[..., Any]:
    """Return a function that makes a channel whose calls are left alone."""

    def make(*arguments: Any) -> Any:
        channel = kind(*arguments)
        _made.pop(channel, None)
        return channel

    return make
