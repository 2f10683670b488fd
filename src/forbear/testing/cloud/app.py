"""From a request to a delivery: lets a fault strike at its moment, keeps the log; knows no operation and no sockets."""

from forbear.testing.cloud import admin
from forbear.testing.cloud.api import resumable
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.faults.fault import Fault
from forbear.testing.cloud.faults.injection import strike, wait_before
from forbear.testing.cloud.http.errors import storage_error
from forbear.testing.cloud.http.memory import Space
from forbear.testing.cloud.http.messages import Reply, Request
from forbear.testing.cloud.http.outgoing import Delivery, Ending
from forbear.testing.cloud.http.stream import pause
from forbear.testing.cloud.journal import LoggedRequest
from forbear.testing.cloud.operations import SENDS
from forbear.testing.cloud.routing import Asked, guarded, resolve
from forbear.testing.cloud.state import State
from forbear.testing.cloud.storage.sessions import CHUNK

_SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})


class App:
    """The whole service without its sockets."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def space(self) -> Space:
        """The limit of memory for stored data."""
        return self._state.store.space

    async def answer(self, request: Request) -> Delivery:
        """Answer a request as its fault allows; requests for the administration have no fault and are not logged."""
        state = self._state
        if request.path.startswith(admin.PREFIX):
            with state.store.lock:
                return Delivery(guarded(lambda: admin.administer(state, request), storage_error))
        asked = resolve(request)
        with state.store.lock:
            state.admitted += 1
            number, resets, fault = state.admitted, state.resets, state.plan.draw(request, asked.operation)
        if seconds := wait_before(fault):
            await pause(seconds)
        with state.store.lock:
            if resets != state.resets:  # the cloud was reset while the request waited
                return Delivery(None, Ending.CLOSE)
            delivery = self._act(request, asked, number, fault)
            self._note(request, number, asked.operation, delivery.reply, fault)
            return delivery

    def _act(self, request: Request, asked: Asked, number: int, fault: Fault | None) -> Delivery:
        def act(call: Call) -> Reply:
            return guarded(lambda: asked.handler(call), asked.error_form)

        call = self._call(request, asked, number)
        return Delivery(act(call)) if fault is None else strike(fault, call, act)

    def interrupted(self, request: Request) -> None:
        """Note a request whose body broke off; of a chunk, the service keeps the whole multiples of 256 KiB."""
        asked = resolve(request)
        with self._state.store.lock:
            self._state.admitted += 1
            number = self._state.admitted
            if asked.operation in SENDS:
                call = self._call(request, asked, number)
                resumable.keep_part(call, request.content.cut(0, len(request.content) // CHUNK * CHUNK))
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
