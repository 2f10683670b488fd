"""Resumable uploads of google-cloud-storage under faults: made safe as a whole, or by the `retry=` of a call."""

import io
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.api_core.retry import Retry as StockRetry
from google.cloud.storage.exceptions import InvalidResponse

import forbear
from forbear.clients import google_storage as ours
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault

CHUNK = 262_144
INSERT, SEND, QUERY = (f"storage.objects.insert{step}" for step in ("", ".send", ".query"))
CONTENT = bytes(range(256)) * 2500  # 640,000 bytes: two whole chunks and a part of one
RETRIES: dict[str, Callable[[], Any]] = {
    "plain": lambda: ours.DEFAULT_RETRY,
    "conditional": lambda: ours.DEFAULT_RETRY_IF_GENERATION_SPECIFIED,
    "repeatable": lambda: ours.DEFAULT_RETRY.with_repeatable(True).with_timeout(60),
}
FAULTS = {
    "503 before": Fault.status(503, operation=SEND, times=1),
    "503 after": Fault.status(503, operation=SEND, times=1, when="after"),
    "429": Fault.status(429, operation=SEND, times=1),
    "reset before": Fault.reset(operation=SEND, times=1),
    "reset after": Fault.reset(operation=SEND, times=1, when="after"),
    "part": Fault.partial(100_000, operation=SEND, times=1),
    "part and 503": Fault.partial(CHUNK, status=503, operation=SEND, times=1),
    "three in a row": Fault.status(503, operation=SEND, times=3),
}


def whole(blob: Any, retry: dict[str, Any], **options: Any) -> None:
    """Upload a file."""
    blob.upload_from_file(io.BytesIO(CONTENT), **retry, **options)


def written(blob: Any, retry: dict[str, Any], **options: Any) -> None:
    """Write piece by piece."""
    with blob.open("wb", chunk_size=blob.chunk_size, **retry, **options) as file:
        for start in range(0, len(CONTENT), 90_000):
            file.write(CONTENT[start : start + 90_000])


def retry_for(client: Any, way: str) -> dict[str, Any]:
    """Make the client safe, or return what makes a call so."""
    if way in RETRIES:
        return {"retry": RETRIES[way]()}
    ours.install(client)
    return {"retry": ours.DEFAULT_RETRY} if way == "both" else {}


WAYS = ("install", "both", *RETRIES)
CASES = list(product(WAYS, FAULTS, (whole, written)))
# Each fault through each way to upload, each way once.
SAMPLE = [CASES[(7 * number) % len(CASES)] for number in range(12)] + [("plain", "503 before", whole)]


def some(cases: Sequence[Any], sample: Sequence[Any]) -> list[Any]:
    """Return a sample of the cases for the normal suite, and the rest marked as soak."""
    return [*sample, *(pytest.param(*case, marks=pytest.mark.soak) for case in cases if case not in sample)]


@pytest.mark.parametrize(("way", "fault", "upload"), some(CASES, SAMPLE))
def test_a_chunk_that_fails_is_continued(cloud: Cloud, client: Any, way: str, fault: str, upload: Any) -> None:
    """Whatever happened to its bytes, they are stored once, and no chunk is sent before its session was asked."""
    retry = retry_for(client, way)
    cloud.fault(FAULTS[fault])
    blob = client.bucket("bkt").blob("a", chunk_size=CHUNK)
    with virtual_time(seed=3) as time:
        upload(blob, retry, if_generation_match=0)
    assert client.bucket("bkt").blob("a").download_as_bytes() == CONTENT
    assert cloud.effects.count(INSERT) == 1
    steps = [request.operation for request in cloud.requests if request.operation in (SEND, QUERY)]
    failures = 3 if fault == "three in a row" else 1
    waits = [delay for delay in time.slept if delay]  # after an answer the rest is sent at once
    assert (steps[:2], steps.count(QUERY), len(waits)) == ([SEND, QUERY], failures, failures)


SIZES = list(product(("install", "plain"), ("auto", "md5", "crc32c", None), (1, 2, 3, 8), (0, 1, 2)))


