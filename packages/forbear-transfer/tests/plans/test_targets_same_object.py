"""An object is not copied onto itself, however its address is written; an older version of it may replace it."""

from typing import Any

import pytest

from forbear_cloud import Cloud
from forbear_testkit.transfer.uploads import storing
from forbear_transfer import Settings, TransferError, Url, copy, cp, rsync

SAME, INTO = "source and target are the same", "into itself"


@pytest.fixture
def kept(cloud: Cloud) -> dict[str, int]:
    """Return the generations of gs://kept/x in a bucket that keeps older versions and has a folder gs://kept/d."""
    cloud.store.create_bucket("kept", fields={"versioning": {"enabled": True}})
    older, live = (cloud.store.put("kept", "x", data).generation for data in (b"older", b"live"))
    cloud.store.put("kept", "d/a", b"a")
    cloud.store.put("kept", "d/s/b", b"b")
    return {"older": older, "live": live}


@pytest.mark.parametrize(
    ("source", "target", "options", "why"),
    [
        ("gs://kept/x", "gs://kept/x", {}, SAME),
        ("gs://kept/x", "gs://kept/", {}, SAME),
        ("gs://kept/x", "gs://kept", {}, SAME),
        ("gs://kept/x*", "gs://kept", {}, SAME),
        ("gs://kept/[x]", "gs://kept/", {}, SAME),
        ("gs://kept/x", "gs://kept/x", {"recursive": True}, SAME),
        ("gs://kept/x", "gs://kept/x", {"no_clobber": True}, SAME),
        ("gs://kept/x#{live}", "gs://kept/x", {}, SAME),
        ("gs://kept/x#{live}", "gs://kept/", {}, SAME),
        ("gs://kept/x#{live}", "gs://kept/", {"no_clobber": True}, SAME),
        ("gs://kept/d", "gs://kept/", {"recursive": True}, INTO),
        ("gs://kept/d/", "gs://kept/d", {"recursive": True}, INTO),
        ("gs://kept/d", "gs://kept/d/s/", {"recursive": True}, INTO),
        ("gs://kept", "gs://kept/copy/", {"recursive": True}, INTO),
    ],
)
def test_it_is_refused(
    cloud: Cloud, kept: dict[str, int], source: str, target: str, options: dict[str, Any], why: str
) -> None:
    """Nothing is written, and the error says why."""
    summary = cp(source.format(**kept), target, settings=Settings(endpoint=cloud.url), **options)
    [failure] = summary.failures
    assert why in (failure.error or "")
    assert len(cloud.effects) == 0


@pytest.mark.parametrize("target", ["gs://kept/d", "gs://kept/d/", "gs://kept/d/s", "gs://kept"])
def test_rsync_refuses_what_lies_in_itself(cloud: Cloud, kept: dict[str, int], target: str) -> None:
    """`rsync` refuses a target inside its source before any request."""
    with pytest.raises(ValueError, match="must not lie in each other"):
        rsync("gs://kept/d", target, recursive=True, settings=Settings(endpoint=cloud.url))
    assert len(cloud.requests) == 0


@pytest.mark.parametrize("target", ["gs://kept/x", "gs://kept/", "gs://kept"])
def test_an_older_version_is_restored(cloud: Cloud, kept: dict[str, int], target: str) -> None:
    """A copied older version becomes the live one."""
    source = f"gs://kept/x#{kept['older']}"
    assert cp(source, target, settings=Settings(endpoint=cloud.url)).done == 1
    assert cloud.store.object("kept", "x").data == b"older"


async def test_by_itself_too(cloud: Cloud, kept: dict[str, int]) -> None:
    """`copy` says which version is the same."""
    async with storing(cloud) as storage:
        for generation in (None, kept["live"]):
            with pytest.raises(TransferError, match="is the present version of gs://kept/x"):
                await copy(storage, Url("kept", "x", generation), Url("kept", "x"))
    assert len(cloud.effects) == 0
