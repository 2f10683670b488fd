"""Redis instances and clusters: create, get, list, patch and delete them, fail over and upgrade instances.

Each change starts a job (a long-running operation), which is the response, and takes effect when the job ends.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from forbear_cloud.call import ApiCall, Handlers
from forbear_cloud.http.messages import (
    HttpResponse,
    Json,
    JsonObject,
    failed_precondition,
    invalid,
    json_response,
    required,
)
from forbear_cloud.memorystore.jobs import job_resource
from forbear_cloud.storage.fields import enum_name, integer, text, update_mask, with_enum_names
from forbear_cloud.storage.memorystore_state import Job, RedisResource
from forbear_cloud.storage.model import get_object
from forbear_cloud.storage.resources import google_page, moment

_ID = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_VERSION = re.compile(r"REDIS_(\d+)_(\d+|X)")

_TIERS = {1: "BASIC", 3: "STANDARD_HA"}
_DATA_PROTECTION_MODES = {0: "DATA_PROTECTION_MODE_UNSPECIFIED", 1: "LIMITED_DATA_LOSS", 2: "FORCE_DATA_LOSS"}
_INSTANCE_ENUMS = {
    "connectMode": {1: "DIRECT_PEERING", 2: "PRIVATE_SERVICE_ACCESS"},
    "readReplicasMode": {1: "READ_REPLICAS_DISABLED", 2: "READ_REPLICAS_ENABLED"},
    "transitEncryptionMode": {1: "SERVER_AUTHENTICATION", 2: "DISABLED"},
}
_PERSISTENCE_ENUMS = {
    "persistenceMode": {1: "DISABLED", 2: "RDB"},
    "rdbSnapshotPeriod": {3: "ONE_HOUR", 4: "SIX_HOURS", 5: "TWELVE_HOURS", 6: "TWENTY_FOUR_HOURS"},
}
_CLUSTER_ENUMS = {
    "authorizationMode": {1: "AUTH_MODE_IAM_AUTH", 2: "AUTH_MODE_DISABLED"},
    "nodeType": {
        1: "REDIS_SHARED_CORE_NANO",
        2: "REDIS_HIGHMEM_MEDIUM",
        3: "REDIS_HIGHMEM_XLARGE",
        4: "REDIS_STANDARD_SMALL",
    },
    "transitEncryptionMode": {
        1: "TRANSIT_ENCRYPTION_MODE_DISABLED",
        2: "TRANSIT_ENCRYPTION_MODE_SERVER_AUTHENTICATION",
    },
}


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """The differences between instances and clusters.

    `collection` is their name in paths, `id_parameter` the query parameter with the id of a new resource, and `ready`
    the state while no job (a long-running operation) changes it. `has_request_ids` says whether the API accepts request
    ids. `writable` are the fields that a patch can change. `checked` returns the fields to store for those of a
    request, or raises 400.
    """

    collection: str
    id_parameter: str
    ready: str
    has_request_ids: bool
    writable: frozenset[str]
    checked: Callable[[JsonObject], JsonObject]


def _instance(body: JsonObject) -> JsonObject:
    fields = with_enum_names(body, _INSTANCE_ENUMS)
    if persistence := get_object(body, "persistenceConfig"):
        fields["persistenceConfig"] = with_enum_names(persistence, _PERSISTENCE_ENUMS)
    fields["memorySizeGb"] = _positive(body, "memorySizeGb")
    fields["tier"] = enum_name(body, "tier", _TIERS)
    return {"redisVersion": "REDIS_7_2", "host": "10.0.0.3", "port": 6379, **fields}


def _cluster(body: JsonObject) -> JsonObject:
    fields = with_enum_names(body, _CLUSTER_ENUMS)
    return {"nodeType": "REDIS_HIGHMEM_MEDIUM", **fields, "shardCount": _positive(body, "shardCount")}


def _positive(body: JsonObject, name: str) -> int:
    value = integer(body.get(name), name)
    if value < 1:
        raise invalid(f"Invalid value for {name}: it must be at least 1.")
    return value


INSTANCES = ResourceKind(
    "instances", "instanceId", "READY", False,
    frozenset({"displayName", "labels", "memorySizeGb", "redisConfigs", "replicaCount", "readReplicasMode",
               "maintenancePolicy", "persistenceConfig"}),
    _instance,
)  # fmt: skip
CLUSTERS = ResourceKind(
    "clusters", "clusterId", "ACTIVE", True,
    frozenset({"labels", "shardCount", "replicaCount", "redisConfigs", "persistenceConfig", "maintenancePolicy",
               "deletionProtectionEnabled", "nodeType"}),
    _cluster,
)  # fmt: skip


def handlers(kind: ResourceKind) -> Handlers:
    """Return the handlers create, get, list, patch and delete of one kind of resource, by these names.

    Those of create, patch and delete start a job (a long-running operation) and respond with it; a repeated request id
    gets the job of the first request. Each get counts as one poll of the resource's job.
    """

    def create(call: ApiCall) -> HttpResponse:
        resource_id = text(call.query, kind.id_parameter)
        if not _ID.fullmatch(resource_id):
            raise invalid(
                f"Invalid value for {kind.id_parameter}: it must be 1 to 40 lower-case letters, digits and hyphens."
            )
        fields = kind.checked({name: value for name, value in call.body().items() if name not in {"name", "state"}})
        name = f"{_parent(call)}/{kind.collection}/{resource_id}"
        return _start_once(call, kind, name, lambda: call.store.memorystore.create(name, kind.ready, fields))

    def get(call: ApiCall) -> HttpResponse:
        resource = _find(call, kind)
        if resource.job is not None:
            call.store.memorystore.poll(resource.job)
            resource = _find(call, kind)  # the end of its job may have deleted it
        return json_response(resource_json(resource))

    def list_(call: ApiCall) -> HttpResponse:
        start, location = f"projects/{call.names['project']}/locations/", call.names["location"]
        shown = {
            name: resource
            for name, resource in call.store.memorystore.resources.items()
            if name.startswith(start if location == "-" else f"{start}{location}/")
            and name.split("/")[4] == kind.collection
        }
        return google_page(kind.collection, shown, resource_json, call.query)

    def patch(call: ApiCall) -> HttpResponse:
        resource, body = _find(call, kind), call.body()
        # A path into a field, such as `labels.env`, changes the whole field.
        paths = [path.partition(".")[0] for path in call.query.get("updateMask", "").split(",") if path.strip()]
        if not paths:
            raise required("updateMask")
        changes: dict[str, Json] = {name: body.get(name) for name in update_mask(",".join(paths), kind.writable)}
        changed: JsonObject = {
            name: value for name, value in {**resource.fields, **changes}.items() if value is not None
        }
        return _change(call, kind, resource, "update", "UPDATING", kind.checked(changed))

    def delete(call: ApiCall) -> HttpResponse:
        name = _name(call, kind)
        memorystore = call.store.memorystore
        return _start_once(
            call, kind, name, lambda: memorystore.change(memorystore.find(name), "delete", "DELETING", None)
        )

    return {"create": create, "get": get, "list": list_, "patch": patch, "delete": delete}


def failover(call: ApiCall) -> HttpResponse:
    """Start a job (a long-running operation) that fails an instance over, and respond with the job.

    It changes the state of the instance until it ends, and no field. Respond 400 for the basic tier, which has no
    replica, and while another job of the instance is running.
    """
    resource = _find(call, INSTANCES)
    enum_name(call.body(), "dataProtectionMode", _DATA_PROTECTION_MODES)
    if resource.fields.get("tier") == "BASIC":
        raise failed_precondition("Only an instance of the standard tier has a replica to fail over to.")
    return _change(call, INSTANCES, resource, "failover", "FAILING_OVER", resource.fields)


def upgrade(call: ApiCall) -> HttpResponse:
    """Start a job (a long-running operation) that sets an instance to the redisVersion in the body.

    Respond with the job. Respond 400 unless the version has the form of REDIS_7_2 or REDIS_7_X, and while another job
    of the instance is running.
    """
    resource, version = _find(call, INSTANCES), text(call.body(), "redisVersion")
    if not _VERSION.fullmatch(version):
        raise invalid(f"Invalid value for redisVersion: '{version[:80]}'. It must be a version such as REDIS_7_2.")
    fields: JsonObject = {**resource.fields, "redisVersion": version}
    return _change(call, INSTANCES, resource, "upgrade", "UPDATING", fields)


def resource_json(resource: RedisResource) -> JsonObject:
    """Return the JSON resource of an instance or a cluster, with its state and the time of its creation."""
    return {
        "name": resource.name,
        **resource.fields,
        "state": resource.state,
        "createTime": moment(resource.created),
    }


def _parent(call: ApiCall) -> str:
    return f"projects/{call.names['project']}/locations/{call.names['location']}"


def _name(call: ApiCall, kind: ResourceKind) -> str:
    return f"{_parent(call)}/{kind.collection}/{call.names['resource']}"


def _find(call: ApiCall, kind: ResourceKind) -> RedisResource:
    return call.store.memorystore.find(_name(call, kind))


def _change(
    call: ApiCall, kind: ResourceKind, resource: RedisResource, verb: str, state: str, fields: JsonObject
) -> HttpResponse:
    """Start a job (a long-running operation) that gives the resource these fields, and respond with the job.

    `verb` is its name, and `state` the state of the resource during the job. Raise 400 while another job is running.
    """
    memorystore = call.store.memorystore
    return _start_once(call, kind, resource.name, lambda: memorystore.change(resource, verb, state, fields))


def _start_once(call: ApiCall, kind: ResourceKind, name: str, start: Callable[[], Job]) -> HttpResponse:
    """Call `start`, which starts a job (a long-running operation), record a change of `name`, and respond with the job.

    If an earlier request of this operation for `name` had the same request id, start nothing and respond with its job.
    """
    key = (call.operation, name, _request_id(call, kind))
    by_request = call.store.memorystore.by_request
    job = by_request.get(key)
    if job is None:
        job = start()
        if key[2]:
            by_request[key] = job
        call.commit(name)
    return json_response(job_resource(job))


def _request_id(call: ApiCall, kind: ResourceKind) -> str:
    """Return the request id in canonical form, "" if it is absent or the API has none.

    Raise 400 if it is no UUID, or the UUID of zeros.
    """
    value = call.query.get("requestId")
    if not value or not kind.has_request_ids:
        return ""
    try:
        request_id = UUID(value)
    except ValueError:
        request_id = UUID(int=0)
    if not request_id.int:
        raise invalid("Invalid value for requestId: it must be a UUID other than 00000000-0000-0000-0000-000000000000.")
    return str(request_id)
