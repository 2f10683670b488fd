"""A gRPC call in the form that services judge, and the contract of a service that judges RPCs."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

from forbear.core.check import is_mapping
from forbear.core.record import Record

if TYPE_CHECKING:
    from forbear.core.service import Judgement, Service
    from forbear.core.verdict import Verdict

    class RpcService(Service, Protocol):
        """The contract of a service that judges the calls of one API: RPCs over gRPC or, as JSON, over HTTP."""

        def classify_call(self, call: "GrpcCall") -> Judgement:
            """Return the judgement on a call; its `maybe_done` has numbers of gRPC status codes."""
            ...

        def call_verdict(self, judgement: Judgement, code: int, metadata: "Metadata" = ()) -> Verdict | None:
            """Return the verdict on the end of the judged call, by its gRPC status code; None for a success."""
            ...

        def verdict(
            self,
            judgement: Judgement,
            status: int,
            headers: Mapping[str, str],
            body: Callable[[], bytes] | None = None,
        ) -> Verdict | None:
            """Return the verdict on a response over HTTP, None for a success."""
            ...


Metadata = Iterable[tuple[str, str | bytes]]
"""Trailing metadata: names in lower case with their values; those whose name ends in "-bin" are bytes."""


class GrpcCall(Record):
    """A call, reduced to what decides whether it may be repeated.

    `method` is the full name of the RPC ("/google.storage.v2.Storage/DeleteObject", with or without the slash).
    `message` is its request, for a stream the first one: a protobuf or proto-plus message, or a dict with the
    definition's field names. None means that it is not available; it becomes an empty dict, which never makes a call
    safer. Example: see `judge_rpc`.
    """

    __slots__ = ("method", "message")

    method: str
    message: object

    def __init__(self, method: str, message: object = None) -> None:
        self._set(method=method, message={} if message is None else message)

    @property
    def name(self) -> str:
        """The full name of the RPC without the leading slash."""
        return self.method.removeprefix("/")


def is_rpc_service(service: object) -> "TypeGuard[RpcService]":
    """Return whether a service judges RPCs: it has the method `classify_call`."""
    return hasattr(service, "classify_call")


def field(message: object, path: str) -> object:
    """Return the value at `path` ("policy.etag") in a message, None if it is not set; an enum is returned by its name.

    `message` is a dict, a protobuf message or a proto-plus one. Python's message libraries, and dicts for them, add an
    underscore to a name that is a keyword ("object"). In a dict, a field is set if it is there and not None. In a
    message, a field that is declared `optional` is set as soon as it has a value, even 0. Any other field is set if it
    differs from its default: on the wire the two look the same.
    """
    value: Any = message
    for name in path.split("."):
        value = _read_mapping(value, name) if is_mapping(value) else _set_in(value, name)
        if value is None:
            return None
    return value


def _read_mapping(message: Any, name: str) -> Any:
    value = message.get(name, message.get(f"{name}_"))
    return getattr(value, "name", value)  # a member of an enum


def to_raw(message: Any) -> Any:
    """Return a message of protobuf: the one that a message of proto-plus wraps, or the message itself."""
    unwrap = getattr(message.__class__, "pb", None)
    return message if unwrap is None else unwrap(message)


def _set_in(message: Any, name: str) -> Any:
    message = to_raw(message)
    descriptor = getattr(message, "DESCRIPTOR", None)
    fields: Any = {} if descriptor is None else descriptor.fields_by_name
    definition = fields.get(name) or fields.get(f"{name}_")
    if definition is None:
        return None
    value = getattr(message, definition.name)
    if not (message.HasField(definition.name) if definition.has_presence else value):
        return None
    kinds = definition.enum_type
    if kinds is None or value not in kinds.values_by_number:
        return value
    return kinds.values_by_number[value].name


_RESOURCE_FIELDS = ("name", "resource", "bucket", "parent")
"""The fields of requests by which Google's APIs name a resource."""


class RpcSubject(NamedTuple):
    """The subject of a report on an RPC or a call of AWS: its full name as `method`, and the `resource`, or None."""

    method: str
    resource: str | None


def resource_of(message: object) -> str | None:
    """Return the name of the resource in a request to a known service, None without one; other services show none."""
    with suppress(Exception):  # attributes of an unknown object may raise anything
        for name in _RESOURCE_FIELDS:
            value = field(message, name)
            if isinstance(value, str) and value:
                key = field(message, "object") if name == "bucket" else None
                return f"{value}/objects/{key}" if isinstance(key, str) and key else value
    return None
