"""Texts for systems that are not Python: their parsers where there are some, else what stands in them."""

import configparser
import json
from pathlib import Path
from typing import Any

import pytest
from envoy.config.route.v3 import route_components_pb2
from google.protobuf.json_format import ParseDict

from forbear import export
from forbear.core.backoff import Constant, Exponential
from forbear.policy import Policy, retry
from forbear.run.budget import Budget
from forbear.services import cloud_storage, iam, rfc9110
from forbear_testkit.export.policies import Busy


def test_boto_is_read_as_gsutil_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the rules of configparser, which are boto's; and `gsutil_policy` gets back what was exported."""
    path = tmp_path / ".boto"
    path.write_text(export.boto(cloud_storage.gsutil).value)
    read = configparser.ConfigParser()
    read.read(path)
    assert dict(read["Boto"]) == {"num_retries": "23", "max_retry_delay": "60"}
    monkeypatch.setenv("BOTO_CONFIG", str(path))
    assert cloud_storage.gsutil_policy() == cloud_storage.gsutil


def test_boto_never_says_zero() -> None:
    """A .boto file never says 0, which would keep gsutil from using a connection again."""
    text, losses = export.boto(retry(on=Busy, attempts=1, backoff=Constant(0.1)))
    assert text == "[Boto]\nnum_retries = 1\nmax_retry_delay = 1\n"
    assert [loss for loss in losses if loss.startswith("num_retries: 1, because 0")]


def test_gcloud_properties() -> None:
    """Whole numbers, in the section of storage."""
    read = configparser.ConfigParser()
    read.read_string(export.gcloud(cloud_storage.policy).value)
    assert dict(read["storage"]) == {
        "base_retry_delay": "1",
        "exponential_sleep_multiplier": "2",
        "max_retries": "16",
        "max_retry_delay": "46",
    }
    losses = export.gcloud(cloud_storage.documented).losses
    assert [loss for loss in losses if "on average 3.5, 4.5, 6.5, 10.5, " in loss and "HandleExceptionsAnd" in loss]
    assert [loss for loss in losses if "408 and 429 are final" in loss]
    assert [loss for loss in losses if loss.startswith("other requests: only uploads and downloads read")]


@pytest.mark.parametrize(
    "policy",
    [
        cloud_storage.policy,
        rfc9110.policy,
        retry(on=Busy, attempt_timeout=2.5, backoff=Exponential(0.25, 3, 9, "none"), budget=Budget.ratio()),
        retry(on=Busy, attempts=None, timeout=None, unlimited=True),
        retry(on=Busy, repeatable=True),
        retry(on=Busy, repeatable=False),
    ],
)
def test_envoy_takes_the_route(policy: Policy) -> None:
    """Every field is one of Envoy's own messages, with a value that it takes."""
    messages: Any = route_components_pb2
    route = ParseDict(json.loads(export.envoy(policy).value), messages.RouteAction())
    assert route.retry_policy.retry_on.startswith("connect-failure,refused-stream")
    base = route.retry_policy.retry_back_off.base_interval.ToTimedelta().total_seconds()
    assert base == pytest.approx(2 * policy.backoff.delay(0, 0.5, None), rel=0.5)
    methods = {header.string_match.exact for header in route.retry_policy.retriable_request_headers}
    if policy.service is None and policy.repeatable is not None:
        assert methods == set()
        assert ("reset" in route.retry_policy.retry_on) is policy.repeats_calls
    else:
        assert "GET" in methods
        assert ("DELETE" in methods) is (policy.service is None or policy.service.name == "rfc9110")
        assert "POST" not in methods


def test_envoys_own_budget_is_the_clusters() -> None:
    """It cannot stand in a route, so the loss says where, with both figures."""
    losses = export.envoy(retry(on=Busy, budget=Budget.envoy(0.25, 5))).losses
    assert "budget: set retry_budget.budget_percent of the cluster to 25, and min_retry_concurrency to 5" in losses


def test_envoy_has_budgets_and_timeouts() -> None:
    """A ratio is said in words, for it stands elsewhere in Envoy's configuration."""
    text, losses = export.envoy(retry(on=Busy, attempt_timeout=2.5, attempts=5, timeout=9, budget=Budget.ratio(0.2)))
    route = json.loads(text)
    assert route["timeout"] == "9s"
    assert route["retry_policy"]["per_try_timeout"] == "2.5s"
    assert route["retry_policy"]["num_retries"] == 4
    assert [loss for loss in losses if "retry_budget.budget_percent of the cluster to 20" in loss]


def test_envoys_own_timeout_is_off_where_there_is_none() -> None:
    """By default a route of Envoy would end after 15 s."""
    assert json.loads(export.envoy(retry(on=Busy, timeout=None)).value)["timeout"] == "0s"


def test_no_wait_means_a_short_one() -> None:
    """If a zero means the default, as in Go, or is refused, as by Envoy, the least wait is exported and listed."""
    policy = retry(on=Busy, backoff=Constant(0))
    text, losses = export.go(policy)
    assert "Initial:    1 * time.Microsecond," in text
    assert "Max:        1 * time.Microsecond," in text
    assert [loss for loss in losses if loss.endswith("because 0 means the client's own")]
    text, losses = export.envoy(policy)
    assert json.loads(text)["retry_policy"]["retry_back_off"] == {"base_interval": "0.001s", "max_interval": "0.001s"}
    assert [loss for loss in losses if loss.endswith("at least 0.001 s")]


DOCUMENTED, POLICY = cloud_storage.documented, cloud_storage.policy
LIMITED = retry(on=Busy, attempts=4, timeout=None, attempt_timeout=2.5, backoff=Exponential(0.25, 1.5, 10, "equal"))

UNLIMITED = retry(on=Busy, attempts=None, timeout=None, unlimited=True)


