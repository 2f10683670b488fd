"""Reading fields off real messages: protobuf, proto-plus and dicts."""

from enum import Enum
from typing import Any

import pytest
from google.cloud import _storage_v2 as storage
from google.protobuf import descriptor_pb2, struct_pb2, type_pb2

from forbear.grpc.call import field

types: Any = storage


@pytest.mark.parametrize("plus", [True, False], ids=["proto-plus", "protobuf"])
@pytest.mark.parametrize(
    ("make", "path", "expected"),
    [
        (types.DeleteObjectRequest, "if_generation_match", None),
        (lambda: types.DeleteObjectRequest(if_generation_match=0), "if_generation_match", 0),
        (lambda: types.DeleteObjectRequest(if_generation_match=7), "if_generation_match", 7),
        (lambda: types.DeleteObjectRequest(generation=0), "generation", None),
        (lambda: types.DeleteObjectRequest(generation=7), "generation", 7),
        (types.DeleteObjectRequest, "unheard_of", None),
        (types.DeleteObjectRequest, "DESCRIPTOR", None),
        (types.DeleteObjectRequest, "if_generation_match.deeper", None),
        (lambda: types.DeleteObjectRequest(generation=7), "generation.deeper", None),
        (types.UpdateObjectRequest, "object.etag", None),
        (lambda: types.UpdateObjectRequest(object={}), "object.etag", None),
        (lambda: types.UpdateObjectRequest(object={"etag": "x"}), "object.etag", "x"),
        (lambda: types.WriteObjectRequest(upload_id="u"), "upload_id", "u"),
        (lambda: types.WriteObjectRequest(upload_id="u"), "write_object_spec.if_generation_match", None),
        (
            lambda: types.WriteObjectRequest(write_object_spec={"if_generation_match": 0}),
            "write_object_spec.if_generation_match",
            0,
        ),
        (
            lambda: types.BidiWriteObjectRequest(append_object_spec={"generation": 3}),
            "append_object_spec.generation",
            3,
        ),
    ],
)
def test_optional_fields_are_read_as_soon_as_they_are_set(make: Any, path: str, expected: object, plus: bool) -> None:
    """An optional field is there as soon as it is set; another one where it differs from its default."""
    message = make()
    assert field(message if plus else type(message).pb(message), path) == expected


class Colour(Enum):
    """An enum of a client library."""

    RED = 1


def test_enums_come_by_their_names() -> None:
    """A number says nothing by itself: the same one means different things in different APIs."""
    kind = descriptor_pb2.FieldDescriptorProto
    unknown: Any = 99
    assert field(kind(type=kind.TYPE_STRING), "type") == "TYPE_STRING"
    assert field(kind(), "type") is None
    assert field(type_pb2.Field(kind=type_pb2.Field.TYPE_BOOL), "kind") == "TYPE_BOOL"
    assert field(type_pb2.Field(kind=unknown), "kind") == 99
    assert field({"kind": Colour.RED}, "kind") == "RED"
    assert field({"kind": 3}, "kind") == 3


@pytest.mark.parametrize(
    ("message", "path", "expected"),
    [
        ({"a": 0}, "a", 0),
        ({"a_": 0}, "a", 0),
        ({"a": None}, "a", None),
        ({}, "a", None),
        ({"a": {"b": b"x"}}, "a.b", b"x"),
        ({"a": {"b": None}}, "a.b", None),
        ({"a": 5}, "a.b", None),
        ({"a.b": 5}, "a.b", None),
        ({"a": struct_pb2.Value(string_value="x")}, "a.string_value", "x"),
        (None, "a", None),
        ("text", "upper", None),
        (object(), "__class__", None),
    ],
)
def test_dicts_and_strangers(message: object, path: str, expected: object) -> None:
    """A key is there unless it is None; what is no message has no fields."""
    assert field(message, path) == expected
