"""Copies of policies with other fields: what changes in joined ones, what a service has, and what is refused."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import forbear
from forbear.core.verdict import TRANSIENT
from forbear.services import cloud_storage, iam, resource_manager

LEFT, RIGHT = forbear.retry(OSError, attempts=3, name="load"), forbear.retry(KeyError, attempts=4)


@pytest.mark.parametrize("service", [iam, resource_manager], ids=["iam", "resource manager"])
def test_what_is_not_found_may_be_retried(service: Any) -> None:
    """The service of the policy changes, and so does its judge of errors; a judge of the user's stays."""
    policy = service.policy
    assert not policy.service.retry_not_found
    changed = policy.with_retry_not_found()
    assert changed.service == policy.service.replace(retry_not_found=True)
    assert (changed.on.service, changed.limits) == (changed.service, policy.limits)
    assert changed.with_retry_not_found(False) == policy
    own = policy.with_on(OSError).with_retry_not_found()
    assert (own.on, own.service) == (OSError, changed.service)


def nothing_found(policy: forbear.Policy) -> object:
    """Retry what is not found."""
    return policy.with_retry_not_found()


FOUND = "the policy must be one of IAM or Resource Manager, such as iam.policy, got one of"
TEXTS: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: nothing_found(LEFT), TypeError, f"{FOUND} no service"),
    (lambda: nothing_found(cloud_storage.policy), TypeError, f"{FOUND} cloud_storage"),
    (
        lambda: iam.policy.with_retry_not_found("yes"),  # type: ignore[arg-type]
        TypeError,
        "`retry_not_found` must be True or False, got 'yes'",
    ),
    (
        lambda: (LEFT | RIGHT).with_changes(on=ValueError),
        ValueError,
        (
            "`on` of policies joined by | must be set before they are joined, because each has one of its own: write "
            "left.with_on(...) | right"
        ),
    ),
    (
        lambda: LEFT.with_changes(retries=3),  # type: ignore[call-arg]
        TypeError,
        "`retry` takes no `retries`: write `attempts`, which counts the first call, too: add 1",
    ),
    (
        LEFT.__enter__,  # type: ignore[attr-defined]
        TypeError,
        (
            "a policy is no block by itself, and a `with` cannot run its block twice; write `for attempt in "
            "forbear.retry(...):` and in it `with attempt:` (async: `async for`)"
        ),
    ),
]


@pytest.mark.parametrize(("change", "error", "text"), TEXTS, ids=map(str, range(len(TEXTS))))
def test_changes_that_are_refused(change: Callable[[], object], error: type[Exception], text: str) -> None:
    """The text says what to write instead."""
    with pytest.raises(error) as caught:
        change()
    assert str(caught.value) == text


def test_changes_of_joined_policies() -> None:
    """Limits, backoff and `repeatable` change in each; a name is that of the left one."""
    joined = LEFT | RIGHT
    backoff = forbear.Constant(2)
    for changed in (
        joined.with_changes(attempts=9, backoff=backoff, repeatable=False, name="other"),
        joined.with_attempts(9).with_backoff(backoff).with_repeatable(False).with_name("other"),
    ):
        rules: Any = (changed, *changed.others)
        assert [rule.limits.attempts for rule in rules] == [9, 9]
        assert [rule.backoff for rule in rules] == [backoff, backoff]
        assert [rule.repeatable for rule in rules] == [False, False]
        assert [rule.name for rule in rules] == ["other", None]
        assert [rule.on for rule in rules] == [OSError, KeyError]
    limits = forbear.Limits(attempts=2)
    assert [rule.limits for rule in (joined.with_limits(limits), *joined.with_limits(limits).others)] == [limits] * 2
    assert LEFT.with_changes(timeout=7).limits == LEFT.limits.replace(timeout=7)


def test_the_names_in_a_repr() -> None:
    """Types and judges go by their names, and joined policies by the sign that joins them."""
    shown = [part.split(",")[0] for part in repr(LEFT | forbear.retry(OSError) | RIGHT).split(" | ")]
    assert [text.rstrip(")") for text in shown] == ["retry(OSError", "retry(OSError", "retry(KeyError"]
    assert repr(forbear.retry(KeyError, forbear.transient)).startswith("retry(KeyError, forbear.transient")
    assert "name='load'" in repr(LEFT)
    assert "budget=" not in repr(LEFT)


def test_the_values_of_a_preset() -> None:
    """Attempts, timeout and backoff are the preset's, and all else stays."""
    preset = forbear.policies.PRESETS["batch"]
    changed = LEFT.with_preset("batch")
    assert (changed.limits.attempts, changed.limits.timeout) == (preset.limits.attempts, preset.limits.timeout)
    assert (changed.backoff, changed.on, changed.name) == (preset.backoff, OSError, "load")
    assert changed.backoff != LEFT.backoff


def test_judging_a_value_that_is_a_failure_already() -> None:
    """Only an answer for a retry counts: `on_result` may be written for successes alone."""

    def raise_error(_: object) -> bool:
        raise KeyError

    for answer, verdict in ((True, TRANSIENT), (False, None), ("no answer", None), (2, TRANSIENT.replace(delay=2))):
        policy = LEFT.with_on_result(partial(answering, answer))
        assert policy.verdict_of_failed_value("value") == verdict
    assert LEFT.with_on_result(raise_error).verdict_of_failed_value("value") is None
    assert LEFT.verdict_of_failed_value("value") is LEFT.verdict_of_value("value") is None


def answering(answer: Any, _: object) -> Any:
    """Return an answer to anything."""
    return answer
