"""Effects that occur twice: names that the server makes, several servers, other paths, and a Redis."""

from collections.abc import Callable, Generator
from contextlib import suppress
from uuid import uuid4

import pytest
import redis
import requests
from redis.backoff import NoBackoff
from redis.retry import Retry

from forbear.testing.valkey import valkey_server
from forbear_audit.storm import storm
from forbear_cloud import Cloud
from forbear_testkit.testing.orders import OrdersServer, orders_server


@pytest.fixture(scope="module")
def server() -> Generator[OrdersServer]:
    """Run a server for all tests of this module."""
    with orders_server() as server:
        yield server


def post_up_to_twice(url: Callable[[], str]) -> None:
    """Send a POST, and once more to the next URL after an error."""
    with suppress(requests.RequestException):
        requests.post(url(), timeout=5).raise_for_status()
        return
    requests.post(url(), timeout=5).raise_for_status()


def retried(url: Callable[[], str], attempts: int = 3) -> None:
    """Send a POST to the next URL until it works, up to three times, from one line."""
    for left in reversed(range(attempts)):
        try:
            requests.post(url(), timeout=5).raise_for_status()
            break
        except requests.RequestException:
            if not left:
                raise


def found(function: Callable[[], object], **options: object) -> list[tuple[str, str]]:
    """Return kind and text of the findings that are no notes, with lost responses."""
    report = storm(function, **{"faults": ["lost"], **options})  # type: ignore[arg-type]
    return [(finding.kind, finding.text.rpartition(": ")[2]) for finding in report.findings if not finding.is_note]


def test_names_that_the_server_makes(server: OrdersServer) -> None:
    """Two effects instead of one are a duplicate, though each has a name of its own."""

    def order_ids() -> list[str]:
        return [f"order-{number}" for number, _ in enumerate(server.orders)]

    kinds = found(lambda: retried(lambda: f"{server.url}/orders"), effects=order_ids)
    assert kinds[0] == ("duplicated", "`order_ids` rose by 2 instead of 1")
    assert not found(lambda: retried(lambda: f"{server.url}/orders", 1), effects=order_ids)


def test_names_that_the_client_makes() -> None:
    """An upload under a new name each time makes two objects in the embedded cloud."""
    with Cloud() as cloud:
        cloud.store.create_bucket("b")
        target = f"{cloud.url}/upload/storage/v1/b/b/o?uploadType=media&name="
        kinds = found(lambda: retried(lambda: f"{target}{uuid4()}"))
    assert kinds[0] == ("duplicated", "`cloud` rose by 2 instead of 1")


@pytest.mark.parametrize("source", ["another server", "a cloud", "nothing"])
def test_a_call_that_no_source_counts(server: OrdersServer, source: str) -> None:
    """A source that counts other calls, or none at all, leaves a call suspected."""
    with orders_server() as other, Cloud() as cloud:
        effects = {"another server": other.count, "a cloud": None, "nothing": dict[str, int]}[source]

        def order() -> None:
            requests.post(f"{other.url}/notes", timeout=5).raise_for_status()
            requests.get(f"{cloud.url}/storage/v1/b", timeout=5)
            retried(lambda: f"{server.url}/orders")

        (first, *_) = found(order, effects=effects)
        counted = found(lambda: retried(lambda: f"{other.url}/notes"), effects=other.count)
    assert first == ("suspected", "the server may execute it twice")
    assert counted[0] == ("duplicated", "`count` rose by 2 instead of 1")


def test_sources_may_send_requests(server: OrdersServer) -> None:
    """Calls of a source itself are no part of the run."""

    def order_count() -> int:
        requests.get(f"{server.url}/count", timeout=5).raise_for_status()
        return len(server.orders)

    report = storm(lambda: retried(lambda: f"{server.url}/orders"), effects=order_count, faults=["lost"])
    assert report.calls == ("POST /orders#1",)
    assert report.findings[0].kind == "duplicated"


def test_another_path(server: OrdersServer) -> None:
    """A retry under another path is found: from the same line with any count, from another line by its effect."""

    def again() -> None:
        letters = iter("ab")
        retried(lambda: f"{server.url}/orders/{next(letters)}", 2)

    def elsewhere() -> None:
        letters = iter("ab")
        post_up_to_twice(lambda: f"{server.url}/orders/{next(letters)}")

    assert found(again, effects=server.count)[0] == ("duplicated", "`count` rose by 2 instead of 1")
    assert found(again)[0][0] == "suspected"
    assert found(elsewhere, effects=server.count)[0] == ("duplicated", "`count` rose by 2 instead of 1")


@pytest.mark.parametrize("value", [None, "three", {"orders": None}])
def test_a_source_that_counts_nothing(server: OrdersServer, value: object) -> None:
    """A source that returns no count is an error that names it, its rule and the value."""

    def order_count() -> object:
        return value

    text = "`order_count`, a source of effects, must return how many effects there are so far: a number"
    with pytest.raises(TypeError, match=text):
        storm(lambda: requests.get(server.url, timeout=5), effects=order_count)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "kind"),
    [(("INCR", "n"), "duplicated"), (("LPOP", "nothing"), "suspected"), (("PUBLISH", "news", "x"), "suspected")],
)
def test_redis_counts_changes(command: tuple[str, ...], kind: str) -> None:
    """A command that ran twice is a duplicate only if the data changed once more."""
    with valkey_server() as path:

        def run() -> None:
            with redis.Redis(unix_socket_path=path, retry=Retry(NoBackoff(), 1)) as client:
                client.execute_command(*command)

        (first, *_) = found(run)
    assert first[0] == kind


def test_retries_with_an_end(server: OrdersServer) -> None:
    """Many attempts that end by themselves are no retries without an end; the default of redis-py makes eleven."""

    def fetch() -> None:
        for left in reversed(range(12)):
            try:
                requests.get(server.url, timeout=5).raise_for_status()
                break
            except requests.RequestException:
                if not left:
                    raise

    report = storm(fetch, only="GET /#1+:503")
    assert [(finding.kind, finding.rule) for finding in report.findings] == [("many", "")]
    assert report.findings[0].text == "12 attempts at one call while the fault lasts; the limit is 10"
    with valkey_server() as path:

        def visit() -> None:
            with redis.Redis(unix_socket_path=path) as client:
                client.get("visits")

        assert [finding.kind for finding in storm(visit, only="GET visits#1+:refused").findings] == ["many"]
