"""Answer requests: choose a fault for each request, inject it, call the request's handler, and log the request."""

from forbear_cloud.admin import PREFIX, CloudState, administer
from forbear_cloud.api import resumable
from forbear_cloud.call import ApiCall
from forbear_cloud.faults.fault import Fault
from forbear_cloud.faults.injection import inject, wait_before
from forbear_cloud.http.messages import HttpRequest, HttpResponse, storage_error
from forbear_cloud.http.outgoing import Delivery, ResponseEnd
from forbear_cloud.http.stream import pause
from forbear_cloud.journal import LoggedRequest
from forbear_cloud.operations import SENDS
from forbear_cloud.routing import Route, resolve, respond_to_errors
from forbear_cloud.storage.sessions import CHUNK

_SECRET = frozenset({
    "authorization", "cookie", "proxy-authorization", "x-goog-encryption-key", "x-goog-copy-source-encryption-key",
})  # fmt: skip


class CloudApp:
    """The service behind the connections: it injects faults, calls the handlers and logs the requests.

    `state` holds everything that it remembers.
    """

    def __init__(self, state: CloudState) -> None:
        self._state = state

    async def answer(self, request: HttpRequest) -> Delivery:
        """Return the response to a request with its fault, if the plan draws one, and log the request.

        Requests to /_cloud/ get no fault and are not logged. If the cloud is reset while a fault holds the request
        back, the connection closes without a response.
        """
        state = self._state
        if request.path.startswith(PREFIX):
            with state.store.lock:
                return Delivery(respond_to_errors(lambda: administer(state, request), storage_error))
        route = resolve(request)
        with state.store.lock:
            state.admitted += 1
            number, resets, fault = state.admitted, state.resets, state.plan.draw(request, route.operation)
        if seconds := wait_before(fault):
            await pause(seconds)
        with state.store.lock:
            if resets != state.resets:  # the cloud was reset while the request waited
                return Delivery(None, ResponseEnd.CLOSE)
            delivery = self._act(request, route, number, fault)
            self._note(request, number, route.operation, delivery.response, fault)
            return delivery

    def _act(self, request: HttpRequest, route: Route, number: int, fault: Fault | None) -> Delivery:
        def handle(call: ApiCall) -> HttpResponse:
            return respond_to_errors(lambda: route.handler(call), route.error_form)

        call = self._call(request, route, number)
        return Delivery(handle(call)) if fault is None else inject(fault, call, handle)

    def interrupted(self, request: HttpRequest) -> None:
        """Log a request whose body broke off, as one without a status; no fault is drawn for it.

        If it is a chunk of a resumable upload, the session keeps the bytes that arrived, rounded down to a multiple of
        256 KiB.
        """
        route = resolve(request)
        with self._state.store.lock:
            self._state.admitted += 1
            number = self._state.admitted
            if route.operation in SENDS:
                call = self._call(request, route, number)
                resumable.keep_part(call, request.content.cut(0, len(request.content) // CHUNK * CHUNK))
            self._note(request, number, route.operation, None, None)

    def _call(self, request: HttpRequest, route: Route, number: int) -> ApiCall:
        state = self._state
        return ApiCall(
            request, state.store, state.effects, route.operation or "", route.names, number, route.error_form
        )

    def _note(
        self,
        request: HttpRequest,
        number: int,
        operation: str | None,
        response: HttpResponse | None,
        fault: Fault | None,
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
                None if response is None else response.status,
                None if fault is None else fault.name,
                "authorization" in request.headers,
            )
        )
