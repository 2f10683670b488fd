"""Objects and source texts for Python libraries, executed with the libraries themselves."""

import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import httpx
import pytest
import tenacity
from celery import Celery
from google.api_core import exceptions
from google.api_core.retry import Retry as GoogleRetry
from hypothesis import given
from hypothesis import strategies as st
from redis.exceptions import BusyLoadingError
from redis.exceptions import ConnectionError as RedisConnectionError
from temporalio.api.common.v1 import RetryPolicy as RetryPolicyMessage
from temporalio.common import RetryPolicy

import forbear
from forbear import export
from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.limits import Limits
from forbear.policy import Policy, retry
from forbear.run.budget import Budget
from forbear.services import cloud_storage, redis
from forbear_cloud import Cloud, Fault
from forbear_testkit.export.policies import Busy, Growing, backoffs

AT_ONCE = Exponential(initial=0.0001, maximum=0.0001)


def executed(target: str, policy: Policy, name: str) -> Any:
    """Return the names that the source text for a target defines."""
    namespace: dict[str, Any] = {}
    exec(compile(export.source(target, policy).value, f"<{target}>", "exec"), namespace)
    return namespace[name]


class Calls:
    """A function that fails with `error` so many times."""

    def __init__(self, error: Exception, failures: int) -> None:
        self.error = error
        self.failures = failures
        self.made = 0

    def __call__(self) -> str:
        self.made += 1
        if self.made <= self.failures:
            raise self.error
        return "done"


def through_google(retry: GoogleRetry, calls: Calls) -> None:
    """Call by google-api-core."""
    retry(calls)()


def through_tenacity(retrying: tenacity.Retrying, calls: Calls) -> None:
    """Call by tenacity, which does not sleep."""
    retrying.copy(sleep=lambda seconds: None)(calls)


def attempts(through: Callable[[Any, Calls], None], retrying: Any, error: Exception) -> int:
    """Return how often a call that always fails with `error` is made, at most twenty times."""
    calls = Calls(error, 20)
    with suppress(type(error), exceptions.RetryError):
        through(retrying, calls)
    return calls.made


def storage(status: int) -> Exception:
    """An error of Google's clients."""
    made: Any = exceptions.from_http_status
    error: Exception = made(status, "no")
    return error


REPEATED = [
    (cloud_storage.policy, ConnectionRefusedError(), False),
    (cloud_storage.policy, storage(503), False),
    (cloud_storage.policy, ConnectionResetError(), False),
    (cloud_storage.policy.with_repeatable(True), storage(503), True),
    (cloud_storage.policy.with_repeatable(True), storage(408), True),
    (cloud_storage.policy.with_repeatable(True), storage(404), False),
    (cloud_storage.policy.with_repeatable(True), ConnectionResetError(), True),
    (retry(on=exceptions.ServiceUnavailable), storage(503), True),
    (retry(on=exceptions.ServiceUnavailable), storage(500), False),
    (redis.policy, BusyLoadingError(), True),
    (redis.policy, RedisConnectionError("lost"), False),
    (redis.policy.with_repeatable(True), RedisConnectionError("lost"), True),
    (retry(on=Busy), Busy(), True),
    (retry(on=Busy), KeyError(), False),
    (retry(on=(Busy, KeyError)), KeyError(), True),
    (retry(on=Busy, repeatable=False), Busy(), False),
]
repeated = pytest.mark.parametrize(("policy", "error", "again"), REPEATED)


@pytest.mark.parametrize(
    ("method", "policy", "requests"),
    [
        ("GET", retry(forbear.transient), 2),
        ("POST", retry(forbear.transient), 1),
        ("POST", retry(forbear.transient, repeatable=True), 2),
    ],
)
@pytest.mark.parametrize("target", ["tenacity", "google_api_core"])
def test_the_objects_read_what_an_error_shows(target: str, method: str, policy: Policy, requests: int) -> None:
    """A function is not called again after a write whose response was lost, unless the policy says that it may be."""
    exported = getattr(export, target)(policy.with_backoff(AT_ONCE))
    assert "safety" not in "".join(exported.losses)

    def send() -> httpx.Response:
        return httpx.request(
            method, f"{cloud.url}/storage/v1/b?project=p", json={"name": "b-c"} if method == "POST" else None
        )

    with Cloud() as cloud:
        cloud.fault(Fault.reset(when="after"))
        with suppress(httpx.HTTPError):
            exported.value(send)() if target == "google_api_core" else exported.value(send)
        assert len(cloud.requests) == requests


@pytest.mark.parametrize("target", ["tenacity", "google_api_core", "celery", "temporal"])
def test_text_says_that_it_reads_no_errors(target: str) -> None:
    """The first loss says that a write may be executed twice; a policy that is repeatable loses nothing there."""
    lost = "safety: what an error shows is not read, so a write may be executed twice"
    assert export.source(target, retry(OSError)).losses[0] == lost
    assert lost not in export.source(target, retry(OSError, repeatable=True)).losses


