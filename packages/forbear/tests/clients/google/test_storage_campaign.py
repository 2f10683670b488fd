"""Every call of google-cloud-storage, each of its requests with a fault before or after it is executed.

The calls are in `storage_calls`, the judge in `storage_judge`. `make soak` runs them all and prints the figures.
"""

import inspect
from collections import Counter
from collections.abc import Callable
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
