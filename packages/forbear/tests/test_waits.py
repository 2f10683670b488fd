"""The waits that servers ask for: each header, field and unit, and which of several counts."""

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.backoff import Exponential
from forbear.core.decide import Reason, Wait, decide
from forbear.core.limits import Limits
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.waits import MOST_BODY, UNITS, add_wait, find_wait, find_wait_of_rpc

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
EPOCH = 784111777
JSON = {"content-type": "application/json; charset=UTF-8"}
QUOTA = {"x-ratelimit-reset": "epoch"}
TOKENS = {"x-ratelimit-reset-tokens": "duration", "x-ratelimit-reset-requests": "duration"}


def pack_status(*details: Any) -> bytes:
    """Return an encoded google.rpc.Status with these details."""
    status = status_pb2.Status(code=14, message="no")
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    encoded: bytes = status.SerializeToString()
    return encoded


def retry_info(seconds: float) -> Any:
    """Return a detail that asks for a wait."""
    delay = duration_pb2.Duration()
    delay.FromTimedelta(timedelta(seconds=seconds))
    return error_details_pb2.RetryInfo(retry_delay=delay)


def json_error(delay: object) -> dict[str, Any]:
    """Return the JSON document of a Google error with a RetryInfo."""
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    return {"error": {"code": 429, "details": [{"@type": "type.googleapis.com/google.rpc.Help"}, detail]}}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, (7.0, "Retry-After")),
        ({"retry-after": "0"}, (0.0, "Retry-After")),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-7"}, None),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:00 GMT", "date": DATE}, (23.0, "Retry-After")),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:00 GMT", "date": "garbage"}, (24.0, "Retry-After")),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:00 GMT"}, (24.0, "Retry-After")),
        ({"retry-after-ms": "7000"}, (7.0, "retry-after-ms")),
        ({"retry-after-ms": "0.5"}, (0.0005, "retry-after-ms")),
        ({"retry-after-ms": "-1"}, None),
        ({"retry-after-ms": "nan"}, None),
        ({"retry-after-ms": "1e9"}, None),
        ({"x-ms-retry-after-ms": "250"}, (0.25, "x-ms-retry-after-ms")),
        ({"x-amz-retry-after": "250"}, None),
        ({"ratelimit": '"burst";r=10;t=3, "day";r=0;t=60'}, (60.0, "RateLimit")),
        ({"ratelimit": '"burst";r=10;t=3'}, None),
        ({"ratelimit": '"day"; r=0'}, None),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "50"}, (50.0, "RateLimit-Reset")),
        ({"ratelimit-remaining": "1", "ratelimit-reset": "50"}, None),
        ({"ratelimit-reset": "50"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "50"}, None),
    ],
)
def test_headers_that_every_server_may_send(headers: dict[str, str], expected: object) -> None:
    """Each usual header counts in its own unit; what cannot be read, and quotas with something left, do not."""
    assert find_wait(headers, 503, now=lambda: EPOCH - 1.0) == expected


@pytest.mark.parametrize("host", ["sqs.eu-west-1.amazonaws.com", "SQS.AMAZONAWS.COM.CN:443", "x.api.aws"])
def test_a_header_of_aws_counts_on_its_hosts(host: str) -> None:
    """`x-amz-retry-after` is in milliseconds, and means nothing elsewhere."""
    headers = {"x-amz-retry-after": "1500"}
    assert find_wait(headers, 503, host=host) == (1.5, "x-amz-retry-after")
    assert find_wait(headers, 503, host="amazonaws.com.example.com") is None


