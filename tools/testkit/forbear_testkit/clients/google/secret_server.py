"""Secret Manager on a real gRPC server: it executes CreateSecret, GetSecret and DeleteSecret, and loses responses."""

from collections import deque
from collections.abc import Callable, Generator
from concurrent import futures
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc

from google.cloud import secretmanager_v1
from google.protobuf import empty_pb2

SERVICE = "google.cloud.secretmanager.v1.SecretManagerService"
_REQUESTS: dict[str, Any] = {
    name: getattr(secretmanager_v1, f"{name}Request") for name in ("CreateSecret", "GetSecret", "DeleteSecret")
}


class SecretServer:
    """The secrets by their names, the calls, and what was executed.

    Each write takes the next of `faults`: "before" and "after" end it with UNAVAILABLE, not executed or executed.
    `between` is called before each call with the name of its method, and `change` may change what a Get answers.
    """

    def __init__(self) -> None:
        self.target = ""
        self.reset()

    def reset(self) -> None:
        """Forget all."""
        self.secrets: dict[str, Any] = {}
        self.calls: list[str] = []
        self.metadata: list[dict[str, Any]] = []
        self.executed: list[str] = []
        self.faults: deque[str] = deque()
        self.fail_reads: grpc.StatusCode | None = None
        self.between: Callable[[str], object] = lambda _: None
        self.change: Callable[[Any], object] = lambda _: None

    def execute(self, method: str, request: Any) -> Any:
        """Execute a request, and return the response, or the code of its error."""
        if method == "CreateSecret":
            name = f"{request.parent}/secrets/{request.secret_id}"
            if name in self.secrets:
                return grpc.StatusCode.ALREADY_EXISTS
            self.secrets[name] = secret = secretmanager_v1.Secret(request.secret)
            secret.name, secret.etag = name, "e"
            return secret
        if request.name not in self.secrets:
            return grpc.StatusCode.NOT_FOUND
        return empty_pb2.Empty() if self.secrets.pop(request.name) else None

    def answer(self, method: str, encoded: bytes, context: grpc.ServicerContext) -> Any:
        self.between(method)
        self.calls.append(method)
        self.metadata.append(dict(context.invocation_metadata()))
        request = _REQUESTS[method].deserialize(encoded)
        if method == "GetSecret":
            found = self.secrets.get(request.name)
            code = self.fail_reads or (grpc.StatusCode.NOT_FOUND if found is None else None)
            if code is not None:
                context.abort(code, "as told")
            shown = secretmanager_v1.Secret(found)
            self.change(shown)
            return secretmanager_v1.Secret.serialize(shown)
        fault = self.faults.popleft() if self.faults else "none"
        if fault == "before":
            context.abort(grpc.StatusCode.UNAVAILABLE, "as told")
        response = self.execute(method, request)
        if isinstance(response, grpc.StatusCode):
            context.abort(response, "as found")
        self.executed.append(method)
        if fault == "after":
            context.abort(grpc.StatusCode.UNAVAILABLE, "as told")
        return response.SerializeToString() if method == "DeleteSecret" else type(response).serialize(response)


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    def __init__(self, server: SecretServer) -> None:
        self._server = server

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Handle the RPCs of the service; only they exist."""
        details: Any = handler_call_details
        service, _, method = details.method[1:].partition("/")
        if service != SERVICE or method not in _REQUESTS:
            return None
        return grpc.unary_unary_rpc_method_handler(partial(self._server.answer, method))


@contextmanager
def running() -> Generator[SecretServer]:
    """A server on loopback."""
    state = SecretServer()
    with futures.ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool, handlers=[_Handlers(state)])
        state.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            yield state
        finally:
            server.stop(None).wait()
