"""Storms: the same for the same seed, about as bad as asked, and always with an end."""

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from forbear.testing.cloud import Cloud, Storm, storm
from forbear.testing.cloud.http.messages import HttpRequest

INSERT = "storage.objects.insert"


def names(weather: Storm, requests: list[HttpRequest]) -> list[str | None]:
    """What a storm draws for each of the requests."""
    drawn = [weather.draw(request, INSERT) for request in requests]
    return [None if fault is None else fault.name for fault in drawn]


def request(number: int, token: str = "") -> HttpRequest:
    """A request for a thing of its own."""
    headers = {"x-goog-gcs-idempotency-token": token} if token else {}
    return HttpRequest("POST", f"/upload/storage/v1/b/bkt/o/{number}", {}, headers)


def test_rates_are_met_and_reproduced() -> None:
    """Each kind comes about as often as asked, in the same places for the same seed and not for another."""
    requests = [request(number) for number in range(2000)]
    drawn = names(storm(7, limit=9), requests)
    assert drawn == names(storm(7, limit=9), requests)
    assert drawn != names(storm(8, limit=9), requests)
    assert drawn == names(storm(7, limit=9), list(reversed(requests)))[::-1]
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
    """Even where everything fails, each logical request gets through after `limit` failures, whoever else asks."""
    weather = storm(seed % 2**60, unavailable=0.75, limit=limit)
    streaks = dict[tuple[int, str], int]()
    for each in who:
        failed = weather.draw(request(*each), INSERT) is not None
        streaks[each] = streaks.get(each, 0) + 1 if failed else 0
        assert streaks[each] <= limit


def test_a_storm_can_be_confined() -> None:
    """Matchers keep a storm to some requests."""
    weather = storm(1, unavailable=0.75, limit=9, operation="storage.objects.get")
    assert weather.draw(request(1), INSERT) is None
    assert any(weather.draw(request(1), "storage.objects.get") for _ in range(20))


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_a_bounded_client_gets_through(seed: int) -> None:
    """A client with one attempt more than the limit finishes, and guarded writes take effect once."""
    with Cloud() as cloud, httpx.Client(base_url=cloud.url, verify=False) as http:
        cloud.store.create_bucket("bkt")
        cloud.fault(storm(seed, unavailable=0.2, reset_before=0.2, reset_after=0.2, truncated=0.2, limit=3))
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
