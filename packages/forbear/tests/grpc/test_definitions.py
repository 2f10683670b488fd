"""Definitions of RPCs in modules that are loaded: protobuf's pool, and the REST transports of Google's clients."""

import subprocess
import sys

import pytest
from google.cloud import iam_credentials_v1, redis_v1

from forbear.grpc.definitions import IDEMPOTENT, NO_SIDE_EFFECTS, find
from forbear_testkit.clients.google import protos


@pytest.fixture(autouse=True)
def loaded() -> None:
    """Load the services of the testkit."""
    protos.load()


@pytest.mark.parametrize(("name", "annotations"), protos.ORDERS.items())
def test_annotations_are_read(name: str, annotations: tuple[str, ...]) -> None:
    """The level and all HTTP methods, also those of additional bindings and of custom ones."""
    definition = find(f"shop.v1.Orders/{name}")
    assert definition is not None
    levels: dict[tuple[str, ...], int] = {(protos.NO_SIDE_EFFECTS,): NO_SIDE_EFFECTS, (protos.IDEMPOTENT,): IDEMPOTENT}
    assert definition.level == levels.get(annotations, 0)
    assert definition.bindings == (() if annotations in levels else annotations)
    assert definition.source == "shop.v1.proto"


@pytest.mark.parametrize("name", ["shop.v1.Orders/Gone", "shop.v1.Gone/Show", "gone", "", "/", "shop.v1.Orders/"])
def test_an_rpc_without_a_definition(name: str) -> None:
    """There is nothing to say of it, whatever its name is."""
    assert find(name) is None


def test_fields_of_messages_within_a_request_count() -> None:
    """A transaction may be an option within options."""
    definition = find("google.made.v1.Things/LookupThings")
    assert definition is not None
    assert sorted(definition.fields or ()) == ["deeper", "name", "new_transaction", "read_options"]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("google.cloud.redis.v1.CloudRedis/GetInstance", "GET"),
        ("google.cloud.redis.v1.CloudRedis/DeleteInstance", "DELETE"),
        ("google.iam.credentials.v1.IAMCredentials/SignBlob", "POST"),
    ],
)
def test_generated_clients_of_google(name: str, method: str) -> None:
    """Their services are not in the pool; the REST transport of the client has the bindings."""
    assert redis_v1.__name__ != iam_credentials_v1.__name__
    definition = find(name)
    assert definition is not None
    assert definition.bindings == (method,)
    assert definition.fields
    assert find(name.replace(".v1.", ".v2.")) is None  # another version has classes of the same names


def test_nothing_is_imported() -> None:
    """To look for a definition does not load protobuf."""
    code = "import sys; from forbear.services.rpcs import rules; from forbear.grpc.call import GrpcCall; "
    code += "rules.judge(GrpcCall('a.B/C'), None); print([name for name in sys.modules if name.startswith('google')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