@pytest.mark.parametrize(
    ("units", "headers", "expected"),
    [
        (QUOTA, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{EPOCH + 90}", "date": DATE}, 90.0),
        (QUOTA, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{EPOCH - 90}", "date": DATE}, 0.0),
        (QUOTA, {"x-ratelimit-remaining": "1", "x-ratelimit-reset": f"{EPOCH + 90}", "date": DATE}, None),
        (QUOTA, {"x-ratelimit-reset": f"{EPOCH + 90}"}, 91.0),
        ({"x-ratelimit-reset": "epoch_milliseconds"}, {"x-ratelimit-reset": f"{EPOCH}500", "date": DATE}, 0.5),
        (TOKENS, {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        (TOKENS, {"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "6m0s"}, None),
        (
            TOKENS,
            {
                "x-ratelimit-remaining-tokens": "5",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "12ms",
            },
            0.012,
        ),
        ({"a-requests-reset": "rfc3339"}, {"a-requests-reset": "1994-11-06T08:50:00Z", "date": DATE}, 23.0),
        ({"a-requests-reset": "rfc3339"}, {"a-requests-reset": "1994-11-06t08:50:00z", "date": DATE}, 23.0),
        ({"a-requests-reset": "rfc3339"}, {"a-requests-reset": "1994-11-06T08:50:00", "date": DATE}, None),
        ({"x-ratelimit-reset-after": "seconds"}, {"x-ratelimit-reset-after": "1.25"}, 1.25),
        ({"x-wait": "milliseconds"}, {"x-wait": "40, 900"}, 0.9),
    ],
)
def test_headers_whose_unit_is_known(units: dict[str, str], headers: dict[str, str], expected: float | None) -> None:
    """A quota counts only if it is used up, and a moment is read against the response's own date."""
    wait = find_wait(headers, 429, units=units, now=lambda: EPOCH - 1.0)
    assert (None if wait is None else wait[0]) == pytest.approx(expected) if expected else not (wait or (0,))[0]


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "9" * 400},
        {"retry-after-ms": "9" * 400},
        {"x-ratelimit-reset": "9" * 400, "date": DATE},
        {"ratelimit": f"day;r=0;t={'9' * 400}"},
        {"ratelimit-remaining": "0", "ratelimit-reset": "9" * 400},
    ],
    ids=range(5),
)
def test_no_wait_is_too_long_to_count(headers: dict[str, str]) -> None:
    """However large a number is, it asks for a wait, and is not ignored (W2)."""
    wait = find_wait(headers, 429, units=QUOTA)
    assert wait is not None
    assert wait[0] == math.inf


def test_a_quota_without_a_count_needs_the_status() -> None:
    """Without the header with what is left, a reset speaks of this refusal only with 429."""
    headers = {"x-ratelimit-reset": f"{EPOCH + 90}", "date": DATE}
    assert find_wait(headers, 503, units=QUOTA) is None
    assert find_wait(headers, 429, units=QUOTA) == (90.0, "x-ratelimit-reset")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6m0s", 360.0), ("250ms", 0.25), ("1h2m3.5s", 3723.5), ("2m59.56s", 179.56), ("1d2h", 93_600.0), ("0s", 0.0),
        ("1m30ms", 60.03), ("", None), ("6", None), ("s", None), ("-1s", None), ("1 s", None), ("9" * 40 + "s", 1e40),
        ("9" * 400 + "h", None),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float | None) -> None:
    """A header may ask for a duration with units, from microseconds to days; anything else asks for nothing."""
    wait = find_wait({"x-ratelimit-reset-tokens": text}, 429, units=TOKENS)
    assert (None if wait is None else wait[0]) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("document", "seconds"),
    [
        (json_error("53s"), 53.0),
        (json_error("0.250s"), 0.25),
        ([json_error("53s")], 53.0),
        ([{}, json_error("53s")], 53.0),
        (json_error({"seconds": 53, "nanos": 500_000_000}), 53.5),
        (json_error({"seconds": "53"}), 53.0),
        (json_error("-1s"), None),
        (json_error("nans"), None),
        (json_error(".s"), None),
        (json_error("1" * 400 + "s"), math.inf),
        ([json_error("1s"), json_error("53s")], 53.0),
        (json_error(53), None),
        (json_error({"seconds": -1}), None),
        ({"error": {"details": json_error("53s")}}, None),
        ({"error": "slow down"}, None),
        ("53s", None),
        (None, None),
    ],
)
def test_json_bodies(document: object, seconds: float | None) -> None:
    """The RetryInfo of a Google error counts, in an object or a list, as a text or as an object."""
    body = json.dumps(document).encode()
    assert find_wait(JSON, 429, body=lambda: body) == (None if seconds is None else (seconds, "RetryInfo"))


@pytest.mark.parametrize("body", [b"", b"[" * 60_000, b"{", b"\xff" * 10])
def test_bodies_that_are_no_json(body: bytes) -> None:
    """Whatever a server sends as JSON ends without an error."""
    assert find_wait(JSON, 503, body=lambda: body) is None


def test_protobuf_bodies() -> None:
    """A google.rpc.Status counts as the details of an RPC do."""
    body = pack_status(error_details_pb2.DebugInfo(detail="x"), retry_info(53))
    for kind in ("application/x-protobuf", "application/x-protobuf; charset=utf-8", "Application/Protobuf"):
        assert find_wait({"content-type": kind}, 429, body=lambda: body) == (53.0, "RetryInfo")
    assert find_wait({"content-type": "application/x-protobuf"}, 429, body=lambda: body[:-1]) is None


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (404, JSON),
        (502, JSON),
        (None, JSON),
        (429, {}),
        (429, {"content-type": "text/html"}),
        (429, {"content-type": "text/event-stream"}),
        (429, {**JSON, "content-length": str(MOST_BODY + 1)}),
        (429, {**JSON, "content-length": "9" * 5000}),
    ],
)
def test_bodies_that_are_not_read(status: int | None, headers: dict[str, str]) -> None:
    """A body is read only where a wait can be in it, and if it is short."""

    def read() -> bytes:
        pytest.fail("the body was read")

    assert find_wait(headers, status, body=read) is None


