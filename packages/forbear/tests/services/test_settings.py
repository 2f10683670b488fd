"""Settings of a service that users may make, and the errors of wrong ones."""

from collections.abc import Callable
from typing import Any

import pytest

from forbear.services.cloud_storage import CloudStorage
from forbear.services.iam import Iam
from forbear.services.memorystore import Memorystore

SERVICES: list[Callable[..., Any]] = [CloudStorage, Iam, Memorystore]


@pytest.mark.parametrize("service", SERVICES)
def test_statuses_can_be_chosen(service: Callable[..., Any]) -> None:
    """Any collection of error statuses can be chosen; the verdicts follow them, over gRPC as well."""
    chosen = service(statuses=[503, 418])
    assert chosen.statuses == {418, 503}
    judgement = chosen.classify_call(_call())
    assert chosen.verdict(judgement, 418, {}).kind.name == "TRANSIENT"
    assert chosen.verdict(judgement, 500, {}).kind.name == "PERMANENT"
    assert chosen.call_verdict(judgement, 14).kind.name == "TRANSIENT"
    assert chosen.call_verdict(judgement, 13).kind.name == "PERMANENT"


def _call() -> Any:
    from forbear.grpc.call import GrpcCall

    return GrpcCall("x.Y/Z")


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("statuses", "error", "why"),
    [
        (503, TypeError, "`statuses` must be a set of HTTP statuses, such as {429, 503}, got 503"),
        ("503", TypeError, "`statuses` must be a set of HTTP statuses, such as {429, 503}, got '503'"),
        ({200}, ValueError, "`statuses` must be HTTP statuses of errors, from 400 to 599, got 200"),
        (["503"], ValueError, "`statuses` must be HTTP statuses of errors, from 400 to 599, got '503'"),
    ],
)
def test_what_are_no_statuses(service: Callable[..., Any], statuses: object, error: type[Exception], why: str) -> None:
    """The text names the parameter, the rule and the value."""
    with pytest.raises(error) as caught:
        service(statuses=statuses)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("service", "flag"),
    [(CloudStorage, "disputed"), (CloudStorage, "documented"), (Iam, "documented"), (Iam, "retry_not_found")],
)
def test_flags_are_true_or_false(service: Callable[..., Any], flag: str) -> None:
    """A word such as "no" would count as true."""
    with pytest.raises(TypeError, match=f"`{flag}` must be True or False, got 'no'"):
        service(**{flag: "no"})
