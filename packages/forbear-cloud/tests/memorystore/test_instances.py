"""Memorystore for Redis: long-running operations that end after some polls, one at a time for each resource."""

from collections.abc import Iterator
from typing import Any, cast

import google.api_core.client_options
import googleapiclient.discovery
import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import redis_v1
from google.cloud.redis_v1.services.cloud_redis.transports import CloudRedisRestTransport

from forbear_cloud import Cloud, Fault

PLACE = "/v1/projects/p/locations/europe-west1"
INSTANCES, CLUSTERS = f"{PLACE}/instances", f"{PLACE}/clusters"
INSTANCE = f"{INSTANCES}/cache"
PREFIX = "redis.projects.locations"
BODY = {"memorySizeGb": 5, "tier": "STANDARD_HA"}
ONE = "11111111-1111-1111-1111-111111111111"
TYPES: Any = redis_v1
"""The types of the real client, whose enums mypy takes for numbers."""


def status_of(response: httpx.Response) -> tuple[int, str]:
    """Return the code and the status of an error."""
    error = response.json()["error"]
    assert error["code"] == response.status_code
    return error["code"], error["status"]


def finished(http: httpx.Client, started: httpx.Response) -> dict[str, Any]:
    """Poll an operation until it is done, and return it."""
    operation: dict[str, Any] = started.json()
    for _ in range(10):
        if operation["done"]:
            return operation
        operation = http.get(f"/v1/{operation['name']}").json()
    raise AssertionError("the operation does not end")


@pytest.fixture
def instance(http: httpx.Client) -> str:
    """Return the path of an instance that is ready."""
    made = finished(http, http.post(f"{INSTANCES}?instanceId=cache", json=BODY))
    assert made["response"]["state"] == "READY"
    return INSTANCE


def test_the_life_of_an_instance(cloud: Cloud, http: httpx.Client, instance: str) -> None:
    """Each change is an operation; during it the resource shows its state, and after it the result."""
    read = http.get(instance).json()
    assert (read["name"], read["state"], read["memorySizeGb"]) == (instance[4:], "READY", 5)
    patching = http.patch(f"{instance}?updateMask=memorySizeGb,labels", json={"memorySizeGb": 8, "labels": {"a": "b"}})
    operation = patching.json()
    assert operation["metadata"]["verb"] == "update"
    assert (operation["done"], operation["metadata"]["target"]) == (False, instance[4:])
    shown = http.get(instance).json()
    assert (shown["state"], shown["memorySizeGb"]) == ("UPDATING", 5)
    done = finished(http, patching)
    assert (done["response"]["memorySizeGb"], done["response"]["@type"][-11:]) == (8, "v1.Instance")
    assert "endTime" in done["metadata"]
    finished(http, http.patch(f"{instance}?updateMask=labels", json={}))
    assert "labels" not in http.get(instance).json()
    failing_over = http.post(f"{instance}:failover", json={"dataProtectionMode": "LIMITED_DATA_LOSS"})
    assert http.get(instance).json()["state"] == "FAILING_OVER"
    finished(http, failing_over)
    finished(http, http.post(f"{instance}:upgrade", json={"redisVersion": "REDIS_7_X"}))
    assert http.get(instance).json()["redisVersion"] == "REDIS_7_X"
    assert [each["name"] for each in http.get(f"{PLACE[:25]}-/instances").json()["instances"]] == [instance[4:]]
    deleting = http.delete(instance)
    assert http.get(instance).json()["state"] == "DELETING"
    assert finished(http, deleting)["response"]["@type"].endswith("Empty")
    assert status_of(http.get(instance)) == (404, "NOT_FOUND")
    assert http.get(INSTANCES).json() == {"instances": []}
    assert [effect.operation.rpartition(".")[2] for effect in cloud.effects] == [
        "create", "patch", "patch", "failover", "upgrade", "delete"
    ]  # fmt: skip


def test_one_operation_at_a_time(cloud: Cloud, http: httpx.Client, instance: str) -> None:
    """While an operation runs, every other change is refused; an existing instance cannot be created again."""
    assert status_of(http.post(f"{INSTANCES}?instanceId=cache", json=BODY)) == (409, "ALREADY_EXISTS")
    started = http.post(f"{instance}:failover")
    busy = [
        http.post(f"{instance}:failover"),
        http.patch(f"{instance}?updateMask=labels", json={}),
        http.delete(instance),
    ]
    assert [status_of(response) for response in busy] == [(400, "FAILED_PRECONDITION")] * 3
    finished(http, started)
    assert cloud.effects.count(f"{PREFIX}.instances.failover") == 1
    finished(http, http.delete(instance))


