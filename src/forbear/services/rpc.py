"""A gRPC call as a service is shown it, and what a service of RPCs answers. It knows no service and no gRPC library."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, runtime_checkable

from forbear.core.record import Record
from forbear.core.verdict import Verdict
from forbear.http.request import Judgement

Metadata = Iterable[tuple[str, str | bytes]]
"""Trailing metadata: names in lower case with their values; those whose name ends in "-bin" are bytes."""


class GrpcCall(Record):
    """A call, reduced to what decides whether it may be repeated.

    `method` is the full name of the RPC ("/google.storage.v2.Storage/DeleteObject", with or without the slash).
    `message` is its request, of a stream the first one: a protobuf or proto-plus message, or a dict by the field names
    of the definition; None where it is not at hand, which never makes a call safer.
    """

    __slots__ = ("method", "message")

    method: str
    message: object

    def __init__(self, method: str, message: object = None) -> None:
        self._set(method=method, message={} if message is None else message)

    @property
    def name(self) -> str:
        """The name of the RPC without the leading slash."""
        return self.method.removeprefix("/")


@runtime_checkable
class RpcService(Protocol):
    """The knowledge of one API whose calls are RPCs, over gRPC or, as JSON, over HTTP."""

    @property
    def name(self) -> str:
        """The service's name, such as "cloud_storage"."""
        ...

    def classify_call(self, call: GrpcCall) -> Judgement:
        """The RPC that a call is of and whether it may be executed twice; `maybe_done` has numbers of status codes."""
        ...

    def call_verdict(self, judgement: Judgement, code: int, metadata: Metadata = ()) -> Verdict | None:
        """What the end of a call with the status code `code` (its number) means, None where it is a success."""
        ...

    def verdict(
        self,
        judgement: Judgement,
        status: int,
        headers: Mapping[str, str],
        body: Callable[[], bytes] | None = None,
    ) -> Verdict | None:
        """Judge a response over HTTP, as `forbear.http.request.Service` does; `maybe_done` has statuses then."""
        ...
