"""The state of a cloud, and its administration under /_cloud/: state, logs and faults as JSON, for other processes."""

from collections.abc import Callable
from typing import TypeAlias

from forbear_cloud.faults.fault import Fault
from forbear_cloud.faults.plan import FaultPlan, RandomFaults, fault_from_json
from forbear_cloud.http.messages import ApiError, HttpRequest, HttpResponse, Json, JsonObject, json_response
from forbear_cloud.iam.accounts import account_resource
from forbear_cloud.iam.policies import role_resource
from forbear_cloud.journal import Effects, Requests
from forbear_cloud.memorystore.instances import resource_json
from forbear_cloud.memorystore.jobs import job_resource
from forbear_cloud.storage.fields import json_value
from forbear_cloud.storage.resources import bucket_resource, object_resource
from forbear_cloud.storage.store import Store

PREFIX = "/_cloud/"
_LARGEST_PLAN = 4 * 1024 * 1024


class CloudState:
    """Everything that a cloud remembers: stored resources, faults, and the logs of effects and requests.

    Hold `store.lock` to use it. `seed` is for faults with a probability, and `memory_limit` is in bytes. `admitted`
    counts the requests that got a number, and `resets` the calls of `reset`.
    """

    def __init__(self, seed: int = 0, memory_limit: int = 1024**3) -> None:
        self.store = Store(memory_limit=memory_limit)
        self.effects = Effects()
        self.requests = Requests()
        self.plan = FaultPlan(seed)
        self.admitted = 0
        self.resets = 0

    def reset(self) -> None:
        """Delete everything stored, all faults and both logs, and number the requests from 1 again.

        The seed stays, and the random numbers of faults start anew from it. Generations and ids of new resources keep
        rising.
        """
        with self.store.lock:
            self.store.clear()
            self.plan.clear()
            self.effects.clear()
            self.requests.clear()
            self.admitted = 0
            self.resets += 1


def administer(state: CloudState, request: HttpRequest) -> HttpResponse:
    """Perform the command that the path names after /_cloud/, and return its result as JSON.

    The result is {"status": "ok"} for a command without one. ApiError 404 for an unknown command, 405 for a wrong
    method, and 403 for an Origin header, which browsers send for web pages.
    """
    if "origin" in request.headers:
        text = "A web page may not administer the embedded cloud: requests with an Origin are refused."
        raise ApiError(403, text, "originNotAllowed")
    name = request.path.removeprefix(PREFIX)
    if name not in _COMMANDS:
        raise ApiError(404, f"Not Found: under {PREFIX} there are {', '.join(_COMMANDS)}.")
    command = _COMMANDS[name].get(request.method)
    if command is None:
        allowed = ", ".join(_COMMANDS[name])
        raise ApiError(405, f"Method not allowed here; allowed: {allowed}.", headers=(("Allow", allowed),))
    return json_response(command(state, request) or {"status": "ok"})


def _state(state: CloudState, request: HttpRequest) -> JsonObject:
    store, base = state.store, f"http://{request.host}"
    return {
        "buckets": [
            {
                **bucket_resource(bucket, base, full=False),
                "objects": [object_resource(item, base) for item in bucket.versions()],
            }
            for bucket in store.buckets.values()
        ],
        "uploads": [
            {
                "id": session.id,
                "bucket": session.target.bucket,
                "name": session.target.name,
                "received": len(session.data),
            }
            for session in store.sessions.values()
            if session.finished is None and session.gone is None
        ],
        "multipartUploads": [
            {"id": upload_id, "bucket": upload.target.bucket, "name": upload.target.name, "parts": sorted(upload.parts)}
            for upload_id, upload in store.multiparts.items()
        ],
        "serviceAccounts": [account_resource(account) for account in store.iam.accounts.values()],
        "roles": [role_resource(role) for role in store.iam.roles.values()],
        "policies": {name: {**policy.body, "etag": policy.etag} for name, policy in store.iam.policies.items()},
        "memorystore": [resource_json(resource) for resource in store.memorystore.resources.values()],
        "operations": [job_resource(job) for job in store.memorystore.jobs.values()],
        "pendingFaults": state.plan.pending,
    }


def _add_faults(state: CloudState, request: HttpRequest) -> JsonObject:
    """Add the fault, or the list of faults, that the body has as JSON; return how many under "armed".

    ApiError 400, and no fault is added, if one of them is wrong; 413 if the body is larger than 4 MiB.
    """
    value = json_value(request.body, _LARGEST_PLAN)
    entries = value if isinstance(value, list) else [value]
    faults = [_fault(entry, f"faults[{number}]: " if entries is value else "") for number, entry in enumerate(entries)]
    for fault in faults:
        state.plan.add(fault)
    return {"status": "ok", "armed": len(faults)}


def _fault(value: Json, prefix: str) -> Fault | RandomFaults:
    try:
        return fault_from_json(value)
    except (TypeError, ValueError) as error:
        raise ApiError(400, f"{prefix}{error}") from None


_Command: TypeAlias = "Callable[[CloudState, HttpRequest], JsonObject | None]"
_COMMANDS: dict[str, dict[str, _Command]] = {
    "health": {"GET": lambda _state, _request: None},
    "state": {"GET": _state},
    "effects": {
        "GET": lambda state, _: {"total": state.effects.total, "effects": [each._asdict() for each in state.effects]}
    },
    "requests": {
        "GET": lambda state, _: {"total": state.requests.total, "requests": [each._asdict() for each in state.requests]}
    },
    "faults": {"POST": _add_faults, "DELETE": lambda state, _: state.plan.clear()},
    "reset": {"POST": lambda state, _: state.reset()},
}
