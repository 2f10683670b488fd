"""The outcome of each kind of operation under each fault: the requests and the effects, by one table."""

from typing import Any

import pytest

from forbear.events import Reason
from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault
from forbear_cloud.faults.actions import When
from forbear_testkit.clients.flavours import Flavour, Result
from forbear_testkit.clients.others import BLIND_TOO, OUTSIDERS
from forbear_testkit.clients.outcomes import FAULTS, OPERATIONS, SHORT, Operation, effects, fault
from forbear_testkit.rows import each_once


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


@pytest.mark.parametrize(
    ("flavour", "name"),
    each_once(OUTSIDERS, ["read", "with condition", "without condition"]),
    indirect=["flavour"],
)
def test_a_response_that_does_not_come_has_an_unknown_outcome(flavour: Flavour, cloud: Cloud, name: str) -> None:
    """A read timeout after the effect is repeated where that is safe, and raised where it is not."""
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
