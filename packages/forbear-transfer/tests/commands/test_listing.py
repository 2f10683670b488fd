"""ls and du: all that is there, once, in order, whatever happens to the pages."""

import base64
import hashlib

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault, random_faults
from forbear_transfer import HttpError, Object, Settings, TransferError, Usage, du, ls, rm

LIST = "storage.objects.list"
NAMES = ("a", "a/1", "a/b/2", "a/b/c/3", "a/d/4", "ab", "z/", "z/5")


@pytest.fixture
def filled(cloud: Cloud) -> Cloud:
    """A bucket with objects of one to eight bytes."""
    for size, name in enumerate(NAMES, 1):
        cloud.store.put("bkt", name, b"x" * size)
    return cloud


def listed(cloud: Cloud, *addresses: str, recursive: bool = False) -> list[str]:
    """Return the names of objects and folders, in virtual time."""
    with virtual_time(seed=3):
        entries = ls(addresses, recursive=recursive, settings=Settings(endpoint=cloud.url))
    return [entry.name for entry in entries]


@pytest.mark.parametrize(
    ("address", "recursive", "names"),
    [
        ("gs://bkt", False, ["a", "ab", "a/", "z/"]),
        ("gs://bkt/", True, list(NAMES)),
        ("gs://bkt/a", False, ["a", "a/1", "a/b/", "a/d/"]),
        ("gs://bkt/a/", False, ["a/1", "a/b/", "a/d/"]),
        ("gs://bkt/a/b", True, ["a/b/2", "a/b/c/3"]),
        ("gs://bkt/z/", False, ["z/", "z/5"]),
        ("gs://bkt/a?", False, ["ab"]),
        ("gs://bkt/a/?", False, ["a/1", "a/b/2", "a/b/c/", "a/d/4"]),
        ("gs://bkt/a/?", True, ["a/1", "a/b/2", "a/b/c/3", "a/d/4"]),
        ("gs://bkt/z/**", False, ["z/", "z/5"]),
    ],
)
def test_what_an_address_names(address: str, recursive: bool, names: list[str], filled: Cloud) -> None:
    """An object, and what lies below a folder; a folder that a pattern matches is listed as well."""
    assert listed(filled, address, recursive=recursive) == names


@pytest.mark.parametrize(
    ("address", "recursive", "names"),
    [
        ("gs://bkt", False, ["a", "a", "gone", "a/"]),
        ("gs://bkt", True, ["a", "a", "a/1", "a/1", "gone"]),
        ("gs://bkt/a", False, ["a", "a", "a/1", "a/1"]),
        ("gs://bkt/gone", False, ["gone"]),
        ("gs://bkt/[ag]*", False, ["a", "a", "gone"]),
        ("gs://bkt/[ag]*", True, ["a", "a", "a/1", "a/1", "gone"]),
    ],
)
def test_all_versions(address: str, recursive: bool, names: list[str], cloud: Cloud) -> None:
    """Oldest first, also of what is deleted; page after page, each once."""
    cloud.store.create_bucket("old", fields={"versioning": {"enabled": True}})
    for name in ("a", "a", "a/1", "a/1", "gone"):
        cloud.store.put("old", name, b"1")
    settings, address = Settings(endpoint=cloud.url), address.replace("bkt", "old")
    with virtual_time(seed=3):
        assert rm("gs://old/gone", settings=settings).ok
        cloud.fault(Fault.reset(when="after", operation=LIST), Fault.truncate(100, operation=LIST))
        entries = ls(address, recursive=recursive, versions=True, settings=settings)
        with pytest.raises(TransferError, match="does not exist"):
            ls("gs://old/gone", settings=settings)
    assert [entry.name for entry in entries] == names
    generations = [entry.generation for entry in entries if isinstance(entry, Object)]
    assert len({*generations}) == len(generations)
    one = next(entry for entry in entries if isinstance(entry, Object))
    with virtual_time():
        assert ls(str(one.url), versions=True, settings=settings) == [one]


def test_a_generation(filled: Cloud) -> None:
    """One version, and no folder."""
    generation = filled.store.object("bkt", "a").generation
    assert listed(filled, f"gs://bkt/a#{generation}") == ["a"]
    with pytest.raises(TransferError, match="gs://bkt/a#5 does not exist"):
        listed(filled, "gs://bkt/a#5")


@pytest.mark.parametrize("address", ["gs://bkt/none", "gs://bkt/none/", "gs://bkt/none*"])
def test_what_does_not_exist_is_an_error(address: str, filled: Cloud) -> None:
    """An empty bucket is none, a missing one is."""
    with pytest.raises(TransferError, match=r"does not exist|nothing matches"):
        listed(filled, address)
    with pytest.raises(HttpError, match="404"):
        listed(filled, "gs://nowhere")
    filled.store.create_bucket("empty")
    assert listed(filled, "gs://empty") == []


@pytest.mark.parametrize("seed", range(3))
def test_pages_are_requested_again(seed: int, filled: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """No object is lost or comes twice."""
    monkeypatch.setattr("forbear_transfer.storage.listing._PAGE_ITEMS", 2)
    filled.fault(random_faults(seed, unavailable=0.3, truncated=0.2, reset_after=0.2))
    assert listed(filled, "gs://bkt", recursive=True) == list(NAMES)


def test_what_a_listing_says_of_an_object(filled: Cloud) -> None:
    """Its hashes, among other things."""
    entry = ls("gs://bkt/ab", settings=Settings(endpoint=filled.url))[0]
    assert isinstance(entry, Object)
    assert (entry.size, entry.md5, entry.content_type) == (
        6,
        base64.b64encode(hashlib.md5(b"x" * 6).digest()).decode(),
        None,
    )


@pytest.mark.parametrize(
    ("address", "summarize", "usages"),
    [
        (
            "gs://bkt",
            False,
            [("a/b/c/", 1, 4), ("a/b/", 2, 7), ("a/d/", 1, 5), ("a/", 4, 14), ("z/", 2, 15), (None, 8, 36)],
        ),
        ("gs://bkt", True, [(None, 8, 36)]),
        ("gs://bkt/a", False, [("a/b/c/", 1, 4), ("a/b/", 2, 7), ("a/d/", 1, 5), (None, 5, 15)]),
        ("gs://bkt/a/b/", False, [("a/b/c/", 1, 4), (None, 2, 7)]),
        ("gs://bkt/ab", False, [(None, 1, 6)]),
        ("gs://bkt/a*", False, [(None, 6, 21)]),
    ],
)
def test_du_adds_up_each_folder(
    address: str,
    summarize: bool,
    usages: list[tuple[str | None, int, int]],
    filled: Cloud,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sums of each folder, with what lies deeper, and that of the address last; a lost page counts once."""
    monkeypatch.setattr("forbear_transfer.storage.listing._PAGE_ITEMS", 3)
    filled.fault(Fault.truncate(share=0.5, operation=LIST), Fault.status(503, operation=LIST))
    with virtual_time(seed=1):
        result = du(address, summarize=summarize, settings=Settings(endpoint=filled.url))
    assert result == [Usage(address if name is None else f"gs://bkt/{name}", *rest) for name, *rest in usages]