def test_a_job_takes_the_configured_number_of_polls(cloud: Cloud, http: httpx.Client) -> None:
    """An operation takes the configured number of polls; a read of its resource counts as a poll, too."""
    cloud.store.memorystore.polls = 1
    operation = http.post(f"{INSTANCES}?instanceId=quick", json=BODY).json()["name"]
    assert http.get(f"{PLACE}/operations").json()["operations"][0]["done"] is False
    assert http.get(f"/v1/{operation}").json()["done"] is True
    cloud.fault(Fault.long_running(3))
    operation = http.post(f"{INSTANCES}?instanceId=slow", json=BODY).json()["name"]
    assert http.get(f"{INSTANCES}/slow").json()["state"] == "CREATING"
    assert http.get(f"/v1/{operation}").json()["done"] is False
    assert http.get(f"{INSTANCES}/slow").json()["state"] == "READY"
    assert http.get(f"/v1/{operation}").json()["done"] is True


def test_operations_that_fail(cloud: Cloud, http: httpx.Client, instance: str) -> None:
    """A failed change leaves the instance as it was, and a failed creation removes it."""
    cloud.fault(
        Fault.long_running(1, error=13), Fault.long_running(1, error=8, operation=f"{PREFIX}.instances.upgrade")
    )
    failed = finished(http, http.post(f"{INSTANCES}?instanceId=other", json=BODY))
    assert failed["error"]["code"] == 13
    assert http.get(f"{INSTANCES}/other").status_code == 404
    before = http.get(instance).json()
    assert finished(http, http.post(f"{instance}:upgrade", json={"redisVersion": "REDIS_9_0"}))["error"]["code"] == 8
    assert http.get(instance).json() == before
    assert cloud.requests.count(f"{PREFIX}.instances.create") == 2


def test_cancelling_and_forgetting(http: httpx.Client, instance: str) -> None:
    """A cancelled operation fails with its own code; a deleted one continues but cannot be read."""
    operation = f"/v1/{http.post(f'{instance}:failover').json()['name']}"
    assert http.post(f"{operation}:cancel").json() == {}
    cancelled = http.get(operation).json()
    assert (cancelled["error"]["code"], cancelled["metadata"]["cancelRequested"]) == (1, True)
    assert http.post(f"{operation}:cancel").json() == {}
    operation = f"/v1/{http.delete(instance).json()['name']}"
    assert http.delete(operation).json() == {}
    assert status_of(http.get(operation)) == (404, "NOT_FOUND")
    assert [http.get(instance).status_code for _ in range(2)] == [200, 404]


def test_request_ids(cloud: Cloud, http: httpx.Client) -> None:
    """A repeated request with the same id gets the operation of the first; the API of instances has no ids."""
    create = f"{CLUSTERS}?clusterId=many&requestId={ONE}"
    first, again = (http.post(create, json={"shardCount": 3}) for _ in range(2))
    assert first.json()["name"] == again.json()["name"]
    assert finished(http, first)["response"]["state"] == "ACTIVE"
    assert http.post(create, json={"shardCount": 3}).json()["done"] is True
    assert status_of(http.post(create.replace("11", "22"), json={"shardCount": 3})) == (409, "ALREADY_EXISTS")
    patch = f"{CLUSTERS}/many?updateMask=replicaCount&requestId={ONE}"
    assert finished(http, http.patch(patch, json={"replicaCount": 1}))["response"]["replicaCount"] == 1
    assert http.patch(patch, json={"replicaCount": 1}).json()["done"] is True
    delete = f"{CLUSTERS}/many?requestId={ONE}"
    finished(http, http.delete(delete))
    assert http.delete(delete).json()["done"] is True
    assert status_of(http.delete(f"{CLUSTERS}/many")) == (404, "NOT_FOUND")
    assert [effect.operation for effect in cloud.effects] == [
        f"{PREFIX}.clusters.{verb}" for verb in ("create", "patch", "delete")
    ]
    create = f"{INSTANCES}?instanceId=cache&requestId={ONE}"
    assert [http.post(create, json=BODY).status_code for _ in range(2)] == [200, 409]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", INSTANCES, BODY),
        ("POST", f"{INSTANCES}?instanceId=A", BODY),
        ("POST", f"{INSTANCES}?instanceId=a", {}),
        ("POST", f"{INSTANCES}?instanceId=a", {"memorySizeGb": 0}),
        ("POST", f"{INSTANCES}?instanceId=a", {"memorySizeGb": 1, "tier": "GOLD"}),
        ("POST", f"{INSTANCES}?instanceId=a", {"memorySizeGb": 1, "tier": 2}),
        ("POST", f"{INSTANCES}?instanceId=a", {"memorySizeGb": 1, "tier": True}),
        ("POST", f"{INSTANCES}?instanceId=a", {"memorySizeGb": 1, "tier": ["BASIC"]}),
        ("POST", f"{INSTANCE}:failover", {"dataProtectionMode": 3}),
        ("POST", f"{CLUSTERS}?clusterId=a", {"shardCount": 0}),
        ("POST", f"{CLUSTERS}?clusterId=a&requestId=x", {"shardCount": 1}),
        ("POST", f"{CLUSTERS}?clusterId=a&requestId={ONE.replace('1', '0')}", {"shardCount": 1}),
        ("PATCH", INSTANCE, {}),
        ("PATCH", f"{INSTANCE}?updateMask=name", {}),
        ("POST", f"{INSTANCE}:upgrade", {}),
        ("POST", f"{INSTANCE}:upgrade", {"redisVersion": "7"}),
        ("POST", f"{INSTANCE}:failover", {"dataProtectionMode": "NONE"}),
    ],
)
def test_bad_requests(cloud: Cloud, http: httpx.Client, instance: str, method: str, path: str, body: object) -> None:
    """Invalid requests are refused in the form of the API, and change nothing."""
    before = cloud.effects.total
    assert status_of(http.request(method, path, json=body)) == (400, "INVALID_ARGUMENT")
    assert cloud.effects.total == before


