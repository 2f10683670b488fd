"""Every call of google-cloud-storage, each of its requests with a fault before or after it is executed.

The calls are in `storage_calls`, the judge in `storage_judge`. `make soak` runs them all and prints the figures.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from google.cloud import storage
from google.cloud.storage import acl, hmac_key, notification
from google.cloud.storage import retry as stock

import forbear
from forbear.clients.google_storage import DEFAULT_RETRY, install
from forbear.services import cloud_storage
from forbear_cloud import Cloud
from forbear_testkit.clients.google.storage_calls import ROWS, Row
from forbear_testkit.clients.google.storage_judge import FAULTS, judged, plain
from forbear_testkit.clients.google.storage_world import World

QUICK = 0.001  # seconds: the threads of the transfer manager know nothing of virtual time
CASES = [(way, row) for way in ("install", "retry=") for row in ROWS if way == "install" or not row.own_loop]


def world(way: str, cloud: Cloud, client: Any, folder: Path) -> World:
    """The world of the calls, made safe in one of the two ways."""
    if way == "install":
        install(client, cloud_storage.policy.with_backoff(forbear.Constant(QUICK)))
        return World(cloud, client, {}, folder)
    return World(cloud, client, {"retry": DEFAULT_RETRY.with_delay(QUICK, QUICK)}, folder)


@pytest.mark.parametrize("way", ["install", "retry="])
def test_a_call_of_each_kind(cloud: Cloud, client: Any, tmp_path: Path, way: str) -> None:
    """Nothing is done twice, and nothing is given up that may be repeated: every eighth call, each with one fault."""
    place = world(way, cloud, client, tmp_path)
    for turn, row in enumerate([row for other, row in CASES if other == way][::8]):
        right = plain(row, place)
        result = judged(row, place, right, tuple(FAULTS)[turn % len(FAULTS)], turn % len(right.requests))
        assert result.outcome not in ("unsafe", "needless"), result.story


@pytest.mark.soak
@pytest.mark.parametrize(("way", "row"), CASES, ids=str)
def test_nothing_is_done_twice_or_given_up_needlessly(
    cloud: Cloud, client: Any, tmp_path: Path, way: str, row: Row, record_property: Callable[[str, object], None]
) -> None:
    """Each fault at each request of each call; what ends in a conflict of its own making says so."""
    place = world(way, cloud, client, tmp_path)
    right = plain(row, place)
    results = [judged(row, place, right, fault, number) for number in range(len(right.requests)) for fault in FAULTS]
    figures = {"unsafe": 0, "needless": 0, **Counter(each.outcome for each in results)}
    record_property("figures of google-cloud-storage under faults", figures)
    assert [each.story for each in results if each.outcome in ("unsafe", "needless")] == []


@pytest.mark.parametrize(
    ("method", "fault", "outcome"),
    [
        ("Blob.upload_from_string", "503 after", "unsafe"),
        ("Bucket.reload", "503 before", "needless"),
        ("Blob.delete", "reset before", "unsafe"),
    ],
)
def test_the_judge_notices(cloud: Cloud, client: Any, tmp_path: Path, method: str, fault: str, outcome: str) -> None:
    """Google's own object does twice what it must not; without any, what may be repeated is given up."""
    retry = None if outcome == "needless" else stock.DEFAULT_RETRY.with_delay(QUICK, QUICK)
    place = World(cloud, client, {"retry": retry}, tmp_path)
    row = next(row for row in ROWS if row.method == method)
    assert judged(row, place, plain(row, place), fault, 0).outcome == outcome


PREDEFINED = "the server expands a predefined access control list"
LEFT = {
    "Bucket.move_blob with if_generation_match": "what was moved is gone, so nothing shows what the object was made of",
    "Blob.compose with if_generation_match": "the object does not show what it was made of",
    "Blob.update_storage_class with if_generation_match": "a copy onto itself: its content before is not known",
    "BucketACL.save_predefined with if_metageneration_match": PREDEFINED,
    "DefaultObjectACL.save_predefined with if_metageneration_match": PREDEFINED,
    "ObjectACL.save_predefined with if_metageneration_match": PREDEFINED,
}
"""The calls whose conflict stays with `settle=True`, and the reason."""

