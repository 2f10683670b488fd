"""Read the RPCs of Google's APIs, with their comments, from compiled protos.

Compile a checkout of github.com/googleapis/googleapis first, in its root folder (grpcio-tools has the compiler):

    python -m grpc_tools.protoc -I. --include_source_info -o google.pb $(find google grafeas -name '*.proto')
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from google.api import annotations_pb2, field_behavior_pb2, resource_pb2  # type: ignore[import-untyped]
from google.protobuf import descriptor_pb2

_SERVICE, _METHOD, _MESSAGE, _FIELD, _NESTED = 6, 2, 4, 2, 3  # numbers of fields in descriptor.proto
_Comments = dict[tuple[int, ...], str]
_VERSION = re.compile(r"v\d+((?:p\d+)?(?:alpha|beta|eap|main)\d*)?")


class Field(NamedTuple):
    """A field of a message; `type` is "string", "bool" …, or the full name of a message or an enum."""

    name: str
    type: str
    repeated: bool
    required: bool
    resource: bool
    map: bool
    oneof: str
    comment: str


class Binding(NamedTuple):
    """An HTTP binding of an RPC."""

    method: str
    path: str
    body: str


class Rpc(NamedTuple):
    """An RPC: `name` is "package.Service/Method"; `fields` are those of its request."""

    name: str
    file: str
    comment: str
    bindings: tuple[Binding, ...]
    request: str
    response: str
    fields: tuple[Field, ...]
    client_streaming: bool
    deprecated: bool

    @property
    def method(self) -> str:
        """The name of the method alone."""
        return self.name.partition("/")[2]

    @property
    def family(self) -> str:
        """The name without the version of the API: RPCs of one family do the same."""
        return ".".join(part for part in self.name.split(".") if not _VERSION.fullmatch(part))

    @property
    def age(self) -> tuple[bool, int, str]:
        """A key to sort versions by: the newest stable one is the greatest."""
        versions = [match for part in self.name.split(".") if (match := _VERSION.fullmatch(part))]
        if not versions:
            return True, 0, ""
        number = re.match(r"v(\d+)", versions[0][0])
        return versions[0][1] is None, 0 if number is None else int(number[1]), versions[0][0]


class Protos:
    """All messages and RPCs of a set of compiled files."""

    def __init__(self, path: Path) -> None:
        files = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
        self.messages: dict[str, tuple[Field, ...]] = {}
        self.rpcs: dict[str, Rpc] = {}
        for file in files.file:
            comments = _read_comments(file)
            for index, message in enumerate(file.message_type):
                self._add_message(message, file.package, (_MESSAGE, index), comments)
        for file in files.file:
            comments = _read_comments(file)
            for number, service in enumerate(file.service):
                for index, method in enumerate(service.method):
                    name = f"{file.package}.{service.name}/{method.name}"
                    request = method.input_type[1:]
                    self.rpcs[name] = Rpc(
                        name, file.name, comments.get((_SERVICE, number, _METHOD, index), ""),
                        tuple(_read_bindings(method)), request, method.output_type[1:],
                        self.messages.get(request, ()), method.client_streaming, method.options.deprecated,
                    )  # fmt: skip

    def _add_message(
        self, message: Any, outer: str, path: tuple[int, ...], comments: dict[tuple[int, ...], str]
    ) -> None:
        name = f"{outer}.{message.name}"
        maps = {f"{name}.{each.name}" for each in message.nested_type if each.options.map_entry}
        self.messages[name] = tuple(
            _read_field(field, comments.get((*path, _FIELD, index), ""), maps, message)
            for index, field in enumerate(message.field)
        )
        for index, each in enumerate(message.nested_type):
            self._add_message(each, name, (*path, _NESTED, index), comments)

    def newest(self) -> dict[str, Rpc]:
        """Return one RPC of each family, that of the newest stable version, by its name."""
        families: dict[str, Rpc] = {}
        for rpc in self.rpcs.values():
            known = families.get(rpc.family)
            if known is None or known.age < rpc.age:
                families[rpc.family] = rpc
        return {rpc.name: rpc for rpc in families.values()}


def _read_comments(file: Any) -> _Comments:
    return {
        tuple(each.path): " ".join(f"{each.leading_comments} {each.trailing_comments}".split())
        for each in file.source_code_info.location
        if each.leading_comments or each.trailing_comments
    }


def _read_field(field: Any, comment: str, maps: set[str], message: Any) -> Field:
    kind = field.type_name[1:] or descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)[5:].lower()
    options = field.options
    behaviors = options.Extensions[field_behavior_pb2.field_behavior]
    repeated = field.label == descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
    oneof = ""
    if field.HasField("oneof_index") and not field.proto3_optional:
        oneof = message.oneof_decl[field.oneof_index].name
    return Field(
        field.name, kind, repeated and kind not in maps, field_behavior_pb2.REQUIRED in behaviors,
        options.HasExtension(resource_pb2.resource_reference), kind in maps, oneof, comment,
    )  # fmt: skip


def _read_bindings(method: Any) -> Iterator[Binding]:
    options = method.options
    if not options.HasExtension(annotations_pb2.http):
        return
    rule = options.Extensions[annotations_pb2.http]
    for each in (rule, *rule.additional_bindings):
        kind = each.WhichOneof("pattern")
        if kind == "custom":
            yield Binding(each.custom.kind.upper(), each.custom.path, each.body)
        elif kind is not None:
            yield Binding(kind.upper(), getattr(each, kind), each.body)
