"""Verdicts on the errors of clients that retry by themselves, from servers on real sockets where possible."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import forbear
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.policy import Policy
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.judges.rows import CLOUDS, EXHAUSTED, THROTTLED, Row
from forbear_testkit.lazily import Library

boto3: Any = Library("boto3")
boto3_errors: Any = Library("boto3.exceptions")
botocore: Any = Library("botocore.exceptions")
botocore_config: Any = Library("botocore.config")
kafka: Any = Library("confluent_kafka")
kafka_admin: Any = Library("confluent_kafka.admin")

judge = forbear.transient
AT_ONCE = "retry-after-ms: 1"


def _not_at_all(seconds: float) -> None:
    pass


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore waits between its attempts, for real; here it waits for nothing."""
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=_not_at_all))


@pytest.mark.parametrize("row", CLOUDS, ids=lambda row: f"{row.kind}-{row.name}")
def test_errors_of_cloud_clients_have_their_verdict(row: Row) -> None:
    """The verdict is the same around a function and around a transaction."""
    assert judge(row.make()) == row.around
    assert judge.transaction(row.make()) == row.in_transaction


def _boto(url: str, attempts: int, mode: str = "standard") -> Any:
    settings: Any = {"total_max_attempts": attempts, "mode": mode}
    return boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=botocore_config.Config(retries=settings, proxies={}, s3={"addressing_style": "path"}),
    )


@pytest.mark.parametrize(("attempts", "mode", "expected"), [
    (1, "standard", TRANSIENT), (3, "standard", EXHAUSTED), (2, "legacy", EXHAUSTED),
])  # fmt: skip
def test_what_botocore_has_tried(attempts: int, mode: str, expected: Verdict) -> None:
    """After responses and after lost connections, exhausted are only retries that botocore made."""
    with Wire(reply(500)) as wire:
        with pytest.raises(botocore.ClientError) as failed:
            _boto(wire.url, attempts, mode).get_object(Bucket="b", Key="k")
        assert len(wire.seen) == attempts
    assert judge(failed.value) == expected
    with Wire(Answer(end="reset")) as wire:
        with pytest.raises(botocore.ConnectionClosedError) as lost:
            _boto(wire.url, attempts, mode).get_object(Bucket="b", Key="k")
        assert len(wire.seen) == attempts
    assert judge(lost.value) == expected


@pytest.mark.soak
def test_an_upload_that_boto3_reports(tmp_path: Path) -> None:
    """Its error for a failed upload has the failure in its text only, so what was being handled counts."""
    (tmp_path / "a").write_bytes(b"a")
    body = b"<Error><Code>SlowDown</Code></Error>"
    for status, text, expected in ((503, body, THROTTLED), (403, b"", PERMANENT)):
        with Wire(reply(status, text)) as wire, pytest.raises(boto3_errors.S3UploadFailedError) as caught:
            _boto(wire.url, 1).upload_file(str(tmp_path / "a"), "b", "k")
        assert judge(caught.value) == expected


def test_other_errors_of_botocore() -> None:
    """An untrusted certificate and missing credentials will be so the next time."""
    import ssl

    untrusted = ssl.SSLCertVerificationError(1, "certificate verify failed")
    kinds = botocore
    assert judge(kinds.SSLError(endpoint_url="x", error=untrusted)) is PERMANENT
    assert judge(kinds.SSLError(endpoint_url="x", error=ssl.SSLEOFError(8, "x"))) == TRANSIENT
    assert judge(kinds.NoCredentialsError()) is PERMANENT
    assert judge(boto3_errors.RetriesExceededError(ConnectionResetError())) == EXHAUSTED


def test_no_broker() -> None:
    """confluent-kafka's error for a cluster that it cannot reach."""
    client = kafka_admin.AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    with pytest.raises(kafka.KafkaException) as caught:
        client.list_topics(timeout=0.01)
    assert judge(caught.value) == TRANSIENT


@pytest.fixture(scope="module", params=["openai", pytest.param("anthropic", marks=pytest.mark.soak)])
def sdk(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A client of an SDK."""
    library = Library(request.param)
    make = library.OpenAI if request.param == "openai" else library.Anthropic
    with make(api_key="a", base_url="http://127.0.0.1") as client:
        yield client


def _ask(sdk: Any, url: str, retries: int, *, stream: bool = False) -> object:
    """Call a model at a URL, with so many retries of the SDK, and return the response or the events of the stream."""
    client = sdk.with_options(base_url=url, max_retries=retries)
    endpoint = client.chat.completions if hasattr(client, "chat") else client.messages
    response = endpoint.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}], stream=stream)
    return list(response) if stream else response


def _error_of(sdk: Any) -> type[Exception]:
    """Return the class of all errors of the SDK's API."""
    kind: type[Exception] = Library(type(sdk).__module__.partition(".")[0]).APIError
    return kind


def _body(kind: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "code": kind, "message": "x"}}).encode()


