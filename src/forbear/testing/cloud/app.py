"""From a request to a delivery: lets a fault strike at its moment, keeps the log; knows no operation and no sockets."""

from dataclasses import dataclass

from forbear.testing.cloud import admin, receiving
from forbear.testing.cloud.apis import Asked, guarded, resolve
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.delivery import Delivery, Ending
from forbear.testing.cloud.errors import storage_error
from forbear.testing.cloud.faults import Fault
from forbear.testing.cloud.journal import LoggedRequest
from forbear.testing.cloud.operations import SENDS
from forbear.testing.cloud.sessions import CHUNK
from forbear.testing.cloud.space import Space
from forbear.testing.cloud.state import State
from forbear.testing.cloud.strike import strike, wait_before
from forbear.testing.cloud.wire import Reply, Request

_SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request with its number, what it asks for and the fault it drew; `wait` is how long to hold it before.

    `resets` is how often all had been forgotten when it came.
    """

    request: Request
    number: int
    asked: Asked
    fault: Fault | None
    wait: float
    resets: int


class App:
    """The whole service without its sockets."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def space(self) -> Space:
        """The limit of memory for stored data."""
        return self._state.store.space

    def administers(self, request: Request) -> bool:
        """Whether the request is for the administration, which has neither faults nor a log."""
        return request.path.startswith(admin.PREFIX)

    def administer(self, request: Request) -> Delivery:
        """Answer a request for the administration."""
        with self._state.store.lock:
            return Delivery(guarded(lambda: admin.administer(self._state, request), storage_error))

    def admit(self, request: Request) -> Admitted:
        """Number the request, find its operation and draw its fault."""
        asked = resolve(request)
        with self._state.store.lock:
            self._state.admitted += 1
            fault = self._state.plan.draw(request, asked.operation)
            return Admitted(request, self._state.admitted, asked, fault, wait_before(fault), self._state.resets)

    def answer(self, admitted: Admitted) -> Delivery:
        """Act on the request, as far as its fault allows, and say how to reply."""
        fault, asked = admitted.fault, admitted.asked
        with self._state.store.lock:
            if admitted.resets != self._state.resets:  # it was held when all was forgotten, and it with it
                return Delivery(None, Ending.CLOSE)
            call = self._call(admitted.request, asked, admitted.number)

            def act(call: Call) -> Reply:
                return guarded(lambda: asked.handler(call), asked.error_form)

            delivery = Delivery(act(call)) if fault is None else strike(fault, call, act)
            self._note(admitted.request, admitted.number, asked.operation, delivery.reply, fault)
            return delivery

    def interrupted(self, request: Request) -> None:
        """Note a request whose body broke off; of a chunk, the service keeps the whole multiples of 256 KiB."""
        asked = resolve(request)
        with self._state.store.lock:
            self._state.admitted += 1
            number = self._state.admitted
            if asked.operation in SENDS:
                call = self._call(request, asked, number)
                receiving.keep_part(call, request.content.cut(0, len(request.content) // CHUNK * CHUNK))
            self._note(request, number, asked.operation, None, None)

    def _call(self, request: Request, asked: Asked, number: int) -> Call:
        state = self._state
        return Call(request, state.store, state.effects, asked.operation or "", asked.names, number, asked.error_form)

    def _note(
        self, request: Request, number: int, operation: str | None, reply: Reply | None, fault: Fault | None
    ) -> None:
        headers = request.headers
        if not _SECRET.isdisjoint(headers):
            headers = {name: value for name, value in headers.items() if name not in _SECRET}
        self._state.requests.add(
            LoggedRequest(
                number,
                request.method,
                request.path,
                request.query_text,
                operation,
                headers,
                len(request.content),
                None if reply is None else reply.status,
                None if fault is None else fault.name,
                "authorization" in request.headers,
            )
        )