def test_enums_are_accepted_by_name_and_by_number(http: httpx.Client) -> None:
    """A client may send the number of an enum value, also in nested fields; responses have the names."""
    persistence = TYPES.PersistenceConfig.PersistenceMode.RDB, TYPES.PersistenceConfig.SnapshotPeriod.SIX_HOURS
    body = {
        "memorySizeGb": 1,
        "tier": TYPES.Instance.Tier.STANDARD_HA.value,
        "connectMode": TYPES.Instance.ConnectMode.PRIVATE_SERVICE_ACCESS.value,
        "transitEncryptionMode": TYPES.Instance.TransitEncryptionMode.SERVER_AUTHENTICATION.value,
        "readReplicasMode": "READ_REPLICAS_ENABLED",
        "persistenceConfig": {"persistenceMode": persistence[0].value, "rdbSnapshotPeriod": persistence[1].value},
    }
    made = finished(http, http.post(f"{INSTANCES}?instanceId=cache", json=body))["response"]
    assert {name: made[name] for name in body} == {
        "memorySizeGb": 1,
        "tier": "STANDARD_HA",
        "connectMode": "PRIVATE_SERVICE_ACCESS",
        "transitEncryptionMode": "SERVER_AUTHENTICATION",
        "readReplicasMode": "READ_REPLICAS_ENABLED",
        "persistenceConfig": {"persistenceMode": "RDB", "rdbSnapshotPeriod": "SIX_HOURS"},
    }
    changed = finished(http, http.patch(f"{INSTANCE}?updateMask=readReplicasMode", json={"readReplicasMode": 1}))
    assert changed["response"]["readReplicasMode"] == "READ_REPLICAS_DISABLED"
    force = TYPES.FailoverInstanceRequest.DataProtectionMode.FORCE_DATA_LOSS.value
    assert "error" not in finished(http, http.post(f"{INSTANCE}:failover", json={"dataProtectionMode": force}))
    cluster = {"shardCount": 1, "nodeType": 4, "authorizationMode": 1}
    made = finished(http, http.post(f"{CLUSTERS}?clusterId=many", json=cluster))["response"]
    assert (made["nodeType"], made["authorizationMode"]) == ("REDIS_STANDARD_SMALL", "AUTH_MODE_IAM_AUTH")


def test_the_basic_tier_has_no_replica(http: httpx.Client) -> None:
    """An instance of the basic tier cannot fail over."""
    finished(http, http.post(f"{INSTANCES}?instanceId=small", json={"memorySizeGb": 1}))
    assert status_of(http.post(f"{INSTANCES}/small:failover")) == (400, "FAILED_PRECONDITION")


@pytest.fixture
def redis(cloud: Cloud) -> Iterator[Any]:
    """Return the real client library, connected to the cloud."""
    with googleapiclient.discovery.build(
        "redis",
        "v1",
        credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
        client_options=google.api_core.client_options.ClientOptions(api_endpoint=cloud.url),
        static_discovery=True,
    ) as client:
        yield client.projects().locations()


def test_the_client_that_sends_enums_as_numbers(cloud: Cloud) -> None:
    """google-cloud-redis over REST, which sends every enum as its number, works against the cloud."""
    transport = CloudRedisRestTransport(
        host=cloud.url.removeprefix("http://"), url_scheme="http", credentials=cast("Any", AnonymousCredentials)()
    )
    instance = redis_v1.Instance(memory_size_gb=1, tier=redis_v1.Instance.Tier.STANDARD_HA)
    with redis_v1.CloudRedisClient(transport=transport) as client:
        arguments = {"parent": "projects/p/locations/l", "instance_id": "cache", "instance": instance}
        client.create_instance(redis_v1.CreateInstanceRequest(arguments))
        name = "projects/p/locations/l/instances/cache"
        client.get_instance(name=name)
        assert client.get_instance(name=name).tier == redis_v1.Instance.Tier.STANDARD_HA


def test_the_real_client(redis: Any) -> None:
    """google-api-python-client works against the cloud."""
    parent = "projects/p/locations/l"
    started = redis.instances().create(parent=parent, instanceId="cache", body=BODY).execute()
    while not (operation := redis.operations().get(name=started["name"]).execute())["done"]:
        pass
    assert operation["response"]["name"] == f"{parent}/instances/cache"
    assert len(redis.instances().list(parent=parent).execute()["instances"]) == 1
