"""Which Creates and Deletes of Google's APIs a Get may settle, by their definitions, and what it proves."""

from functools import cache
from typing import Any

import pytest
from google.api import annotations_pb2, field_behavior_pb2  # type: ignore[import-untyped]
from google.longrunning import operations_pb2  # type: ignore[import-untyped]
from google.protobuf import descriptor_pb2, descriptor_pool, empty_pb2, message_factory, timestamp_pb2

from forbear.grpc.call import GrpcCall
from forbear.services.cloud_storage.settling import Finding, Reading
from forbear.services.rpcs.settling import plan_read, settle

SCHEMAS, STORES = "google.pubsub.v1", "google.cloud.parallelstore.v1"
NAME = "projects/p/schemas/s"


@cache
def load(package: str = SCHEMAS) -> None:
    """Put the Create, Get and Delete of a resource into the pool, as a pb2 module does."""
    noun, service = ("Schema", "SchemaService") if package == SCHEMAS else ("Instance", "Parallelstore")
    file: Any = descriptor_pb2.FileDescriptorProto(name=f"{package}/settled.proto", package=package, syntax="proto3")
    file.dependency.extend([
        "google/api/annotations.proto", "google/api/field_behavior.proto", timestamp_pb2.DESCRIPTOR.name,
        empty_pb2.DESCRIPTOR.name, operations_pb2.DESCRIPTOR.name,
    ])  # fmt: skip
    key, own = f"{noun.lower()}_id", noun.lower()
    messages = {
        noun: ["name", "definition", "state!", "inner@Inner", "tags*", "delete_time@.google.protobuf.Timestamp"],
        "Inner": ["text", "other"],
        f"Create{noun}Request": ["parent", f"{own}@{noun}", key, "more"],
        f"Get{noun}Request": ["name"],
        f"Delete{noun}Request": ["name", "more"],
    }
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, field in enumerate(fields, start=1):
            plain, _, kind = field.strip("!*").partition("@")
            added = message.field.add(name=plain, number=number, label=3 if "*" in field else 1, type=11 if kind else 9)
            if kind:
                added.type_name = kind if kind.startswith(".") else f".{package}.{kind}"
            if "!" in field:
                added.options.Extensions[field_behavior_pb2.field_behavior].append(field_behavior_pb2.OUTPUT_ONLY)
    defined = file.service.add(name=service)
    operation = package == STORES
    for verb, response, path in (
        (
            "Create",
            ".google.longrunning.Operation" if operation else f".{package}.{noun}",
            "/v1/{parent=projects/*}/schemas",
        ),
        ("Get", f".{package}.{noun}", "/v1/{name=projects/*/schemas/*}"),
        (
            "Delete",
            ".google.longrunning.Operation" if operation else ".google.protobuf.Empty",
            "/v1/{name=projects/*/schemas/*}",
        ),
    ):
        method = defined.method.add(name=f"{verb}{noun}", input_type=f".{package}.{verb}{noun}Request")
        method.output_type = response
        http: Any = method.options.Extensions[annotations_pb2.http]
        http.post = path
        http.additional_bindings.add().post = path
    descriptor_pool.Default().AddSerializedFile(file.SerializeToString())


def message(name: str, /, package: str = SCHEMAS, **fields: Any) -> Any:
    """Return a message of a package."""
    load(package)
    kind = descriptor_pool.Default().FindMessageTypeByName(f"{package}.{name}")
    return message_factory.GetMessageClass(kind)(**fields)


def create(schema: Any = None, **fields: Any) -> GrpcCall:
    """Return the Create of a schema, by default with one field."""
    schema = message("Schema", definition="d") if schema is None else schema
    request = message("CreateSchemaRequest", **{"parent": "projects/p", "schema_id": "s", "schema": schema} | fields)
    return GrpcCall(f"{SCHEMAS}.SchemaService/CreateSchema", request)


def delete(**fields: Any) -> GrpcCall:
    """Return the Delete of a schema."""
    request = message("DeleteSchemaRequest", **{"name": NAME} | fields)
    return GrpcCall(f"{SCHEMAS}.SchemaService/DeleteSchema", request)


def always(sent: Any, read: Any) -> bool:
    """Recognize anything."""
    return True


