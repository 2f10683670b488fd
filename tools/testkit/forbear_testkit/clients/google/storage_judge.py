"""The judge of google-cloud-storage under faults: what a call did twice, and what it gave up though it need not.

It goes by Cloud Storage's documented rules and the journal of the embedded cloud,
and knows nothing of forbear's tables.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qs

import forbear
from forbear.testing import virtual_time
from forbear_cloud import Fault
from forbear_cloud.journal import LoggedRequest
from forbear_testkit.clients.google.storage_calls import ETAG, Row
from forbear_testkit.clients.google.storage_world import World

Outcome = Literal["done", "conflict", "stopped", "not met", "unsafe", "needless"]

ALWAYS = {
    *("storage.buckets.insert", "storage.buckets.delete", "storage.buckets.restore"),
    *("storage.buckets.lockRetentionPolicy", "storage.notifications.delete", "storage.projects.hmacKeys.delete"),
    *("storage.objects.insert.start", "storage.objects.insert.send", "storage.objects.insert.query"),
    *("xml.object.put.part", "xml.object.delete.uploadId"),
}
"""The operations that may be repeated as they are. Of a failed chunk only the part that its session lacks is sent."""

CONDITIONS = {
    "storage.buckets.patch": ("ifMetagenerationMatch",),
    "storage.buckets.update": ("ifMetagenerationMatch",),
    "storage.objects.compose": ("ifGenerationMatch",),
    "storage.objects.copy": ("ifGenerationMatch",),
    "storage.objects.delete": ("ifGenerationMatch", "generation"),
    "storage.objects.insert": ("ifGenerationMatch",),
    "storage.objects.move": ("ifGenerationMatch",),
    "storage.objects.patch": ("ifMetagenerationMatch",),
    "storage.objects.restore": ("ifGenerationMatch",),
    "storage.objects.rewrite": ("ifGenerationMatch",),
    "storage.objects.update": ("ifMetagenerationMatch",),
}
"""The query parameters, one of which makes an operation safe to repeat."""

HARMLESS = Counter({"xml.object.put.part": 1, "xml.object.delete.uploadId": 1})
"""Operations that may be done once more: the same part replaces the first, and an upload that failed is given up."""

ETAGS = {"storage.buckets.setIamPolicy", "storage.objects.setIamPolicy"}
"""Operations that an etag in their body makes safe to repeat. The library has one for keys, but does not send it."""

FAULTS: dict[str, Callable[[int], Fault]] = {
    "503 before": lambda skip: Fault.status(503, skip=skip),
    "reset before": lambda skip: Fault.reset(skip=skip),
    "503 after": lambda skip: Fault.status(503, when="after", skip=skip),
    "reset after": lambda skip: Fault.reset(when="after", skip=skip),
    "truncated": lambda skip: Fault.truncate(1, skip=skip),
}
"""The faults, for the request after so many others."""


@dataclass(frozen=True)
class Plain:
    """The changes and the value of a call when nothing goes wrong."""

    requests: tuple[LoggedRequest, ...]
    effects: Counter[str]
    value: object


@dataclass(frozen=True)
class Judged:
    """The end of a call under one fault, and the facts for the message of a test that fails."""

    outcome: Outcome
    story: str


def plain(row: Row, world: World) -> Plain:
    """Make a call without a fault."""
    world.fill()
    value = _data(row.call(world))
    return Plain(tuple(world.cloud.requests), _effects(world), value)


def judged(row: Row, world: World, right: Plain, fault: str, number: int) -> Judged:
    """Make a call whose request of this `number`, from 0, meets a fault, and judge how it ends."""
    if fault == "truncated" and right.requests[number].status == 204:
        return Judged("not met", f"{row}, {fault} at {number}: the response has no body")
    world.fill()
    world.cloud.fault(FAULTS[fault](number))
    value: object = None
    caught: Exception | None = None
    with nullcontext() if row.method.startswith("transfer_manager") else virtual_time(seed=number):
        try:
            value = _data(row.call(world))
        except Exception as error:  # whatever a call may raise is to be judged
            caught = error
    requests = tuple(world.cloud.requests)
    met = next((request for request in requests if request.fault), None)
    outcome = "not met" if met is None else _outcome(row, world, right, met, requests, value, caught)
    sent = ", ".join(f"{request.operation} {request.status}" for request in requests)
    report = forbear.report(caught)
    return Judged(outcome, f"{row}, {fault} at {number}: {outcome}: {sent}; {caught!r}; {report and report.reason}")


def _outcome(
    row: Row,
    world: World,
    right: Plain,
    met: LoggedRequest,
    requests: tuple[LoggedRequest, ...],
    value: object,
    caught: Exception | None,
) -> Outcome:
    safety = _safety(row, met)
    again = sum((each.method, each.path, each.query) == (met.method, met.path, met.query) for each in requests) > 1
    if _effects(world) - right.effects - HARMLESS or (safety == "never" and again):
        return "unsafe"
    if caught is None:
        return "done" if value == right.value and _effects(world) >= right.effects else "needless"
    report, executed = forbear.report(caught), not str(met.fault).endswith("before")
    if report is not None and report.maybe_done and getattr(caught, "code", None) in (404, 409, 412):
        return "conflict" if executed else "needless"
    # A status that says that it was executed, then a body that breaks: a condition that was met cannot be met again.
    is_over = safety == "never" or (safety == "conditional" and met.status == 200)
    return "stopped" if is_over else "needless"


def _data(value: object) -> object:
    """Return the data that a call read, as far as it can be compared."""
    return value if isinstance(value, bytes | str | list | int) else None


def _effects(world: World) -> Counter[str]:
    return Counter(effect.operation for effect in world.cloud.effects)


def _safety(row: Row, request: LoggedRequest) -> Literal["always", "conditional", "never"]:
    """Return whether a request may be repeated as it is, because of its condition, or not."""
    operation = request.operation or ""
    if request.method in ("GET", "HEAD") or operation in ALWAYS:
        return "always"
    if operation in ETAGS:
        sent = row.remark == ETAG
    else:
        sent = any(name in parse_qs(request.query) for name in CONDITIONS.get(operation, ()))
    return "conditional" if sent else "never"