@pytest.mark.parametrize(("way", "checksum", "chunks", "strikes"), some(SIZES, SIZES[::11]))
def test_checksums_and_sizes(
    cloud: Cloud, client: Any, way: str, checksum: str | None, chunks: int, strikes: int
) -> None:
    """The checksum is that of the whole object whichever chunk is continued, the last one included."""
    retry = retry_for(client, way)
    cloud.fault(Fault.partial(CHUNK // 2, operation=SEND, skip=strikes, times=1))
    blob = client.bucket("bkt").blob("a", chunk_size=chunks * CHUNK)
    with virtual_time(seed=3):
        whole(blob, retry, checksum=checksum)
    assert client.bucket("bkt").blob("a").download_as_bytes() == CONTENT
    assert cloud.effects.count(INSERT) == 1


def test_a_question_that_fails_is_asked_again(cloud: Cloud, client: Any) -> None:
    """Nothing is sent before the answer is there."""
    cloud.fault(Fault.partial(100_000, operation=SEND, times=1))
    cloud.fault(Fault.status(503, operation=QUERY, times=2))
    with virtual_time(seed=3) as time:
        whole(client.bucket("bkt").blob("a", chunk_size=CHUNK), {"retry": ours.DEFAULT_RETRY})
    assert client.bucket("bkt").blob("a").download_as_bytes() == CONTENT
    assert (cloud.requests.count(QUERY), len(time.slept)) == (3, 3)


def test_progress_renews_the_patience(cloud: Cloud, client: Any) -> None:
    """A chunk that gets on with every attempt is not given up, however many attempts it takes."""
    cloud.fault(Fault.partial(60_000, operation=SEND, times=4))
    with virtual_time(seed=3) as time:
        whole(client.bucket("bkt").blob("a", chunk_size=CHUNK), {"retry": ours.DEFAULT_RETRY.with_timeout(3)})
    assert (len(time.slept), sum(time.slept) > 0) == (4, True)
    assert client.bucket("bkt").blob("a").download_as_bytes() == CONTENT


@pytest.mark.parametrize("way", ["install", "plain"])
def test_a_chunk_that_never_gets_through(cloud: Cloud, client: Any, way: str) -> None:
    """It is given up when the limits are reached, with a report; nothing is stored."""
    retry = retry_for(client, way)
    cloud.fault(Fault.status(503, operation=SEND, times=None))
    with virtual_time(seed=3), pytest.raises(exceptions.GoogleAPIError) as caught:
        whole(client.bucket("bkt").blob("a", chunk_size=CHUNK), retry)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.TIMEOUT
    assert cloud.effects.count(INSERT) == 0


@pytest.mark.parametrize("way", ["install", "plain"])
@pytest.mark.parametrize(
    ("fault", "code"), [(Fault.expire_session(operation=SEND), 410), (Fault.status(400, operation=SEND), 400)]
)
def test_a_session_that_is_gone(cloud: Cloud, client: Any, way: str, fault: Fault, code: int) -> None:
    """The error is raised at once."""
    retry = retry_for(client, way)
    cloud.fault(fault)
    with virtual_time() as time, pytest.raises(exceptions.GoogleAPICallError) as caught:
        whole(client.bucket("bkt").blob("a", chunk_size=CHUNK), retry)
    assert (caught.value.code, time.slept) == (code, [])


def test_a_condition_that_no_longer_holds(cloud: Cloud, client: Any) -> None:
    """The session checks it when it commits: the 412 after a doubtful chunk is raised, not repeated."""
    cloud.fault(Fault.status(503, operation=SEND, times=1))
    blob = client.bucket("bkt").blob("a", chunk_size=CHUNK)
    file = blob.open("wb", chunk_size=CHUNK, if_generation_match=0, retry=ours.DEFAULT_RETRY)
    with virtual_time(seed=3):
        file.write(CONTENT[: CHUNK + 1])
    cloud.store.put("bkt", "a", b"of somebody else")
    with virtual_time(seed=3) as time, pytest.raises(InvalidResponse) as caught:
        file.close()
    file.terminate()  # else its finalizer tries to close it again
    assert (caught.value.response.status_code, time.slept) == (412, [])
    assert client.bucket("bkt").blob("a").download_as_bytes() == b"of somebody else"


@pytest.mark.parametrize("way", ["install", "plain"])
@pytest.mark.parametrize("condition", [{}, {"if_generation_match": 0}], ids=["bare", "conditional"])
def test_an_upload_in_one_request(cloud: Cloud, client: Any, way: str, condition: dict[str, int]) -> None:
    """A response that breaks off is repeated under the condition: the function that sent it shows what it was."""
    retry = retry_for(client, way)
    cloud.fault(Fault.truncate(3, operation=INSERT))
    with virtual_time() as time, pytest.raises((exceptions.GoogleAPIError, requests.RequestException)) as caught:
        client.bucket("bkt").blob("a").upload_from_string(b"x", **condition, **retry)
    assert cloud.effects.count(INSERT) == 1
    report = forbear.report(caught.value)
    assert report is not None
    assert (len(time.slept), report.maybe_done) == (
        (1, True) if condition and way == "plain" else (0, report.maybe_done)
    )


def test_a_function_of_ones_own_shows_no_chunk() -> None:
    """It is not taken for one of the client's, whatever its variables are called."""
    request = requests.Request("PUT", "https://storage.googleapis.com/upload/storage/v1/b/b/o?upload_id=1", data=b"x")
    calls: list[int] = []

    def send() -> None:
        calls.append(1)
        raise requests.ConnectionError("lost", request=request.prepare())

    with virtual_time(), pytest.raises(requests.ConnectionError) as caught:
        ours.DEFAULT_RETRY(send)()
    assert len(calls) == 1
    assert "a query of its session" in caught.value.__notes__[0]
    assert isinstance(ours.DEFAULT_RETRY, StockRetry)