WRITES = (
    "Blob.upload_from_string", "Blob.upload_from_filename", "Blob.patch", "Blob.update", "Blob.compose", "Blob.rewrite",
    "Blob.update_storage_class",
)  # fmt: skip
"""The calls that write an object, and whose request has metadata: a mark among them shows whose write it was."""


def is_mine(sent: Mapping[str, Any], read: Mapping[str, Any]) -> bool:
    """The recipe of the documentation."""
    mark = (sent.get("metadata") or {}).get("write")
    return mark is not None and (read.get("metadata") or {}).get("write") == mark


def settling(cloud: Cloud, client: Any, folder: Path, settle: Any) -> World:
    """The world of a client whose conflicts are settled."""
    install(client, cloud_storage.policy.with_backoff(forbear.Constant(QUICK)), settle=settle)
    return World(cloud, client, {}, folder, marks=settle is is_mine)


def find_conflicts(row: Row, place: World, faults: Iterable[str]) -> tuple[Counter[str], list[str]]:
    """Return how a call ends under each of these faults at each of its requests; and the stories that must not be."""
    right = plain(row, place)
    results = [judged(row, place, right, fault, number) for number in range(len(right.requests)) for fault in faults]
    return (
        Counter(each.outcome for each in results),
        [each.story for each in results if each.outcome in ("unsafe", "needless")],
    )


@pytest.mark.parametrize("settle", [True, is_mine, False], ids=["True", "the recipe", "False"])
def test_some_conflicts_are_settled(cloud: Cloud, client: Any, tmp_path: Path, settle: Any) -> None:
    """One call of each kind whose response is lost: all by the state, what has a mark by the mark, none without."""
    place = settling(cloud, client, tmp_path, settle)
    kinds = {
        "Blob.upload_from_string with if_generation_match", "Blob.patch with if_metageneration_match",
        "Client.create_bucket", "Blob.delete with if_generation_match",
    }  # fmt: skip
    for row in [row for row in ROWS if str(row) in kinds]:
        figures, wrong = find_conflicts(row, place, ["reset after"])
        stays = settle is False or (settle is is_mine and row.method not in WRITES)
        assert (wrong, bool(figures["conflict"])) == ([], stays), row


@pytest.mark.soak
@pytest.mark.parametrize("settle", [True, is_mine, False], ids=["True", "the recipe", "False"])
def test_what_settling_leaves(
    cloud: Cloud, client: Any, tmp_path: Path, settle: Any, record_property: Callable[[str, object], None]
) -> None:
    """By the state six calls are left, each for its reason; by the recipe no write of an object with metadata."""
    place, total, calls = settling(cloud, client, tmp_path, settle), Counter[str](), set[Row]()
    for row in ROWS:
        figures, wrong = find_conflicts(row, place, FAULTS)
        assert wrong == []
        total += figures
        if figures["conflict"]:
            calls.add(row)
    record_property(f"conflicts of their own making that settle={settle} leaves", dict(total))
    if settle is True:
        assert ({str(row) for row in calls}, total["conflict"]) == ({*LEFT}, 2 * len(LEFT))
    elif settle:
        assert {row.method for row in calls}.isdisjoint(WRITES)
    else:
        assert (len(calls), total["conflict"]) == (42, 90)


def test_every_call_with_retries_is_among_them() -> None:
    """A version of the library with another call that takes `retry=` shows here what the campaign lacks."""
    kinds = (storage.Client, storage.Bucket, storage.Blob, hmac_key.HMACKeyMetadata, notification.BucketNotification)
    lists = (acl.BucketACL, acl.DefaultObjectACL, acl.ObjectACL)
    methods = {
        f"{kind.__name__}.{name}"
        for kind in (*kinds, *lists)
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and "retry" in inspect.signature(method).parameters
    }
    old_names = {"Blob.download_as_string"}
    assert methods - {row.method for row in ROWS} - old_names == set()
