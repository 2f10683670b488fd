"""What becomes of each kind of operation under each fault: the outcome, the requests and the effects, by one table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from forbear import Reason
from forbear.services import cloud_storage
from forbear.testing.cloud import Cloud, Fault
from tests.clients.flavours import Flavour, Result

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

FAULTS: dict[str, Callable[..., Fault]] = {
    "408": lambda when: Fault.status(408, when=when),
    "429": lambda when: Fault.status(429, when=when),
    "500": lambda when: Fault.status(500, when=when),
    "502": lambda when: Fault.status(502, when=when),
    "503": lambda when: Fault.status(503, when=when),
    "504": lambda when: Fault.status(504, when=when),
    "reset": lambda when: Fault.reset(when=when),
    "close": lambda when: Fault.close(when=when),
}


def send(flavour: Flavour, cloud: Cloud, operation: Operation, **options: Any) -> Result:
    transport = flavour.transport(cloud_storage.policy, **options)
    body = {"content": operation.content} if operation.json is None else {"json": operation.json}
    return flavour.call(transport, operation.method, cloud.url + operation.target, **body)


def effects(cloud: Cloud, operation: Operation) -> int:
    return 0 if operation.effect is None else cloud.effects.count(operation.effect)


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_each_operation_is_repeated_only_if_that_does_no_harm(
    flavour: Flavour, cloud: Cloud, kind: str, when: str
) -> None:
    """Whatever goes wrong before or after the effect, no effect happens twice and what may be repeated is."""
    for name, operation in OPERATIONS.items():
        cloud.reset()
        cloud.store.create_bucket("bkt")
        cloud.store.put("bkt", "there", b"abc")
        cloud.fault(FAULTS[kind](when))
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
