"""Long-running operations of Memorystore (jobs): get, list, cancel and delete; each get counts as one poll.

A job ends after some polls, not with time.
"""

from forbear_cloud.call import ApiCall
from forbear_cloud.http.messages import HttpResponse, JsonObject, json_response
from forbear_cloud.storage.memorystore_state import CANCELLED, Job
from forbear_cloud.storage.resources import google_page, moment, present

_TYPES = "type.googleapis.com/google.cloud.redis"


def get(call: ApiCall) -> HttpResponse:
    """Read a job (a long-running operation), which counts as a poll: the last poll ends the job before the response."""
    job = _job(call)
    call.store.memorystore.poll(job)
    return json_response(job_resource(job))


def list_(call: ApiCall) -> HttpResponse:
    """List one page of the jobs (long-running operations) of a location, without deleted ones; this is no poll."""
    parent = _parent(call)
    jobs = call.store.memorystore.jobs
    shown = {name: job for name, job in jobs.items() if name.startswith(parent) and not job.forgotten}
    return google_page("operations", shown, job_resource, call.query)


def cancel(call: ApiCall) -> HttpResponse:
    """Cancel a job (a long-running operation), whose change then never takes effect.

    Respond with an empty object. A job that has ended stays as it is.
    """
    job = _job(call)
    if job.ended is None:
        job.cancelled, job.error = True, CANCELLED
        call.store.memorystore.end(job)
        return call.finish(job.name)
    return json_response({})


def delete(call: ApiCall) -> HttpResponse:
    """Forget a job (a long-running operation), so that it can no longer be read or listed.

    Respond with an empty object. A running job continues.
    """
    job = _job(call)
    job.forgotten = True
    return call.finish(job.name)


def _parent(call: ApiCall) -> str:
    return f"projects/{call.names['project']}/locations/{call.names['location']}/operations/"


def _job(call: ApiCall) -> Job:
    """Return the job (a long-running operation) that the path names; raise 404 if it does not exist or was deleted."""
    return call.store.memorystore.job(_parent(call) + call.names["operation"])


def job_resource(job: Job) -> JsonObject:
    """Return the JSON resource of a job, a long-running operation.

    Once the job has ended, it has the job's error or else, as the response, the resource that the job changed. That is
    empty if the job deleted the resource.
    """
    cluster = job.resource.name.split("/")[4] == "clusters"
    package = f"{_TYPES}.cluster.v1" if cluster else f"{_TYPES}.v1"
    kind = f"{package}.{'Cluster' if cluster else 'Instance'}"
    metadata: JsonObject = {
        "@type": f"{package}.OperationMetadata",
        "createTime": moment(job.created),
        "endTime": None if job.ended is None else moment(job.ended),
        "target": job.resource.name,
        "verb": job.verb,
        "cancelRequested": job.cancelled,
        "apiVersion": "v1",
    }
    resource: JsonObject = {"name": job.name, "metadata": present(metadata), "done": job.ended is not None}
    if job.ended is None:
        return resource
    if job.error is not None:
        word = "was cancelled" if job.error == CANCELLED else "has failed"
        return {**resource, "error": {"code": job.error, "message": f"The operation {word}."}}
    if job.fields is None:
        return {**resource, "response": {"@type": "type.googleapis.com/google.protobuf.Empty"}}
    response = {"@type": kind, "name": job.resource.name, **job.fields, "state": job.resource.ready}
    return {**resource, "response": response}