@repeated
def test_google_api_core_repeats_what_the_policy_would(policy: Policy, error: Exception, again: bool) -> None:
    """By the object and by the text, which stands alone."""
    policy = policy.with_backoff(AT_ONCE).with_limits(Limits(attempts=None, timeout=1))
    assert (attempts(through_google, export.google_api_core(policy).value, error) > 1) is again
    assert (attempts(through_google, executed("google_api_core", policy, "RETRY"), error) > 1) is again


@repeated
def test_tenacity_repeats_what_the_policy_would(policy: Policy, error: Exception, again: bool) -> None:
    """By the object and by the text; as often as the policy would."""
    policy = policy.with_limits(Limits(attempts=4, timeout=None))
    assert attempts(through_tenacity, export.tenacity(policy).value, error) == (4 if again else 1)
    assert attempts(through_tenacity, executed("tenacity", policy, "RETRYING"), error) == (4 if again else 1)


def test_google_api_core_has_the_numbers() -> None:
    """Full jitter under the same steps, the same time; without one, the longest waits stand for the attempts."""
    made: Any = export.google_api_core(retry(on=Busy)).value
    assert (made._initial, made._maximum, made._multiplier, made._timeout) == (1, 64, 2, 60)
    policy = cloud_storage.policy.with_limits(Limits(attempts=4, timeout=None))
    (made, losses) = export.google_api_core(policy)
    assert made._timeout == 14
    assert [loss for loss in losses if loss.startswith("attempts=4: 14 s in time")]
    assert export.google_api_core(retry(on=Busy, attempts=None, timeout=None, unlimited=True)).value._timeout is None


def test_google_api_core_pickles() -> None:
    """As worker processes of transfers want it."""
    made: Any = pickle.loads(
        pickle.dumps(export.google_api_core(cloud_storage.policy.with_repeatable(True)).value._predicate)
    )
    assert made(ConnectionResetError())
    assert not made(KeyboardInterrupt())


@given(backoffs.filter(lambda backoff: isinstance(backoff, Exponential | Constant | Sequence)), st.integers(1, 9))
def test_tenacity_waits_as_the_policy(backoff: Exponential | Constant | Sequence, attempt: int) -> None:
    """The object always; the text where the jitter is not "decorrelated", whose next wait hangs on the one before."""
    policy = retry(on=Busy, backoff=backoff)
    state: Any = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})
    state.attempt_number = attempt
    texts = [] if getattr(backoff, "jitter", "") == "decorrelated" else [executed("tenacity", policy, "RETRYING").wait]
    for wait in [export.tenacity(policy).value.wait, *texts]:
        state.upcoming_sleep = 1.0
        low, high = backoff.delay(attempt - 1, 0, 1.0), backoff.delay(attempt - 1, 1, 1.0)
        if attempt == 1:
            low, high = backoff.delay(0, 0), backoff.delay(0, 1)
        assert low - 1e-9 <= wait(state) <= high + 1e-9


def test_tenacity_judges_values_and_hands_out_the_last() -> None:
    """As `on_result`: what never satisfies it is returned in the end."""
    policy = retry(on=Busy, attempts=3, on_result=lambda value: value == "pending")
    retrying = export.tenacity(policy).value.copy(sleep=lambda seconds: None)
    answers = iter(["pending", "ready"])
    assert retrying(lambda: next(answers)) == "ready"
    assert retrying(lambda: "pending") == "pending"


def test_tenacity_stops_before_the_deadline() -> None:
    """A wait that would end past it is not begun."""
    policy = retry(on=Busy, attempts=None, timeout=5, backoff=Constant(10))
    assert attempts(through_tenacity, export.tenacity(policy).value, Busy()) == 1
    assert attempts(through_tenacity, executed("tenacity", policy, "RETRYING"), Busy()) == 1


def test_tenacity_says_what_jitter_it_cannot() -> None:
    """Only the text; the object has the policy's own backoff."""
    for backoff in (Exponential(jitter="decorrelated"), Growing()):
        policy = retry(on=Busy, backoff=backoff)
        assert not [loss for loss in export.tenacity(policy).losses if loss.startswith(("jitter", "backoff"))]
        assert [loss for loss in export.source("tenacity", policy).losses if loss.startswith(("jitter", "backoff"))]


