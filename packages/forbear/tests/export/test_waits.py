"""Exported waits mean what the policy means: computed by the algorithm of each target, read in its source."""

import random
import re
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import tenacity
from celery.utils.time import get_exponential_backoff_interval
from google.api_core.retry import exponential_sleep_generator
from hypothesis import given
from hypothesis import strategies as st
from urllib3.util.retry import RequestHistory

from forbear import export
from forbear.core.backoff import Exponential
from forbear.export.waits import Waits, difference, full_waits, mean_delays, mean_waits
from forbear.policy import Policy
from forbear.services import cloud_storage, iam
from forbear_testkit.export.policies import backoffs
from forbear_testkit.export.windows import WINDOWS, means, windows

DOCUMENTED, POLICY = cloud_storage.documented, cloud_storage.policy
MEANS = {"documented": [1.5, 2.5, 4.5, 8.5, 16.5, 32.5, 64, 64], "policy": [1.5, 3, 6, 12, 24, 48, 48, 48]}
FIVE_PERCENT = 0.05


@pytest.mark.parametrize("target", WINDOWS)
@pytest.mark.parametrize("policy", [DOCUMENTED, POLICY, cloud_storage.gsutil], ids=["documented", "policy", "gsutil"])
def test_no_wait_is_above_the_maximum(target: str, policy: Policy) -> None:
    """Not even by half a second, as the mean of the documented waits once was, nor by the target's own jitter."""
    longest = max(high for _, high in windows(target, policy))
    assert longest <= Waits.from_backoff(policy.backoff).longest + 1e-9


@pytest.mark.parametrize("name", ["documented", "policy"])
@pytest.mark.parametrize(
    ("target", "compared", "within"),
    [
        ("go", 5, FIVE_PERCENT),
        ("java", 5, FIVE_PERCENT),
        ("google_api_core", 5, FIVE_PERCENT),
        ("grpc", 4, FIVE_PERCENT),
        ("csharp", 5, FIVE_PERCENT),
        ("temporal", 5, FIVE_PERCENT),
        ("cpp", 5, FIVE_PERCENT),
        ("ruby", 5, FIVE_PERCENT),
        ("envoy", 5, 0.26),
    ],
)
def test_mean_waits_are_those_of_the_policy(target: str, compared: int, within: float, name: str) -> None:
    """The first five, which is as near as steps that grow by a factor come to those of the pages; gRPC makes four."""
    policy = DOCUMENTED if name == "documented" else POLICY
    theirs = means(target, policy.with_repeatable(True))
    for mean, ours in zip(theirs[:compared], MEANS[name][:compared], strict=True):
        assert round(difference(mean, ours), 2) <= within, (theirs, MEANS[name])


def test_urllib3_waits_as_the_pages_say_after_its_first_retry() -> None:
    """The first comes at once; the mean waits of all others are exact."""
    assert means("urllib3", DOCUMENTED) == [0, *MEANS["documented"][1:]]


def test_nodejs_waits_one_step_late() -> None:
    """The page's client library waits 2 to 3, 4 to 5, 8 to 9 s where the page says 1 to 2, 2 to 3, 4 to 5 s."""
    assert windows("nodejs", DOCUMENTED)[:3] == [(2, 3), (4, 5), (8, 9)]
    (loss,) = [loss for loss in export.nodejs(DOCUMENTED).losses if loss.startswith("waits")]
    assert "on average 2.5, 4.5, 8.5, " in loss
    assert "`Math.pow(retryDelayMultiplier, retryNumber) * 1000 + jitter`" in loss


@pytest.mark.parametrize("target", WINDOWS)
@pytest.mark.parametrize("name", ["documented", "policy"])
def test_a_difference_in_waits_is_a_loss_that_quotes_its_reason(target: str, name: str) -> None:
    """If any of the first seven mean waits differs by 5 %, the loss says so and quotes the line that is the reason."""
    policy = (DOCUMENTED if name == "documented" else POLICY).with_repeatable(True)
    compared = 4 if target == "grpc" else 7
    differs = [
        mean for mean, ours in zip(means(target, policy)[:compared], MEANS[name], strict=False)
        if difference(mean, ours) > FIVE_PERCENT
    ]  # fmt: skip
    losses = [loss for loss in export.source(target, policy).losses if loss.startswith("waits of ")]
    assert len(losses) >= bool(differs)
    for loss in losses:
        assert re.search(r"on average .* instead of .* s \(.*`.+`.*\)$", loss), loss


