"""instances and clusters: create, get, list, patch, delete, failover and upgrade; changes are jobs of some polls."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from forbear.testing.cloud.call import Call, Handler
from forbear.testing.cloud.http.errors import ApiError, invalid, required
from forbear.testing.cloud.http.messages import Json, JsonObject, Reply, json_reply
from forbear.testing.cloud.memorystore.jobs import job_reply
from forbear.testing.cloud.storage.fields import integer, one_of, page, text
from forbear.testing.cloud.storage.memorystore_state import Job, Resource
from forbear.testing.cloud.storage.resources import moment

_ID = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_VERSION = re.compile(r"REDIS_(\d+)_(\d+|X)")


@dataclass(frozen=True, slots=True)
class Kind:
    """What instances and clusters differ in; only the API of `keyed` resources takes a request id."""

    collection: str
    id_parameter: str
    ready: str
    keyed: bool
    writable: frozenset[str]
    check: Callable[[JsonObject], JsonObject]


def _instance(body: JsonObject) -> JsonObject:
    size = integer(body.get("memorySizeGb"), "memorySizeGb")
    if size < 1:
        raise invalid("Invalid value for memorySizeGb: it must be at least 1.")
    fixed: JsonObject = {"tier": one_of(body, "tier", ("BASIC", "STANDARD_HA")), "memorySizeGb": size}
    return {"redisVersion": "REDIS_7_2", "host": "10.0.0.3", "port": 6379, **body, **fixed}


def _cluster(body: JsonObject) -> JsonObject:
    shards = integer(body.get("shardCount"), "shardCount")
    if shards < 1:
        raise invalid("Invalid value for shardCount: it must be at least 1.")
    return {"nodeType": "REDIS_HIGHMEM_MEDIUM", **body, "shardCount": shards}


INSTANCES = Kind(
    "instances", "instanceId", "READY", False,
    frozenset({"displayName", "labels", "memorySizeGb", "redisConfigs", "replicaCount", "readReplicasMode",
               "maintenancePolicy", "persistenceConfig"}),
    _instance,
)  # fmt: skip
CLUSTERS = Kind(
    "clusters", "clusterId", "ACTIVE", True,
    frozenset({"labels", "shardCount", "replicaCount", "redisConfigs", "persistenceConfig", "maintenancePolicy",
               "deletionProtectionEnabled", "nodeType"}),
    _cluster,
)  # fmt: skip


def handlers(kind: Kind) -> Mapping[str, Handler]:
    """The operations of one kind of resource."""

    def create(call: Call) -> Reply:
        resource_id = call.query.get(kind.id_parameter)
        if not resource_id:
            raise required(kind.id_parameter)
        if not _ID.fullmatch(resource_id):
            raise invalid(
                f"Invalid value for {kind.id_parameter}: it must be 1 to 40 lower-case letters, digits and hyphens."
            )
        fields = kind.check({name: value for name, value in call.body().items() if name not in {"name", "state"}})
        name = f"{_parent(call)}/{kind.collection}/{resource_id}"
        return _once(call, kind, name, lambda: call.store.memorystore.create(name, kind.ready, fields))

    def get(call: Call) -> Reply:
        resource = _found(call, kind)
        if resource.job is not None:
            call.store.memorystore.poll(resource.job)
            resource = _found(call, kind)
        return json_reply(resource_json(resource))

    def list_(call: Call) -> Reply:
        start, location = f"projects/{call.names['project']}/locations/", call.names["location"]
        names = sorted(
            name
            for name in call.store.memorystore.resources
            if name.startswith(start if location == "-" else f"{start}{location}/")
            and name.split("/")[4] == kind.collection
        )
        shown, token = page(names, call.query, "pageSize")
        listed: JsonObject = {
            kind.collection: [resource_json(call.store.memorystore.resources[name]) for name in shown]
        }
        return json_reply(listed if token is None else {**listed, "nextPageToken": token})

    def patch(call: Call) -> Reply:
        resource, body = _found(call, kind), call.body()
        mask = [path.strip().partition(".")[0] for path in call.query.get("updateMask", "").split(",") if path.strip()]
        if not mask:
            raise required("updateMask")
        if unknown := [name for name in mask if name not in kind.writable]:
            raise invalid(f"Invalid value for updateMask: '{unknown[0][:80]}' cannot be changed.")
        changes: dict[str, Json] = {name: body.get(name) for name in mask}
        fields = kind.check(
            {name: value for name, value in {**resource.fields, **changes}.items() if value is not None}
        )
        return _start(call, kind, resource, "update", "UPDATING", fields)

    def delete(call: Call) -> Reply:
        name = _name(call, kind)
        memorystore = call.store.memorystore
        return _once(call, kind, name, lambda: memorystore.change(memorystore.find(name), "delete", "DELETING", None))

    return {"create": create, "get": get, "list": list_, "patch": patch, "delete": delete}


def failover(call: Call) -> Reply:
    """Make the replica of an instance its primary; only the standard tier has one."""
    resource = _found(call, INSTANCES)
    one_of(
        call.body(), "dataProtectionMode", ("DATA_PROTECTION_MODE_UNSPECIFIED", "LIMITED_DATA_LOSS", "FORCE_DATA_LOSS")
    )
    if resource.fields.get("tier") == "BASIC":
        raise ApiError(
            400, "Only an instance of the standard tier has a replica to fail over to.", "FAILED_PRECONDITION"
        )
    return _start(call, INSTANCES, resource, "failover", "FAILING_OVER", resource.fields)


def upgrade(call: Call) -> Reply:
    """Move an instance to another version of Redis."""
    resource, version = _found(call, INSTANCES), text(call.body(), "redisVersion")
    if not _VERSION.fullmatch(version):
        raise invalid(f"Invalid value for redisVersion: '{version[:80]}'. It must be such as REDIS_7_2.")
    return _start(call, INSTANCES, resource, "upgrade", "UPDATING", {**resource.fields, "redisVersion": version})


def resource_json(resource: Resource) -> JsonObject:
    """An instance or a cluster as clients see it."""
    return {
        "name": resource.name,
        **resource.fields,
        "state": resource.state,
        "createTime": moment(resource.created),
    }


def _parent(call: Call) -> str:
    return f"projects/{call.names['project']}/locations/{call.names['location']}"


def _name(call: Call, kind: Kind) -> str:
    return f"{_parent(call)}/{kind.collection}/{call.names['resource']}"


def _found(call: Call, kind: Kind) -> Resource:
    return call.store.memorystore.find(_name(call, kind))


def _start(call: Call, kind: Kind, resource: Resource, verb: str, state: str, fields: JsonObject) -> Reply:
    memorystore = call.store.memorystore
    return _once(call, kind, resource.name, lambda: memorystore.change(resource, verb, state, fields))


def _once(call: Call, kind: Kind, name: str, start: Callable[[], Job]) -> Reply:
    """Start a job, unless the API takes request ids and has started one under this id before."""
    key = (call.operation, name, _request_id(call, kind))
    answered = call.store.memorystore.answered
    job = answered.get(key)
    if job is None:
        job = start()
        if key[2]:
            answered[key] = job
        call.committed(name)
    return job_reply(job)


def _request_id(call: Call, kind: Kind) -> str:
    given = call.query.get("requestId")
    if not given or not kind.keyed:
        return ""
    try:
        found = UUID(given)
    except ValueError:
        found = UUID(int=0)
    if not found.int:
        raise invalid("Invalid value for requestId: it must be a UUID other than 00000000-0000-0000-0000-000000000000.")
    return str(found)
