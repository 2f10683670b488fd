"""operations: get, list, cancel and delete; looking at a running one moves it on."""

from forbear.testing.cloud.call import Call
from forbear.testing.cloud.http.messages import JsonObject, Reply, json_reply
from forbear.testing.cloud.storage.fields import page
from forbear.testing.cloud.storage.memorystore_state import CANCELLED, Job
from forbear.testing.cloud.storage.resources import moment

_TYPES = "type.googleapis.com/google.cloud.redis"


def get(call: Call) -> Reply:
    """Look at a job, which is a poll."""
    job = _job(call)
    call.store.memorystore.poll(job)
    return job_reply(job)


def list_(call: Call) -> Reply:
    """List the jobs of a location; no poll."""
    parent = f"projects/{call.names['project']}/locations/{call.names['location']}/operations/"
    jobs = call.store.memorystore.jobs
    names = sorted(name for name, job in jobs.items() if name.startswith(parent) and not job.forgotten)
    shown, token = page(names, call.query, "pageSize")
    listed: JsonObject = {"operations": [job_resource(jobs[name]) for name in shown]}
    return json_reply(listed if token is None else {**listed, "nextPageToken": token})


def cancel(call: Call) -> Reply:
    """Stop a job; one that is done stays as it is."""
    job = _job(call)
    if job.ended is None:
        job.cancelled, job.error = True, CANCELLED
        call.store.memorystore.end(job)
        call.committed(job.name)
    return json_reply({})


def delete(call: Call) -> Reply:
    """Forget a job, which goes on all the same."""
    job = _job(call)
    job.forgotten = True
    call.committed(job.name)
    return json_reply({})


def job_reply(job: Job) -> Reply:
    """A job as the reply of what started it, and of a poll."""
    return json_reply(job_resource(job))


def _job(call: Call) -> Job:
    names = call.names
    return call.store.memorystore.job(
        f"projects/{names['project']}/locations/{names['location']}/operations/{names['operation']}"
    )


def job_resource(job: Job) -> JsonObject:
    """A job as clients see it."""
    cluster = job.resource.name.split("/")[4] == "clusters"
    package = f"{_TYPES}.cluster.v1" if cluster else f"{_TYPES}.v1"
    metadata: JsonObject = {
        "@type": f"{package}.OperationMetadata",
        "createTime": moment(job.created),
        "target": job.resource.name,
        "verb": job.verb,
        "cancelRequested": job.cancelled,
        "apiVersion": "v1",
    }
    if job.ended is not None:
        metadata["endTime"] = moment(job.ended)
    resource: JsonObject = {"name": job.name, "metadata": metadata, "done": job.ended is not None}
    if job.ended is None:
        return resource
    if job.error is not None:
        word = "was cancelled" if job.error == CANCELLED else "has failed"
        return {**resource, "error": {"code": job.error, "message": f"The operation {word}."}}
    if job.fields is None:
        return {**resource, "response": {"@type": "type.googleapis.com/google.protobuf.Empty"}}
    kind = f"{package}.{'Cluster' if cluster else 'Instance'}"
    return {
        **resource,
        "response": {"@type": kind, "name": job.resource.name, **job.fields, "state": job.resource.ready},
    }
