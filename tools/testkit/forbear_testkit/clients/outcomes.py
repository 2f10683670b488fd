"""Operations and faults whose outcomes every adapter must tell apart."""

from dataclasses import dataclass
from typing import Any

from forbear_cloud import Cloud, Fault
from forbear_cloud.faults.actions import When

_UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=new"


_KEYS = "/storage/v1/projects/p/hmacKeys?serviceAccountEmail=a@b"


@dataclass(frozen=True)
class Operation:
    """An operation, how often its effect is counted, and what a second execution answers (None: never executed)."""

    method: str
    target: str
    effect: str | None
    again: int | None
    content: bytes | None = None
    json: Any = None


OPERATIONS = {
    "read": Operation("GET", "/storage/v1/b/bkt/o/there", None, 200),
    "create only": Operation("POST", "/storage/v1/b?project=p", "storage.buckets.insert", 409, json={"name": "fresh"}),
    "with condition": Operation("POST", _UPLOAD + "&ifGenerationMatch=0", "storage.objects.insert", 412, b"abc"),
    "without condition": Operation("POST", _UPLOAD, "storage.objects.insert", None, b"abc"),
    "never": Operation("POST", _KEYS, "storage.projects.hmacKeys.create", None),
}


FAULTS = ("408", "429", "500", "502", "503", "504", "reset", "close")


def fault(kind: str, when: When) -> Fault:
    """The fault of that name."""
    if kind == "reset":
        return Fault.reset(when=when)
    return Fault.close(when=when) if kind == "close" else Fault.status(int(kind), when=when)


def effects(cloud: Cloud, operation: Operation) -> int:
    """Return how often an operation took effect."""
    return 0 if operation.effect is None else cloud.effects.count(operation.effect)


SHORT = 0.3
"""A read timeout in seconds; where the test waits for it, no other response takes as long."""
