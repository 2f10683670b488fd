"""Sizes that a plan does not know: the listener gets each as soon as it is known."""

from pathlib import Path

from forbear_cloud import Cloud
from forbear_testkit.transfer.recorder import Recorder
from forbear_transfer import Settings, cp


def test_the_size_of_a_single_object_comes_with_the_first_response(cloud: Cloud, tmp_path: Path) -> None:
    """An object that is named costs no request for its size: the listener gets it from the first response."""
    cloud.store.put("bkt", "a", b"12345")
    for source, target in (("gs://bkt/a", str(tmp_path / "a")), ("gs://bkt/a", "gs://bkt/b")):
        told = Recorder()
        assert cp(source, target, settings=Settings(endpoint=cloud.url), on_event=told).ok
        assert told.plans[-1] == (1, None, True)
        assert told.sizes == {"gs://bkt/a": 5}


def test_sizes_of_listed_objects_come_once(cloud: Cloud, tmp_path: Path) -> None:
    """The items have the sizes that the plan knows, so no event repeats them."""
    cloud.store.put("bkt", "a", b"12345")
    told = Recorder()
    assert cp("gs://bkt/*", f"{tmp_path}/", settings=Settings(endpoint=cloud.url), on_event=told).ok
    assert (told.plans[-1], told.sizes) == ((1, 5, True), {})