def test_a_long_body_is_not_parsed() -> None:
    """A body of unknown length counts up to its limit."""
    body = json.dumps(json_error("53s")).encode()
    padded = body + b" " * (MOST_BODY - len(body))
    assert find_wait(JSON, 429, body=lambda: padded) == (53.0, "RetryInfo")
    assert find_wait(JSON, 429, body=lambda: padded + b" ") is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "60", "retry-after-ms": "100"}, (60.0, "Retry-After")),
        ({"retry-after": "1", "retry-after-ms": "100"}, (0.1, "retry-after-ms")),
        ({"retry-after": "7", "retry-after-ms": "6400"}, (6.4, "retry-after-ms")),
        ({"retry-after": "7", "retry-after-ms": "7000"}, (7.0, "Retry-After")),
        ({"retry-after": "7", "retry-after-ms": "7100"}, (7.1, "retry-after-ms")),
        ({"retry-after": "0", "retry-after-ms": "0"}, (0.0, "Retry-After")),
        ({"retry-after": "2", "retry-after-ms": "1200", "x-ms-retry-after-ms": "1800"}, (1.8, "x-ms-retry-after-ms")),
    ],
)
def test_the_longest_wait_counts(headers: dict[str, str], expected: object) -> None:
    """A finer unit replaces a coarser one only if it rounds up to it: a proxy's minute beats 100 ms (W1)."""
    assert find_wait(headers, 429) == expected