@pytest.mark.parametrize(("target", "lost"), [("boto", "408 is final"), ("gcloud", "408 and 429 are final")])
@pytest.mark.parametrize("policy", [DOCUMENTED, POLICY], ids=["documented", "policy"])
def test_statuses_that_a_program_does_not_repeat_are_a_loss(target: str, lost: str, policy: Policy) -> None:
    """The page repeats both; the loss quotes the line of apitools, or of gcloud, that does not."""
    (loss,) = [loss for loss in export.source(target, policy).losses if loss.startswith("errors")]
    assert lost in loss
    assert "status_code >= 500" in loss


def test_statuses_that_the_policy_does_not_repeat_are_no_loss() -> None:
    """The page of IAM repeats neither 408 nor 429."""
    policy = iam.documented.replace(service=None)
    assert "408" in "".join(export.gcloud(policy).losses)
    assert "408" not in "".join(export.gcloud(DOCUMENTED.replace(service=Only500())).losses)


class Only500:
    """A service that repeats 500 alone."""

    name = "cloud_storage"
    statuses = (500,)

    def __getattr__(self, name: str) -> Any:
        return getattr(DOCUMENTED.service, name)


def draw(target: str, policy: Policy) -> Callable[[int], float]:
    """Return what draws a wait before retry `n`, counted from 0, by the target's own library."""
    if target == "google_api_core":
        made: Any = export.google_api_core(policy).value
        settings = (made._initial, made._maximum, made._multiplier)
        return lambda n: next(islice(exponential_sleep_generator(*settings), n, None))
    if target == "celery":
        options = export.celery(policy).value
        factor, longest = options["retry_backoff"], options["retry_backoff_max"]
        return lambda n: get_exponential_backoff_interval(factor, n, longest, options["retry_jitter"])
    if target == "urllib3":
        failed = RequestHistory("GET", "/", None, 503, None)
        retries = [export.urllib3(policy).value.new(history=(failed,) * (n + 1)) for n in range(5)]
        return lambda n: retries[n].get_backoff_time()
    wait: Any = export.tenacity(policy).value.wait
    state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})

    def after(n: int) -> float:
        state.attempt_number = n + 1
        return float(wait(state))

    return after


@pytest.mark.parametrize("target", ["celery", "google_api_core", "tenacity", "urllib3"])
@pytest.mark.parametrize("policy", [DOCUMENTED, POLICY], ids=["documented", "policy"])
def test_the_libraries_draw_these_waits(target: str, policy: Policy) -> None:
    """A sample of what `make soak` measures in real time: the means of 600 draws by the library's own function."""
    random.seed(7)
    wait = draw(target, policy.with_repeatable(True))
    expected = MEANS["documented" if policy.backoff == DOCUMENTED.backoff else "policy"]
    if target in WINDOWS:
        expected = means(target, policy.with_repeatable(True))
    for n in range(5):
        assert difference(sum(wait(n) for _ in range(600)) / 600, expected[n]) <= 0.1, n


@given(backoffs, st.none() | st.integers(1, 12))
def test_steps_never_exceed_the_longest_wait(backoff: Any, retries: int | None) -> None:
    """Of any backoff: neither the mean waits nor the steps for full jitter, and both grow, from the first on."""
    longest = max(Waits.from_backoff(backoff).longest, *(backoff.delay(n, 1, 64) for n in range(10)))
    for waits in (mean_waits(backoff, retries), full_waits(backoff, retries)):
        steps = waits.steps(10)
        assert steps == sorted(steps)
        assert max(steps) <= longest * 1.001
        assert waits.initial <= waits.maximum
        assert min(steps) > 0


@pytest.mark.parametrize("jitter", ["full", "equal", "none"])
def test_the_means_of_most_jitters_are_exact(jitter: Any) -> None:
    """A factor of the steps, so mean waits keep the policy's own multiplier and reach the cut maximum."""
    backoff = Exponential(0.5, 3, 20, jitter)
    assert mean_waits(backoff).steps(8) == pytest.approx(mean_delays(backoff, 8))
    assert mean_waits(backoff).multiplier == 3
