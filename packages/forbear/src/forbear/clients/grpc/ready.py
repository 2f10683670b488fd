"""Hand a call to gRPC only once its channel is connected, so that a call that was never handed over was not executed.

The state of a channel after a failure proves nothing: under load it may have been connected in between. Before the call
it does. Nothing is known of a call that was handed over.
"""

import asyncio
import time
from collections.abc import Callable
from copy import copy
from typing import Any, NoReturn

import grpc
import grpc.aio

from forbear.core.report import ATTRIBUTE, Report
from forbear.exchange.settling import RpcReadBack

_READY = grpc.ChannelConnectivity.READY
_FAILED = grpc.ChannelConnectivity.TRANSIENT_FAILURE
_HANDED_OVER = (_READY, grpc.ChannelConnectivity.SHUTDOWN)
"""The states in which grpc gets the call: it says itself that a channel is closed."""

_LONGEST = 30.0
"""The seconds to wait for a connection without a `timeout` of the call; gRPC itself gives an attempt 20 s."""

Continuation = Callable[[Any, Any], Any]


def with_changes(details: Any, **changes: Any) -> Any:
    """Return a copy of a call's details with other values, of the same class: the next interceptor may rely on that."""
    replace = getattr(details, "_replace", None)
    if replace is not None:
        return replace(**changes)
    changed = copy(details)
    for name, value in changes.items():
        object.__setattr__(changed, name, value)
    return changed


def details_of_read(details: Any, look: RpcReadBack) -> Any:
    """Return the details of a call for the read that settles it."""
    is_aio = isinstance(details.method, bytes)
    metadata: Any = look.route(details.metadata)
    return with_changes(
        details,
        method=look.method.encode() if is_aio else look.method,
        timeout=look.timeout,
        metadata=grpc.aio.Metadata(*metadata) if is_aio else metadata,
    )


class Settled:
    """A call whose conflict was settled: its `response` and `report`, and of the rest what the `call` itself has."""

    def __init__(self, call: Any, response: Any, report: Report | None) -> None:
        self._call = call
        self._response = response
        setattr(self, ATTRIBUTE, report)

    def result(self, timeout: float | None = None) -> Any:
        return self._response

    def exception(self, timeout: float | None = None) -> None:
        return None

    traceback = exception

    def add_done_callback(self, fn: Callable[[Any], None]) -> None:
        fn(self)

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    def details(self) -> str:
        return ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)


def _with_rest(details: Any, began: float) -> Any:
    """Return the details with what is left of the timeout since the monotonic time `began`, unchanged without one."""
    timeout = details.timeout
    if timeout is None:
        return details
    return with_changes(details, timeout=max(timeout - (time.monotonic() - began), 0.0))


def _code(state: grpc.ChannelConnectivity | None) -> grpc.StatusCode:
    return grpc.StatusCode.DEADLINE_EXCEEDED if state is None else grpc.StatusCode.UNAVAILABLE


def _text(state: grpc.ChannelConnectivity | None) -> str:
    found = "no connection in time" if state is None else f"the channel is in {state.name}"
    return f"the call was not sent: {found}"


class Unsent(grpc.RpcError, grpc.Call, grpc.Future):  # type: ignore[type-arg] # generic for type checkers only
    """The error of a call without a connection, and that call; the `state` is None if its time was over first."""

    was_sent = False

    def __init__(self, state: grpc.ChannelConnectivity | None) -> None:
        super().__init__(_text(state))
        self._state = state

    def code(self) -> grpc.StatusCode:
        return _code(self._state)

    def details(self) -> str:
        return _text(self._state)

    def initial_metadata(self) -> tuple[()]:
        return ()

    def trailing_metadata(self) -> tuple[()]:
        return ()

    def debug_error_string(self) -> str:
        return ""

    def exception(self, timeout: float | None = None) -> "Unsent":
        return self

    def traceback(self, timeout: float | None = None) -> Any:
        return self.__traceback__

    def result(self, timeout: float | None = None) -> NoReturn:
        raise self

    __next__ = result

    def add_callback(self, callback: Callable[[], None]) -> bool:
        return False

    def add_done_callback(self, fn: Callable[[Any], None]) -> None:
        fn(self)

    def cancel(self) -> bool:
        return False

    cancelled = running = is_active = cancel

    def done(self) -> bool:
        return True

    def time_remaining(self) -> float:
        return 0.0