@pytest.mark.parametrize(
    ("target", "policy", "pieces"),
    [
        ("go", POLICY, ["RetryIdempotent", "Initial:    3 * time.Second", "case 408, 429, 500, 502, 503, 504:"]),
        ("go", DOCUMENTED, ["Max:        64 * time.Second", "storage.WithBackoff(gax.Backoff{"]),
        ("go", LIMITED, ["WithMaxAttempts(4)", "375000 * time.Microsecond", "Multiplier: 1.5"]),
        ("java", POLICY, ["setMaxAttempts(0)", "setTotalTimeoutDuration(Duration.ofSeconds(600))", "getDefault"]),
        ("java", LIMITED, ["setMaxAttempts(4)", "Duration.ofMillis(375)", "setMaxRpcTimeoutDuration"]),
        ("java", UNLIMITED, ["setMaxAttempts(1000000)", "setTotalTimeoutDuration(Duration.ofSeconds(0))"]),
        ("nodejs", POLICY, ["totalTimeout: 600", "IdempotencyStrategy.RetryConditional", "autoRetry: true"]),
        ("nodejs", DOCUMENTED, ["retryableErrorFn", "501, 502", "'ECONNRESET'"]),
        ("nodejs", LIMITED, ["maxRetries: 3", "maxRetryDelay: 10", "retryDelayMultiplier: 1.5"]),
        ("cpp", POLICY, ["LimitedTimeRetryPolicy(std::chrono::milliseconds(600000))", "StrictIdempotencyPolicy"]),
        ("cpp", LIMITED, ["LimitedErrorCountRetryPolicy(3)", "milliseconds(150)", "milliseconds(10000)"]),
        ("csharp", POLICY, ["TimeSpan.FromSeconds(1.5)", "FromErrorCodes(408, 429, 500, 502, 503, 504)"]),
        ("php", POLICY, ["'retries' => 16", "RETRY_IDEMPOTENT", "min($step, 64.0) * (1 + $u) / 2"]),
        ("php", DOCUMENTED, ["min($step + $u * 1.0, 64.0)"]),
        ("php", LIMITED, ["'retries' => 3", "'requestTimeout' => 2.5"]),
        ("php", retry(on=Busy, backoff=Constant(1, spread=0.5)), ["(min($step, 1.0) + $u * 0.5)"]),
        ("php", retry(on=Busy, backoff=Constant(1)), ["1000000 * min($step, 1.0)"]),
        ("php", retry(on=Busy), ["min($step, 64.0) * $u"]),
        ("ruby", POLICY, ["retries: 32", "max_elapsed_time: 600", "base_interval: 1.5", "max_interval: 42.666"]),
        ("ruby", LIMITED, ["retries: 3", "timeout: 2.5"]),
    ],
)
def test_snippets_have_the_numbers_of_the_policy(target: str, policy: Policy, pieces: list[str]) -> None:
    """The numbers of the policy, in the names of the client; every bracket is closed."""
    text = export.source(target, policy).value
    for piece in pieces:
        assert piece in text
    for opening, closing in ("()", "{}", "[]"):
        assert text.count(opening) == text.count(closing)


def test_go_keeps_its_own_errors_where_they_are_the_same() -> None:
    """408, 429 and every 5xx, as the retry page has it."""
    assert "WithErrorFunc" not in export.go(DOCUMENTED).value
    assert "WithErrorFunc" not in export.go(retry(on=Busy)).value


@pytest.mark.parametrize(
    ("target", "policy", "without"),
    [
        ("nodejs", cloud_storage.documented, ("timeout", "attempts")),
        ("cpp", cloud_storage.policy, ("jitter", "waits", "timeout")),
        ("php", cloud_storage.policy, ("jitter", "waits")),
        ("java", retry(on=Busy), ("jitter", "waits", "timeout", "attempts")),
        ("go", retry(on=Busy), ("jitter", "waits", "attempts")),
        ("botocore", retry(on=Busy), ("jitter",)),
    ],
)
def test_what_a_target_says_exactly_is_no_loss(target: str, policy: Policy, without: tuple[str, ...]) -> None:
    """C++ has windows as our own, Java and Go full jitter."""
    assert not [loss for loss in export.source(target, policy).losses if loss.startswith(without)]


@pytest.mark.parametrize(
    ("backoff", "maximum", "loss"),
    [
        (Exponential(1, 2, 64, "documented"), "64", "waits of 1 s, times 2 up to 64 s: on average 2.5, 4.5, 8.5, "),
        (Exponential(2, 3, 60, "equal"), "60", "waits of 2 s, times 3 up to 60 s: on average 3.5, 9.5, 27.5, 60"),
        (Exponential(1, 3, 2, "full"), "2", "waits of 1 s, times 3 up to 2 s: on average 2, 2, "),
        (Exponential(0.1, 2, 0.5, "full"), "1", "waits of 0.1 s, times 2 up to 0.5 s: on average 1, 1, "),
        (Constant(5), "5", "waits of 5 s: on average 1.5, 1.5, "),
    ],
)
def test_the_waits_of_nodejs_are_listed(backoff: Exponential | Constant, maximum: str, loss: str) -> None:
    """Its first wait is the multiplier and cannot be set; with a maximum below 1 s its uploads would fail."""
    text, losses = export.nodejs(retry(on=Busy, backoff=backoff))
    assert f"maxRetryDelay: {maximum}," in text
    assert [each for each in losses if each.startswith(loss)]


def test_iam_has_no_client_of_cloud_storage_but_other_targets() -> None:
    """Its statuses go where statuses can be said."""
    assert json.loads(export.envoy(iam.documented).value)["retry_policy"]["retriable_status_codes"] == [
        500,
        502,
        503,
        504,
    ]
