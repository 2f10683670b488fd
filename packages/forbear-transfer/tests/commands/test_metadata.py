"""stat: all that the service says of an object."""

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_cloud.http.messages import Json
from forbear_testkit.rows import for_each
from forbear_transfer import Settings, TransferError, stat
from forbear_transfer.commands.metadata import ObjectDetails
from forbear_transfer.errors import WrongResponse
from forbear_transfer.objects import seconds_of_time


def test_stat_returns_all_metadata(cloud: Cloud) -> None:
    """Of the objects that addresses name, also after faults."""
    fields: dict[str, Json] = {
        "contentType": "text/plain",
        "cacheControl": "no-store",
        "metadata": {"key": "value"},
        "temporaryHold": True,
        "storageClass": "NEARLINE",
    }
    there = cloud.store.put("bkt", "a", b"hello", fields)
    cloud.store.put("bkt", "x/b", b"")
    cloud.fault(Fault.status(503), Fault.truncate(share=0.5))
    with virtual_time():
        first, second = stat(["gs://bkt/*", "gs://bkt/x/*"], settings=Settings(endpoint=cloud.url))
    assert (first.object.name, first.object.size, first.object.md5) == ("a", 5, there.md5)
    assert (first.object.cache_control, first.object.storage_class, first.temporary_hold) == (
        "no-store",
        "NEARLINE",
        True,
    )
    assert first.object.metadata == {"key": "value"}
    assert first.created is not None
    assert (second.object.name, second.object.content_language, second.noncurrent_since) == ("x/b", None, None)


def test_an_older_version(cloud: Cloud) -> None:
    """By its generation, with the time since which it is not the live one."""
    cloud.store.create_bucket("kept", fields={"versioning": {"enabled": True}})
    old = cloud.store.put("kept", "a", b"old")
    cloud.store.put("kept", "a", b"live!")
    (details,) = stat(f"gs://kept/a#{old.generation}", settings=Settings(endpoint=cloud.url))
    assert (details.object.size, details.object.generation) == (3, old.generation)
    assert details.noncurrent_since is not None


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("gs://bkt/none", "gs://bkt/none does not exist"),
        ("gs://bkt/", "gs://bkt/ is a bucket"),
        ("gs://bkt/x*", "nothing matches gs://bkt/x*"),
    ],
)
def test_what_is_no_object(address: str, text: str, cloud: Cloud) -> None:
    """With the reason."""
    with pytest.raises(TransferError) as caught:
        stat(address, settings=Settings(endpoint=cloud.url))
    assert str(caught.value) == text


def test_an_object_that_goes_away(cloud: Cloud) -> None:
    """Between the listing and the look at it."""
    cloud.store.put("bkt", "a", b"")
    cloud.fault(Fault.delete_object(operation="storage.objects.get"))
    with pytest.raises(TransferError, match="was replaced or deleted meanwhile"):
        stat("gs://bkt/*", literal=False, settings=Settings(endpoint=cloud.url))


@for_each(
    [
        {"timeCreated": "yesterday"},
        {"timeCreated": 5},
        {"timeCreated": "9999-12-31T23:59:59-23:59"},
        {"updated": "0001-01-01T00:00:00+23:59"},
        {"componentCount": "many"},
    ],
    "{0}",
)
def test_a_response_that_is_none(wrong: dict[str, object]) -> None:
    """Values that make no sense raise WrongResponse; so do times that are in no year of UTC, and cannot be printed."""
    with pytest.raises(WrongResponse, match="does not describe an object"):
        ObjectDetails.of({"bucket": "b", "name": "n", "generation": "1", **wrong})


def test_a_time_without_a_zone_is_utc() -> None:
    """As some emulators write it, whatever the zone of this machine is."""
    assert seconds_of_time("1970-01-02T00:00:00") == 24 * 60 * 60
    assert seconds_of_time("1970-01-02T00:00:00+01:00") == 23 * 60 * 60
