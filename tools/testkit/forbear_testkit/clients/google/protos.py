"""Definitions of RPCs, made in code and put into protobuf's pool as a pb2 module does."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from google.api import annotations_pb2  # type: ignore[import-untyped]
from google.protobuf import descriptor_pb2, descriptor_pool

Fields = dict[str, str]
"""The fields of a message: the name of each with its type, "string", "bool" or the name of another message."""

_TYPES = {"string": 9, "bool": 8}

NO_SIDE_EFFECTS, IDEMPOTENT = "NO_SIDE_EFFECTS", "IDEMPOTENT"


def put(package: str, service: str, methods: dict[str, Sequence[str]], requests: dict[str, Fields]) -> None:
    """Put a service into the pool; the arguments are those of `define`."""
    file = define(package, service, methods, requests)
    descriptor_pool.Default().AddSerializedFile(file.SerializeToString())


def define(package: str, service: str, methods: dict[str, Sequence[str]], requests: dict[str, Fields]) -> Any:
    """Return the file with the definition of a service.

    `methods` has the annotations of each: a level, or HTTP methods. The request of the method Get is the message
    GetRequest; without one it has the field "name".
    """
    file: Any = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    file.dependency.append("google/api/annotations.proto")
    messages = {f"{name}Request": {"name": "string"} for name in methods} | requests
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields.items(), start=1):
            added = message.field.add(name=field, number=number, label=1, type=_TYPES.get(kind, 11))
            if kind not in _TYPES:
                added.type_name = f".{package}.{kind}"
    defined = file.service.add(name=service)
    for name, annotations in methods.items():
        method = defined.method.add(name=name, input_type=f".{package}.{name}Request")
        method.output_type = method.input_type
        http: Any = method.options.Extensions[annotations_pb2.http]
        for annotation in annotations:
            if annotation in (NO_SIDE_EFFECTS, IDEMPOTENT):
                method.options.idempotency_level = descriptor_pb2.MethodOptions.IdempotencyLevel.Value(annotation)
            elif not http.ListFields():
                _bind(http, annotation)
            else:
                _bind(http.additional_bindings.add(), annotation)
    return file


def _bind(rule: Any, verb: str) -> None:
    if verb in {"GET", "PUT", "POST", "DELETE", "PATCH"}:
        setattr(rule, verb.lower(), "/v1/x")
    else:
        rule.custom.kind, rule.custom.path = verb, "/v1/x"


ORDERS: dict[str, Sequence[str]] = {
    "GetTask": (),
    "ReadStream": (NO_SIDE_EFFECTS,),
    "Show": (NO_SIDE_EFFECTS,),
    "Cancel": (IDEMPOTENT,),
    "Find": ("GET",),
    "Peek": ("HEAD",),
    "Replace": ("PUT",),
    "Remove": ("DELETE", "PUT"),
    "Change": ("PATCH",),
    "Make": ("POST",),
    "Mixed": ("GET", "POST"),
}
"""The RPCs of shop.v1.Orders, with their annotations."""

THINGS: dict[str, Sequence[str]] = {
    "GetThing": ("GET",),
    "GetSecret": ("POST",),
    "ListThings": ("POST",),
    "SearchThings": ("POST",),
    "SearchLater": ("POST",),
    "BatchGetThings": ("POST",),
    "LookupThings": ("POST",),
    "Listen": ("POST",),
    "Query": ("POST",),
    "ExecuteSql": ("POST",),
    "RunThing": ("POST",),
    "Pull": ("POST",),
    "Fetch": ("POST",),
    "Check": ("POST",),
    "UpdateThing": ("PATCH",),
    "DeleteThing": ("DELETE",),
    "CreateThing": ("POST",),
}
"""The RPCs of google.made.v1.Things, with their HTTP methods."""

_REQUESTS = {
    "Options": {"deeper": "Deeper"},
    "Deeper": {"new_transaction": "string"},
    "SearchThingsRequest": {"query": "string", "page_token": "string"},
    "SearchLaterRequest": {"query": "string", "session_id": "string"},
    "LookupThingsRequest": {"name": "string", "read_options": "Options"},
    "CreateThingRequest": {"name": "string", "validate_only": "bool", "request_id": "string"},
    "GetThingRequest": {"name": "string", "send_updates": "string"},
    "DeleteThingRequest": {"name": "string", "filter": "string", "etag": "string"},
}


@cache
def load() -> None:
    """Put both services into the pool, once."""
    put("shop.v1", "Orders", ORDERS, {"MakeRequest": {"name": "string", "request_id": "string"}})
    put("google.made.v1", "Things", THINGS, _REQUESTS)


def message(kind: str, /, **fields: Any) -> Any:
    """Return a message of the type with this full name, such as "shop.v1.MakeRequest"."""
    from google.protobuf import message_factory

    load()
    return message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(kind))(**fields)