@given(
    st.dictionaries(
        st.sampled_from(
            ["retry-after", "date", "retry-after-ms", "ratelimit", "ratelimit-reset", "x-reset", "content-type"]
        ),
        st.text(max_size=80) | st.integers().map(str) | st.floats().map(str),
    ),
    st.sampled_from(sorted(UNITS)),
    st.binary(max_size=80),
)
def test_no_response_asks_for_less_than_nothing(headers: dict[str, str], unit: str, body: bytes) -> None:
    """Whatever the headers and the body hold, a wait is a number from 0 on."""
    wait = find_wait(headers, 429, units={"x-reset": unit}, body=lambda: body, now=lambda: 0.0)
    assert wait is None or wait[0] >= 0


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "ratelimit-reset", "x-reset"]), st.integers(0, 10**6).map(str)
    ),
    st.floats(0, 50),
    st.floats(0, 0.999),
)
def test_a_wait_keeps_between_the_backoff_and_the_limits(headers: dict[str, str], elapsed: float, u: float) -> None:
    """No header makes a wait shorter than that of the backoff, or longer than what is left of the timeout."""
    headers["ratelimit-remaining"] = "0"
    wait = find_wait(headers, 429, units={"x-reset": "seconds"})
    limits, backoff = Limits(attempts=9, timeout=60), Exponential(initial=1, maximum=8)
    verdict = add_wait(TRANSIENT, wait)
    step = decide(limits, backoff, verdict, attempt=2, elapsed=elapsed, u=u, repeatable=True)
    if isinstance(step, Wait):
        assert backoff.delay(1, u) <= step.delay <= 60 - elapsed
        assert wait is None or step.delay >= wait[0]
    elif step.reason is Reason.RETRY_AFTER:
        assert wait is not None
        assert wait[0] > 60 - elapsed


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0), ("1500", 1.5), (b"250", 0.25), ("-1", math.inf), ("", math.inf), ("soon", math.inf),
        ("1.5", math.inf), ("9" * 400, math.inf), (b"\xff", math.inf), ("٣", math.inf),
    ],
)  # fmt: skip
def test_pushback(value: str | bytes, seconds: float) -> None:
    """gRPC's pushback is in milliseconds; what is negative or no number means that no retry is wanted."""
    metadata = [("x-other", "1"), ("Grpc-Retry-Pushback-Ms", value)]
    assert find_wait_of_rpc(metadata) == (seconds, "grpc-retry-pushback-ms")


@pytest.mark.parametrize("seconds", [0.0, 1.5, 3600.0, 1e-6])
def test_retry_info_in_metadata(seconds: float) -> None:
    """The delay in the details of the status counts, unless there is a pushback."""
    trailer = ("grpc-status-details-bin", pack_status(error_details_pb2.DebugInfo(detail="x"), retry_info(seconds)))
    wait = find_wait_of_rpc([trailer])
    assert wait is not None
    assert wait[0] == pytest.approx(seconds)
    assert wait[1] == "RetryInfo"
    assert find_wait_of_rpc([trailer, ("grpc-retry-pushback-ms", "70")]) == (0.07, "grpc-retry-pushback-ms")


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (("x-other", "1"),),
        (("grpc-status-details-bin", pack_status()),),
        (("grpc-status-details-bin", pack_status(error_details_pb2.DebugInfo(detail="retry_delay"))),),
        (("grpc-status-details-bin", pack_status(error_details_pb2.RetryInfo())),),
        (("grpc-status-details-bin", pack_status(retry_info(-1))),),
        (("grpc-status-details-bin", b"\x1a\xff"),),
        (("grpc-status-details-bin", "text"),),
        (("grpc-status-details-bin", pack_status(retry_info(1))[:-1]),),
        (("retry-after", "5"),),
    ],
    ids=range(10),
)
def test_metadata_without_a_wait(metadata: tuple[tuple[str, str | bytes], ...]) -> None:
    """Garbage and negative delays ask for nothing."""
    assert find_wait_of_rpc(metadata) is None


@given(st.binary(max_size=40))
def test_no_details_raise(data: bytes) -> None:
    """Any bytes can come in a trailer."""
    wait = find_wait_of_rpc([("grpc-status-details-bin", data)])
    assert wait is None or wait[0] >= 0


def test_a_wait_joins_only_what_asks_for_a_retry() -> None:
    """A permanent verdict gets no wait, and a longer one of its own stays."""
    wait = (7.0, "Retry-After")
    assert add_wait(PERMANENT, wait) is PERMANENT
    assert add_wait(CONFLICT, wait) is CONFLICT
    assert add_wait(TRANSIENT, None) is TRANSIENT
    assert add_wait(TRANSIENT, wait) == Verdict(Kind.TRANSIENT, retry_after=7.0, wait_from="Retry-After")
    assert add_wait(NOT_EXECUTED, wait).retry_after == 7.0
    longer = Verdict(Kind.TRANSIENT, retry_after=8)
    assert add_wait(longer, wait) is longer