class AioUnsent(grpc.aio.AioRpcError):
    """The error of an asyncio call that was not sent because its channel had no connection."""

    was_sent = False

    def __init__(self, state: grpc.ChannelConnectivity | None) -> None:
        nothing: Any = grpc.aio.Metadata()
        super().__init__(_code(state), nothing, nothing, details=_text(state), debug_error_string=None)


_STATES: dict[int, grpc.ChannelConnectivity] = {state.value[0]: state for state in grpc.ChannelConnectivity}

_SLICE = 0.2
"""The seconds after which a wait looks whether the channel was closed, as gRPC's own subscriptions do."""


class Readiness:
    """The state of a sync channel. A subscription to it would keep a thread, which fails when it is closed."""

    def __init__(self, channel: grpc.Channel) -> None:
        core: Any = channel
        while not hasattr(core, "check_connectivity_state"):
            core = getattr(core, "_channel", None)  # of an intercepted channel, the one below
            if core is None:
                raise TypeError(f"`channel` must be a channel that grpc made, got {channel!r}")
        self._core = core

    def gate(self, continuation: Continuation) -> Continuation:
        """Return `continuation`, behind a wait for the connection."""

        def send_when_ready(details: Any, requests: Any) -> Any:
            began = time.monotonic()
            try:
                state = self._wait(details.timeout, patient=bool(details.wait_for_ready))
            except ValueError:  # the channel is closed
                state = grpc.ChannelConnectivity.SHUTDOWN
            return continuation(_with_rest(details, began), requests) if state in _HANDED_OVER else Unsent(state)

        return send_when_ready

    def _wait(self, timeout: float | None, *, patient: bool) -> grpc.ChannelConnectivity | None:
        """Wait until the channel is connected, or has failed to if not `patient`; return its state, None if too late.

        A connection is requested, since an idle channel makes none by itself.
        """
        core = self._core
        number = core.check_connectivity_state(True)
        if number == _READY.value[0]:
            return _READY
        end = None if timeout is None and patient else time.monotonic() + (_LONGEST if timeout is None else timeout)
        while True:
            state = _STATES[number]
            if state in _HANDED_OVER or (state is _FAILED and not patient):
                return state
            left = _SLICE if end is None else end - time.monotonic()
            if left <= 0:
                return None
            core.watch_connectivity_state(number, time.time() + min(left, _SLICE))  # gRPC takes a wall-clock time
            number = core.check_connectivity_state(True)


class AioReadiness:
    """The state of the asyncio channel that `channel` returns."""

    def __init__(self, channel: Callable[[], grpc.aio.Channel]) -> None:
        self._channel = channel

    def gate(self, continuation: Continuation) -> Continuation:
        async def send_when_ready(details: Any, requests: Any) -> Any:
            began = time.monotonic()
            state = await self._wait(details.timeout, patient=bool(details.wait_for_ready))
            if state not in _HANDED_OVER:
                raise AioUnsent(state)
            return await continuation(_with_rest(details, began), requests)

        return send_when_ready

    async def _wait(self, timeout: float | None, *, patient: bool) -> grpc.ChannelConnectivity | None:
        channel = self._channel()
        state = channel.get_state(try_to_connect=True)
        try:
            async with asyncio.timeout(timeout if timeout is not None or patient else _LONGEST):
                while state not in _HANDED_OVER and (state is not _FAILED or patient):
                    await channel.wait_for_state_change(state)
                    state = channel.get_state(try_to_connect=True)
        except TimeoutError:
            return None
        return state
