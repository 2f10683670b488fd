"""Random faults: the same for the same seed, at the given rates, and never endless."""

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from forbear_cloud import Cloud, RandomFaults, random_faults
from forbear_cloud.http.messages import HttpRequest

INSERT = "storage.objects.insert"


def names(faults: RandomFaults, requests: list[HttpRequest]) -> list[str | None]:
    """Return the name of the fault that each request draws, None for no fault."""
    drawn = [faults.draw(request, INSERT) for request in requests]
    return [None if fault is None else fault.name for fault in drawn]


def request(number: int, token: str = "") -> HttpRequest:
    """Return an upload of the object with this number."""
    headers = {"x-goog-gcs-idempotency-token": token} if token else {}
    return HttpRequest("POST", f"/upload/storage/v1/b/bkt/o/{number}", {}, headers)


def test_rates_are_met_and_reproduced() -> None:
    """Each kind occurs at about its rate, for the same requests with the same seed and for others with another."""
    requests = [request(number) for number in range(2000)]
    drawn = names(random_faults(7, limit=9), requests)
    assert drawn == names(random_faults(7, limit=9), requests)
    assert drawn != names(random_faults(8, limit=9), requests)
    assert drawn == names(random_faults(7, limit=9), list(reversed(requests)))[::-1]
    for name, rate in [
        ("status 503 before", 0.1),
        ("status 429 before", 0.05),
        ("reset before", 0.05),
        ("reset after", 0.05),
        ("truncate after", 0.05),
    ]:
        assert rate * 0.7 < drawn.count(name) / 2000 < rate * 1.3


@given(
    seed=st.integers(),
    limit=st.integers(0, 4),
    who=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["", "t", "u"])), max_size=60),
)
def test_no_request_fails_more_often_than_the_limit(seed: int, limit: int, who: list[tuple[int, str]]) -> None:
    """Each logical request succeeds after at most `limit` failures, whatever other requests there are."""
    faults = random_faults(seed % 2**60, unavailable=0.75, limit=limit)
    streaks = dict[tuple[int, str], int]()
    for each in who:
        failed = faults.draw(request(*each), INSERT) is not None
        streaks[each] = streaks.get(each, 0) + 1 if failed else 0
        assert streaks[each] <= limit


def test_random_faults_can_be_confined() -> None:
    """Only requests that match get random faults."""
    faults = random_faults(1, unavailable=0.75, limit=9, operation="storage.objects.get")
    assert faults.draw(request(1), INSERT) is None
    assert any(faults.draw(request(1), "storage.objects.get") for _ in range(20))


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_a_bounded_client_gets_through(seed: int) -> None:
    """A client with `limit` + 1 attempts finishes, and writes with a precondition take effect once."""
    with Cloud() as cloud, httpx.Client(base_url=cloud.url, verify=False) as http:
        cloud.store.create_bucket("bkt")
        cloud.fault(random_faults(seed, unavailable=0.2, reset_before=0.2, reset_after=0.2, truncated=0.2, limit=3))
        for number in range(10):
            upload = f"/upload/storage/v1/b/bkt/o?uploadType=media&name={number}&ifGenerationMatch=0"
            for _ in range(4):
                try:
                    status = http.post(upload, content=b"hello").status_code
                except httpx.TransportError:
                    continue
                if status in (200, 412):
                    break
            assert cloud.effects.count(INSERT, f"bkt/{number}") == 1