@pytest.mark.parametrize("text", [False, True], ids=["object", "text"])
def test_celery_retries_a_task(text: bool) -> None:
    """A real task, run in this process: as many runs as the policy has attempts, for its errors only."""
    app = Celery("app", broker="memory://")
    policy = retry(on=TimeoutError, attempts=3)
    options = executed("celery", policy, "TASK_OPTIONS") if text else export.celery(policy).value
    made: list[type[Exception]] = []

    def work(kind: type[Exception]) -> None:
        made.append(kind)
        raise kind

    task: Any = app.task(**options)(work)
    task.apply((TimeoutError,))
    task.apply((KeyError,))
    assert made == [TimeoutError] * 3 + [KeyError]


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (
            retry(on=Busy, timeout=None),
            {"max_retries": 4, "retry_backoff": 1, "retry_backoff_max": 64, "retry_jitter": True},
        ),
        (
            retry(on=Busy, attempts=None, timeout=None, unlimited=True, backoff=Constant(0.5)),
            {"max_retries": None, "default_retry_delay": 1},
        ),
        (retry(on=Busy, backoff=Constant(3)), {"max_retries": 4, "default_retry_delay": 3}),
        (
            retry(on=Busy, attempts=None, timeout=20, backoff=Exponential(0.5, 3, 9, "none")),
            {"max_retries": 4, "retry_backoff": 1, "retry_backoff_max": 9, "retry_jitter": False},
        ),
    ],
)
def test_celery_has_whole_seconds(policy: Policy, options: dict[str, object]) -> None:
    """Rounded up, and as many retries as fit into the time."""
    assert export.celery(policy).value == {"autoretry_for": (Busy,), **options}


def test_celery_takes_types_of_services() -> None:
    """Celery gets the types of errors without an effect, and with `repeatable` all transient types."""
    assert export.celery(cloud_storage.policy).value["autoretry_for"] == ()
    assert ConnectionError in export.celery(cloud_storage.policy.with_repeatable(True)).value["autoretry_for"]
    assert RedisConnectionError in export.celery(redis.policy.with_repeatable(True)).value["autoretry_for"]
    assert RedisConnectionError not in export.celery(redis.policy).value["autoretry_for"]
    assert export.celery(retry(on=Busy, repeatable=False)).value["autoretry_for"] == ()


@pytest.mark.parametrize("text", [False, True], ids=["object", "text"])
def test_temporal_constructs(text: bool) -> None:
    """A RetryPolicy that the server would take, and the timeouts of the activity."""
    policy = retry(on=Busy, attempts=7, timeout=90, attempt_timeout=5)
    options = executed("temporal", policy, "ACTIVITY_OPTIONS") if text else export.temporal(policy).value
    made = options.pop("retry_policy")
    assert made == RetryPolicy(
        initial_interval=timedelta(seconds=0.5),
        backoff_coefficient=2,
        maximum_interval=timedelta(seconds=32),
        maximum_attempts=7,
    )
    made.apply_to_proto(RetryPolicyMessage())
    assert options == {
        "schedule_to_close_timeout": timedelta(seconds=90),
        "start_to_close_timeout": timedelta(seconds=5),
    }


def test_temporal_does_not_repeat_what_must_not_be() -> None:
    """It repeats all errors, so then it may repeat none; and it demands some timeout."""
    made, losses = export.temporal(cloud_storage.policy)
    assert made["retry_policy"].maximum_attempts == 1
    assert [loss for loss in losses if loss.startswith("safety: an activity is not repeated")]
    made, losses = export.temporal(
        cloud_storage.policy.with_repeatable(True).with_limits(Limits(attempts=3, timeout=None))
    )
    assert made["retry_policy"].maximum_attempts == 3
    assert [loss for loss in losses if loss.startswith("timeouts: ")]


@pytest.mark.parametrize("text", [False, True], ids=["object", "text"])
def test_botocore_constructs(text: bool) -> None:
    """Attempts counted as ours, and the attempt timeout as its two."""
    policy = retry(on=Busy, attempts=7, timeout=None, attempt_timeout=5, budget=Budget.aws())
    config: Any = executed("botocore", policy, "CONFIG") if text else export.botocore(policy).value
    assert config.retries == {"total_max_attempts": 7, "mode": "standard"}
    assert (config.connect_timeout, config.read_timeout) == (5, 5)
    losses = export.botocore(policy).losses
    assert "budget: one for each client" in losses
    assert [loss for loss in export.botocore(retry(on=Busy)).losses if loss.startswith("budget: a quota of 500")]


@pytest.mark.parametrize(
    ("target", "library", "package"),
    [
        ("google_api_core", "google.api_core.retry", "google-api-core"),
        ("tenacity", "tenacity", "tenacity"),
        ("urllib3", "urllib3.util", "urllib3"),
        ("botocore", "botocore.config", "botocore"),
        ("temporal", "temporalio.common", "temporalio"),
        ("celery", "redis.exceptions", "redis"),
    ],
)
def test_a_missing_library_is_said_with_its_cure(
    target: str, library: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Install it, or take the text."""
    monkeypatch.setitem(sys.modules, library, None)
    policy = redis.policy if target == "celery" else retry(on=Busy)
    with pytest.raises(ImportError, match=rf'forbear.export.{target} needs {package}; .*source\("{target}", policy\)'):
        getattr(export, target)(policy)
    assert export.source(target, policy).value
