"""What Memorystore keeps: instances, clusters and jobs (long-running operations); polls move a job on, not time."""

from collections.abc import Callable
from dataclasses import dataclass

from forbear.testing.cloud.http.errors import ApiError
from forbear.testing.cloud.http.messages import JsonObject

CANCELLED = 1
"""The code of a job that was cancelled, as google.rpc counts."""


@dataclass(slots=True)
class Resource:
    """An instance or a cluster: `ready` is its state when no `job` (long-running operation) is under way."""

    name: str
    fields: JsonObject
    state: str
    ready: str
    created: float
    job: "Job | None" = None


@dataclass(slots=True)
class Job:
    """A long-running operation, done at the poll after which `polls` is 0.

    `fields` are what the resource has then; None deletes it. With an `error` (a code of google.rpc) nothing changes,
    and a resource that was to be made is not.
    """

    name: str
    verb: str
    resource: Resource
    fields: "JsonObject | None"
    created: float
    polls: int
    error: int | None = None
    ended: float | None = None
    cancelled: bool = False
    forgotten: bool = False


class Memorystore:
    """All resources and jobs. `polls` (2 by default) is how many polls a new job takes."""

    def __init__(self, now: Callable[[], float], next_id: Callable[[], int]) -> None:
        self.polls = 2
        self.resources: dict[str, Resource] = {}
        self.jobs: dict[str, Job] = {}
        self.answered: dict[tuple[str, str, str], Job] = {}
        """The jobs that were started under a request id, by operation, target and id."""
        self._now = now
        self._next_id = next_id

    def clear(self) -> None:
        """Forget everything but `polls`."""
        for table in (self.resources, self.jobs, self.answered):
            table.clear()

    def find(self, name: str) -> Resource:
        """An instance or a cluster; 404 when there is none."""
        resource = self.resources.get(name)
        if resource is None:
            raise ApiError(404, f"Resource '{name}' was not found")
        return resource

    def create(self, name: str, ready: str, fields: JsonObject) -> Job:
        """Start to make a resource; 409 when there is one."""
        if name in self.resources:
            raise ApiError(409, f"Resource '{name}' already exists", "ALREADY_EXISTS")
        resource = self.resources[name] = Resource(name, {}, "CREATING", ready, self._now())
        return self._start(resource, "create", fields)

    def change(self, resource: Resource, verb: str, state: str, fields: "JsonObject | None") -> Job:
        """Start to change a resource, or (None) to delete it; 400 while another job is under way."""
        if resource.job is not None:
            text = f"Unable to {verb} '{resource.name}' while another operation is under way: wait until that is done."
            raise ApiError(400, text, "FAILED_PRECONDITION")
        resource.state = state
        return self._start(resource, verb, fields)

    def _start(self, resource: Resource, verb: str, fields: "JsonObject | None") -> Job:
        parent = resource.name.rsplit("/", 2)[0]
        name = f"{parent}/operations/operation-{self._next_id()}"
        job = self.jobs[name] = Job(name, verb, resource, fields, self._now(), self.polls)
        resource.job = job
        return job

    def job(self, name: str) -> Job:
        """A job, running or done; 404 when there is none."""
        job = self.jobs.get(name)
        if job is None or job.forgotten:
            raise ApiError(404, f"Operation '{name}' was not found")
        return job

    def poll(self, job: Job) -> None:
        """Move a job on by one poll."""
        if job.ended is None:
            job.polls -= 1
            if job.polls <= 0:
                self.end(job)

    def end(self, job: Job) -> None:
        """End a job, well or with its error."""
        resource = job.resource
        resource.job, job.ended = None, self._now()
        resource.state = resource.ready
        if job.verb == "create" if job.error is not None else job.fields is None:
            del self.resources[resource.name]
        elif job.error is None:
            resource.fields = job.fields or {}
