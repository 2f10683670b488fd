"""From a request to a delivery: finds the operation, lets a fault strike at its moment, keeps the log; no sockets."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from forbear.testing.cloud import admin
from forbear.testing.cloud.api import uploads
from forbear.testing.cloud.api.handlers import HANDLERS
from forbear.testing.cloud.call import Call, Handler
from forbear.testing.cloud.delivery import Delivery
from forbear.testing.cloud.errors import ApiError, error_reply
from forbear.testing.cloud.faults import Fault
from forbear.testing.cloud.journal import LoggedRequest
from forbear.testing.cloud.operations import INSERT, ROUTES, SEND
from forbear.testing.cloud.router import Router
from forbear.testing.cloud.sessions import CHUNK
from forbear.testing.cloud.state import State
from forbear.testing.cloud.strike import strike, wait_before
from forbear.testing.cloud.wire import Reply, Request

_log = logging.getLogger(__name__)
_router = Router(ROUTES)
_SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request with its number, its operation and the fault it drew; `wait` is how long to hold it before acting."""

    request: Request
    number: int
    operation: str | None
    handler: Handler
    names: dict[str, str]
    fault: Fault | None
    wait: float


class App:
    """The whole service without its sockets."""

    def __init__(self, state: State) -> None:
        self._state = state

    def administers(self, request: Request) -> bool:
        """Whether the request is for the administration, which has neither faults nor a log."""
        return request.path.startswith(admin.PREFIX)

    def administer(self, request: Request) -> Delivery:
        """Answer a request for the administration."""
        with self._state.store.lock:
            return Delivery(_guarded(lambda: admin.administer(self._state, request)))

    def admit(self, request: Request) -> Admitted:
        """Number the request, find its operation and draw its fault."""
        operation, names, handler = _resolve(request)
        with self._state.store.lock:
            self._state.admitted += 1
            fault = self._state.plan.draw(request, operation)
            return Admitted(request, self._state.admitted, operation, handler, names, fault, wait_before(fault))

    def answer(self, admitted: Admitted) -> Delivery:
        """Act on the request, as far as its fault allows, and say how to reply."""
        state, fault, handler = self._state, admitted.fault, admitted.handler
        with state.store.lock:
            call = Call(
                admitted.request, state.store, state.effects, admitted.operation or "", admitted.names, admitted.number
            )

            def act() -> Reply:
                return _guarded(lambda: handler(call))

            delivery = Delivery(act()) if fault is None else strike(fault, call, act)
            state.requests.add(_entry(admitted.request, admitted.number, admitted.operation, delivery.reply, fault))
            return delivery

    def interrupted(self, request: Request) -> None:
        """Note a request whose body broke off; of a chunk, the service keeps the whole multiples of 256 KiB."""
        operation, names, _ = _resolve(request)
        state = self._state
        with state.store.lock:
            state.admitted += 1
            if operation == SEND:
                call = Call(request, state.store, state.effects, SEND, names, state.admitted)
                uploads.keep_part(call, request.body[: len(request.body) // CHUNK * CHUNK])
            state.requests.add(_entry(request, state.admitted, operation, None, None))


def _resolve(request: Request) -> tuple[str | None, dict[str, str], Handler]:
    """The operation, the names in the path and the function that serves it, or one that says why there is none."""
    try:
        operation, names = _router.find(request.method, request.path)
    except ApiError as error:
        reply = error.reply()
        return None, {}, lambda _: reply
    step = uploads.step(request) if operation == INSERT else operation
    return step, names, HANDLERS[operation]


def _guarded(act: Callable[[], Reply]) -> Reply:
    """Errors as replies, the unexpected ones too: no traceback ever reaches a client."""
    try:
        return act()
    except ApiError as error:
        return error.reply()
    except Exception:
        _log.exception("the embedded cloud failed to answer")
        return error_reply(500, "Backend Error", "backendError")


def _entry(
    request: Request, number: int, operation: str | None, reply: Reply | None, fault: Fault | None
) -> LoggedRequest:
    return LoggedRequest(
        number,
        request.method,
        request.path,
        request.query_text,
        operation,
        {name: value for name, value in request.headers.items() if name not in _SECRET},
        len(request.body),
        None if reply is None else reply.status,
        None if fault is None else fault.name,
    )
