"""What becomes of each kind of operation under each fault: the outcome, the requests and the effects, by one table."""

from dataclasses import dataclass
from typing import Any

import pytest

from forbear import Reason
from forbear.services import cloud_storage
from forbear.testing.cloud import Cloud, Fault
from forbear.testing.cloud.faults.actions import When
from tests.support.clients.flavours import Flavour, Result
from tests.support.clients.others import BLIND_TOO, OUTSIDERS
from tests.support.rows import each_once

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


def send(flavour: Flavour, cloud: Cloud, operation: Operation, **options: Any) -> Result:
    """Do an operation."""
    transport = flavour.transport(cloud_storage.policy, **options)
    url = cloud.url + operation.target
    return flavour.call(transport, operation.method, url, content=operation.content, json=operation.json)


def send_within(flavour: Flavour, cloud: Cloud, operation: Operation, timeout: float) -> Result:
    """Do an operation by a client with this read timeout."""
    transport = flavour.transport(cloud_storage.policy)
    url = cloud.url + operation.target
    return flavour.call(transport, operation.method, url, content=operation.content, client={"timeout": timeout})


def effects(cloud: Cloud, operation: Operation) -> int:
    """How often an operation took effect."""
    return 0 if operation.effect is None else cloud.effects.count(operation.effect)


@BLIND_TOO
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_each_operation_is_repeated_only_if_that_does_no_harm(
    flavour: Flavour, cloud: Cloud, kind: str, when: When
) -> None:
    """Whatever goes wrong before or after the effect, no effect happens twice and what may be repeated is."""
    for name, operation in OPERATIONS.items():
        cloud.reset()
        cloud.store.create_bucket("bkt")
        cloud.store.put("bkt", "there", b"abc")
        cloud.fault(fault(kind, when))
        result = send(flavour, cloud, operation)
        done = int(when == "after" and operation.effect is not None)
        if operation.again is None:
            assert (len(cloud.requests), effects(cloud, operation)) == (1, done), name
            assert result.report.reason is Reason.UNSAFE
            assert not result.report.maybe_done
            if kind.isdecimal():
                assert result.status == int(kind)
            else:
                assert isinstance(result.error, flavour.library.TransportError)
        else:
            assert (len(cloud.requests), result.retries) == (2, 1), name
            assert effects(cloud, operation) == (operation.effect is not None)
            assert result.status == (operation.again if done else 200), name
            if done:
                assert result.report.maybe_done
        assert result.open_connections == 0


SHORT = 0.3
"""A read timeout in seconds; where the test waits for it, no other reply takes as long."""


@pytest.mark.parametrize(
    ("flavour", "name"),
    each_once(OUTSIDERS, ["read", "with condition", "without condition"]),
    indirect=["flavour"],
)
def test_a_reply_that_does_not_come_has_an_unknown_outcome(flavour: Flavour, cloud: Cloud, name: str) -> None:
    """A read timeout after the effect is repeated where that is safe, and comes out where it is not."""
    operation = OPERATIONS[name]
    cloud.store.put("bkt", "there", b"abc")
    cloud.fault(Fault.delay(60, when="after"))
    result = send_within(flavour, cloud, operation, SHORT)
    assert effects(cloud, operation) == (operation.effect is not None)
    if operation.again is None:
        assert isinstance(result.error, flavour.library.ReadTimeout)
        assert (result.report.reason, len(cloud.requests)) == (Reason.UNSAFE, 1)
    else:
        assert (result.status, len(cloud.requests), result.retries) == (operation.again, 2, 1)
