"""The state of Memorystore for Redis: instances, clusters and jobs (long-running operations).

A job makes progress when a client polls it, not with time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from forbear_cloud.http.messages import ApiError, JsonObject, already_exists, failed_precondition

CANCELLED = 1
"""The google.rpc code of a cancelled job."""


@dataclass(slots=True)
class RedisResource:
    """An instance or a cluster; `ready` is its state while no `job` changes it."""

    name: str
    fields: JsonObject
    state: str
    ready: str
    created: float
    job: "Job | None" = None


@dataclass(slots=True)
class Job:
    """A long-running operation (create, update, delete, ...) on a resource; it ends after `polls` more polls.

    `fields` are the resource's fields after the job; None deletes the resource. A job with an `error`, a google.rpc
    code, changes nothing, and a resource that it was to create is removed. Clients can no longer read a `forgotten`
    job, which continues.
    """

    name: str
    verb: str
    resource: RedisResource
    fields: "JsonObject | None"
    created: float
    polls: int
    error: int | None = None
    ended: float | None = None
    cancelled: bool = False
    forgotten: bool = False


class MemorystoreState:
    """All instances, clusters and jobs (long-running operations); a new job ends after `polls` polls (2 by default)."""

    def __init__(self, now: Callable[[], float], next_id: Callable[[], int]) -> None:
        self.polls = 2
        self.resources: dict[str, RedisResource] = {}
        self.jobs: dict[str, Job] = {}
        self.by_request: dict[tuple[str, str, str], Job] = {}
        """The jobs of requests that had a request id, by operation, resource name and request id."""
        self._now = now
        self._next_id = next_id

    def clear(self) -> None:
        """Delete all instances, clusters and jobs, but keep `polls`."""
        for table in (self.resources, self.jobs, self.by_request):
            table.clear()

    def find(self, name: str) -> RedisResource:
        """Return the instance or the cluster with this resource name; raise 404 if it does not exist."""
        resource = self.resources.get(name)
        if resource is None:
            raise ApiError(404, f"Resource '{name}' was not found")
        return resource

    def create(self, name: str, ready: str, fields: JsonObject) -> Job:
        """Add a resource in the state CREATING; start and return a job that gives it `fields` and the state `ready`.

        Raise 409 if the resource exists.
        """
        if name in self.resources:
            raise already_exists(f"Resource '{name}' already exists")
        resource = self.resources[name] = RedisResource(name, {}, "CREATING", ready, self._now())
        return self._start(resource, "create", fields)

    def change(self, resource: RedisResource, verb: str, state: str, fields: "JsonObject | None") -> Job:
        """Start and return a job that replaces the fields of a resource, or deletes it if `fields` is None.

        `state` is the state of the resource during the job, and `verb` names the change. Raise 400 while another job on
        the resource is running.
        """
        if resource.job is not None:
            raise failed_precondition(
                f"Unable to {verb} '{resource.name}' while another operation is running: wait until that one is done."
            )
        resource.state = state
        return self._start(resource, verb, fields)

    def _start(self, resource: RedisResource, verb: str, fields: "JsonObject | None") -> Job:
        parent = resource.name.rsplit("/", 2)[0]
        name = f"{parent}/operations/operation-{self._next_id()}"
        job = self.jobs[name] = Job(name, verb, resource, fields, self._now(), self.polls)
        resource.job = job
        return job

    def job(self, name: str) -> Job:
        """Return the job (long-running operation) of this name, running or ended.

        Raise 404 if it does not exist or a client has deleted it.
        """
        job = self.jobs.get(name)
        if job is None or job.forgotten:
            raise ApiError(404, f"Operation '{name}' was not found")
        return job

    def poll(self, job: Job) -> None:
        """Count one poll of a job, and end the job at its last one; do nothing if it has ended."""
        if job.ended is None:
            job.polls -= 1
            if job.polls <= 0:
                self.end(job)

    def end(self, job: Job) -> None:
        """End a job at once: set the fields of its resource, or delete the resource if the job's fields are None.

        A job with an error leaves the fields as they are, and removes the resource if it was to create that. A resource
        that stays gets the state `ready`.
        """
        resource = job.resource
        resource.job, job.ended = None, self._now()
        resource.state = resource.ready
        if job.verb == "create" if job.error is not None else job.fields is None:
            del self.resources[resource.name]
        elif job.error is None:
            resource.fields = job.fields or {}