WAIT = Verdict(Kind.TRANSIENT, retry_after=0.001, throttled=True, wait_from="retry-after-ms")
STATUSES = [
    (reply(429, _body("rate_limit_error"), AT_ONCE), WAIT),
    (reply(429, _body("insufficient_quota"), AT_ONCE), PERMANENT),
    (reply(429, b"", "Retry-After: 7"), WAIT.replace(retry_after=7.0, wait_from="Retry-After")),
    (reply(529, b"", AT_ONCE), WAIT),
    (reply(409, b"", AT_ONCE), WAIT.replace(throttled=False)),
    (reply(500), TRANSIENT),
    (reply(500, b"", "x-should-retry: false"), PERMANENT),
    (reply(400, b"", "x-should-retry: true"), TRANSIENT),
    (reply(400), PERMANENT),
    (reply(401), PERMANENT),
    (Answer(end="reset"), TRANSIENT),
]


@pytest.mark.parametrize(("answer", "expected"), STATUSES, ids=lambda value: str(value)[:50])
def test_an_sdk_without_retries(sdk: Any, answer: Answer, expected: Verdict) -> None:
    """The header x-should-retry counts more than the status, and a used-up quota more than either."""
    with Wire(answer) as wire, pytest.raises(_error_of(sdk)) as caught:
        _ask(sdk, wire.url, 0)
    assert judge(caught.value) == expected


def test_an_sdk_that_retried(sdk: Any) -> None:
    """Retries that the SDK has made are not multiplied by an outer run, unless the policy says so."""
    policy = forbear.retry(on=forbear.transient, attempts=3)
    for patient, requests in ((policy, 2), (policy.replace(retry_exhausted=True), 6)):
        with Wire(reply(500, b"", AT_ONCE)) as wire:
            caught = _gives_up(patient, sdk, wire.url)
            assert len(wire.seen) == requests
        assert judge(caught) == EXHAUSTED.replace(retry_after=0.001, wait_from="retry-after-ms")
        report = forbear.report(caught)
        assert report is not None
        assert report.reason is (forbear.events.Reason.EXHAUSTED if requests == 2 else forbear.events.Reason.ATTEMPTS)


def _gives_up(policy: Policy, sdk: Any, url: str) -> Exception:
    with virtual_time(seed=1), pytest.raises(_error_of(sdk)) as caught:
        policy.call(_ask, sdk, url, 1)
    error: Exception = caught.value
    return error


@pytest.mark.parametrize(("kind", "expected"), [
    ("server_error", TRANSIENT), ("overloaded_error", TRANSIENT), ("invalid_request_error", PERMANENT),
    ("insufficient_quota", PERMANENT),
])  # fmt: skip
def test_a_stream_that_breaks_off(sdk: Any, kind: str, expected: Verdict) -> None:
    """An error within a stream has no status; its type counts."""
    events = b"event: error\ndata: " + _body(kind) + b"\n\n"
    with Wire(reply(200, events, "Content-Type: text/event-stream")) as wire, pytest.raises(_error_of(sdk)) as caught:
        _ask(sdk, wire.url, 0, stream=True)
    assert judge(caught.value) == expected


def test_an_sdk_misconfigured(sdk: Any) -> None:
    """A request that could not be sent at all cannot be sent the next time."""
    with pytest.raises(_error_of(sdk)) as caught:
        _ask(sdk, "ftp://127.0.0.1", 0)
    assert judge(caught.value) is PERMANENT


FOREIGN = """
import aiokafka.errors, kafka.errors, psycopg_pool, forbear
from forbear.verdicts import PERMANENT, TRANSIENT
judge = forbear.transient
for errors in (aiokafka.errors, kafka.errors):
    assert judge(errors.KafkaConnectionError()) == judge(errors.RequestTimedOutError()) == TRANSIENT, errors
    assert judge(errors.TopicAuthorizationFailedError()) == judge(errors.IllegalStateError()) == PERMANENT
for error in (psycopg_pool.PoolTimeout(), psycopg_pool.TooManyRequests()):
    assert judge.transaction(error) == forbear.verdicts.NOT_EXECUTED
assert judge(psycopg_pool.PoolTimeout()) == forbear.verdicts.TRANSIENT
assert judge(psycopg_pool.PoolClosed()) == forbear.verdicts.PERMANENT
"""


@pytest.mark.soak
def test_libraries_of_others(tmp_path: Path) -> None:
    """kafka-python, aiokafka and psycopg-pool, which are installed into a folder of their own."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    packages = ("kafka-python", "aiokafka", "psycopg-pool", "async-timeout")
    subprocess.run([*pip, "--target", str(tmp_path), *packages], check=True, timeout=300)
    subprocess.run(
        [sys.executable, "-c", FOREIGN], check=True, timeout=60, env=os.environ | {"PYTHONPATH": str(tmp_path)}
    )