@pytest.mark.parametrize("call", [create(), delete(), create(more="")], ids=["create", "delete", "nothing more"])
def test_the_read_is_the_get_of_the_resource(call: GrpcCall) -> None:
    """Its name is that in the request, or the parent, the collection of the binding and the id."""
    plan = plan_read(call)
    assert plan is not None
    assert (plan.rpc, plan.request) == (f"{SCHEMAS}.SchemaService/GetSchema", message("GetSchemaRequest", name=NAME))


OPERATION = message(
    "CreateInstanceRequest", STORES, parent="p", instance_id="i", instance=message("Instance", STORES, definition="d")
)


@pytest.mark.parametrize(
    "call",
    [
        create(more="x"),
        create(parent=""),
        create(schema_id=""),
        create(message("Schema")),
        create(message("Schema", name="n", state="s")),
        delete(name="projects/-/schemas/s"),
        GrpcCall(f"{SCHEMAS}.SchemaService/CreateSchema", {"parent": "projects/p", "schema_id": "s"}),
        GrpcCall(f"{SCHEMAS}.SchemaService/GetSchema", message("GetSchemaRequest", name=NAME)),
        GrpcCall("google.cloud.tasks.v2.CloudTasks/CreateTask", {"task": {"name": "t"}}),
        GrpcCall("shop.v1.Orders/CreateOrder", {"order_id": "o"}),
        GrpcCall(f"{STORES}.Parallelstore/CreateInstance", OPERATION),
        GrpcCall(f"{STORES}.Parallelstore/DeleteInstance", message("DeleteInstanceRequest", STORES, name=NAME)),
    ],
    ids=["more", "no parent", "no id", "empty", "the server's", "many", "no message", "a read", "no client", "no rule",
         "an operation", "a delete by an operation"],
)  # fmt: skip
def test_what_no_read_can_prove(call: GrpcCall) -> None:
    """A parameter that no read shows, a name that is not known, nothing to compare, and what returns an Operation."""
    assert plan_read(call) is None
    assert settle(call, [Reading(200)]).finding is Finding.UNKNOWN


def test_a_function_knows_more() -> None:
    """It may recognize a Create with any parameter, or without a field; but a Delete leaves nothing."""
    assert plan_read(create(more="x"), always) is not None
    assert plan_read(create(message("Schema")), always) is not None
    assert plan_read(delete(), always) is None


@pytest.mark.parametrize(
    ("sent", "read", "is_done"),
    [
        ({"definition": "d"}, {"definition": "d"}, True),
        ({"definition": "d"}, {"definition": "d", "tags": ["a"], "state": "x"}, True),
        ({"definition": "d", "state": "s", "name": "n"}, {"definition": "d", "state": "x"}, True),
        ({"definition": "d"}, {"definition": "D"}, False),
        ({"definition": "d"}, {}, False),
        ({"tags": ["a"]}, {"tags": ["a", "b"]}, False),
        ({"tags": ["a", "b"]}, {"tags": ["a", "b"]}, True),
        ({"inner": {"text": "t"}}, {"inner": {"text": "t", "other": "o"}}, True),
        ({"inner": {"text": "t"}}, {"inner": {"other": "o"}}, False),
        ({"inner": {}}, {"inner": {}}, True),
        ({"inner": {}}, {}, False),
        ({"definition": "d"}, {"definition": "d", "state": "DELETE_REQUESTED"}, False),
        ({"definition": "d"}, {"definition": "d", "delete_time": {"seconds": 1}}, False),
    ],
)
def test_a_create_is_done_if_all_that_was_sent_is_there(sent: Any, read: Any, *, is_done: bool) -> None:
    """Fields that only the server sets do not count, nor do those not sent; what is marked as deleted is no proof."""
    found = settle(create(message("Schema", **sent)), [Reading(200, message("Schema", **read))])
    assert (found.finding is Finding.DONE) is is_done


@pytest.mark.parametrize(
    ("call", "read", "finding"),
    [
        (delete(), Reading(404), Finding.DONE),
        (delete(), Reading(200), Finding.NOT_DONE),
        (delete(), Reading(500), Finding.UNKNOWN),
        (create(), Reading(404), Finding.UNKNOWN),
        (create(), Reading(500), Finding.UNKNOWN),
    ],
)
def test_the_answer_of_the_read(call: GrpcCall, read: Reading, finding: Finding) -> None:
    """A Delete is proven by NOT_FOUND alone, a Create by a resource alone."""
    assert settle(call, [read]).finding is finding
