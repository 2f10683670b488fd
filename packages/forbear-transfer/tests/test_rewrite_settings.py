"""Settings in place: another class and other metadata for objects that are there, and nothing else of them changes."""

from typing import Any

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_transfer import EncryptionKey, Finished, Settings, Storage, Summary, TransferEvent, Url, acp, copy, cp

PATCH, REWRITE = "storage.objects.patch", "storage.objects.rewrite"
FIELDS: dict[str, Any] = {
    "contentType": "text/plain",
    "cacheControl": "no-store",
    "contentLanguage": "de",
    "metadata": {"a": "1"},
}
KEY = EncryptionKey(b"k" * 32)


def change(cloud: Cloud, source: str = "gs://bkt/d/a", target: str | None = None, **options: Any) -> Summary:
    """Copy objects onto themselves, in virtual time."""
    with virtual_time(seed=1):
        return cp(source, target or source, settings=Settings(endpoint=cloud.url), **options)


@pytest.fixture
def filled(cloud: Cloud) -> Cloud:
    """Two objects with metadata, a custom time, and the time of a file."""
    for name in ("d/a", "d/b"):
        cloud.store.put("bkt", name, name.encode(), {**FIELDS, "customTime": "2026-01-31T12:00:00Z"})
    return cloud


def fields(cloud: Cloud, name: str = "d/a") -> dict[str, Any]:
    """Return what users set of an object, with its class."""
    there = cloud.store.object("bkt", name).fields
    kept = ("contentType", "cacheControl", "contentLanguage", "metadata", "customTime", "storageClass")
    return {field: there.get(field) for field in kept}


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({"cache_control": "max-age=5"}, {"cacheControl": "max-age=5"}),
        ({"content_type": "text/html"}, {"contentType": "text/html"}),
        ({"metadata": {"b": "2"}}, {"metadata": {"a": "1", "b": "2"}}),
        ({"metadata": {"a": "2"}}, {"metadata": {"a": "2"}}),
    ],
)
@pytest.mark.parametrize("recursive", [False, True])
def test_metadata_is_patched(filled: Cloud, options: dict[str, Any], changed: dict[str, Any], recursive: bool) -> None:
    """The contents stay where they are; what is not named stays as it is; a second run does nothing."""
    before, version = fields(filled), filled.store.object("bkt", "d/a")
    source, target = ("gs://bkt/d", "gs://bkt/") if recursive else ("gs://bkt/d/a", None)
    assert change(filled, source, target, recursive=recursive, **options).done == 1 + recursive
    assert fields(filled) == {**before, **changed}
    assert (filled.store.object("bkt", "d/a").generation, filled.store.object("bkt", "d/a").data) == (
        version.generation, b"d/a",
    )  # fmt: skip
    assert change(filled, source, target, recursive=recursive, **options).skipped == 1 + recursive
    assert [one.operation for one in filled.effects] == [PATCH] * (1 + recursive)


@pytest.mark.parametrize("options", [{}, {"cache_control": "max-age=5"}])
def test_another_class_moves_the_contents(filled: Cloud, options: dict[str, str]) -> None:
    """The object is rewritten onto itself, with all its metadata."""
    before = fields(filled)
    assert change(filled, storage_class="NEARLINE", **options).done == 1
    new = {"storageClass": "NEARLINE", **({"cacheControl": "max-age=5"} if options else {})}
    assert fields(filled) == {**before, **new}
    assert [one.operation for one in filled.effects] == [REWRITE]
    assert change(filled, storage_class="NEARLINE", **options).skipped == 1


def test_the_key_stays_with_another_class(filled: Cloud) -> None:
    """An object with a key keeps it; without that key it cannot be rewritten."""
    assert change(filled, encryption_key=KEY).done == 1
    assert change(filled, storage_class="NEARLINE").failed == 1
    assert change(filled, storage_class="NEARLINE", decryption_keys=KEY).done == 1
    assert filled.store.object("bkt", "d/a").fields["storageClass"] == "NEARLINE"
    assert change(filled, encryption_key=KEY, storage_class="NEARLINE").skipped == 1


@pytest.mark.parametrize("operation", [PATCH, REWRITE])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_response_costs_nothing(filled: Cloud, operation: str, when: str) -> None:
    """The change is made once, and a success."""
    options = {"cache_control": "x"} if operation == PATCH else {"storage_class": "NEARLINE"}
    filled.fault(Fault.reset(when="after" if when == "after" else "before", operation=operation, times=1))
    before = fields(filled)
    assert change(filled, **options).ok
    assert [one.operation for one in filled.effects] == [operation]
    assert fields(filled, "d/b") == before


@pytest.mark.parametrize("operation", [PATCH, REWRITE])
def test_what_another_client_writes_meanwhile_stays(filled: Cloud, operation: str) -> None:
    """Neither its contents nor its metadata are replaced."""
    options = {"cache_control": "x"} if operation == PATCH else {"storage_class": "NEARLINE"}
    filled.fault(Fault.replace_object(b"newer", operation=operation))
    assert change(filled, **options).failed == 1
    assert filled.store.object("bkt", "d/a").data == b"newer"


def test_a_dry_run_says_it(filled: Cloud) -> None:
    """It changes nothing."""
    events: list[TransferEvent] = []
    assert change(filled, cache_control="x", dry_run=True, on_event=events.append).ok
    assert [one.outcome.error for one in events if isinstance(one, Finished)] == ["would update"]
    assert fields(filled)["cacheControl"] == "no-store"
    assert change(filled).failed == 1  # without a setting, source and target are the same


async def test_the_async_functions_do_the_same(filled: Cloud) -> None:
    """`acp`, and `copy` for another class."""
    async with Storage(endpoint=filled.url) as storage:
        assert (await acp(storage, "gs://bkt/d/a", "gs://bkt/d/a", content_language="fr")).done == 1
        url = Url("bkt", "d/b")
        assert (await copy(storage, url, url, storage_class="COLDLINE")).storage_class == "COLDLINE"
    assert fields(filled)["contentLanguage"] == "fr"


@pytest.mark.parametrize(
    "options", [{"cache_control": "x"}, {"storage_class": "NEARLINE"}, {"cache_control": "no-store"}]
)
def test_a_precondition_holds_in_place(filled: Cloud, options: dict[str, Any]) -> None:
    """Another version than the named one is not changed, nor called right; with `no_clobber` nothing that exists is."""
    before, version = fields(filled), filled.store.object("bkt", "d/a").generation
    for dry_run in (True, False):
        for wrong in (0, version - 1):
            assert change(filled, generation=wrong, dry_run=dry_run, **options).failed == 1
        assert change(filled, no_clobber=True, dry_run=dry_run, **options).skipped == 1
        many = change(filled, "gs://bkt/d", "gs://bkt/", recursive=True, no_clobber=True, dry_run=dry_run, **options)
        assert many.skipped == 2
    assert fields(filled) == before
    assert change(filled, generation=version, **options).failed == 0
    assert (fields(filled) == before) == (options == {"cache_control": "no-store"})


@pytest.mark.parametrize("options", [{"cache_control": "x"}, {"storage_class": "NEARLINE"}])
def test_the_number_of_the_live_version_names_it(filled: Cloud, options: dict[str, Any]) -> None:
    """It is changed in place; an older version becomes the live one instead."""
    filled.store.bucket("bkt").fields["versioning"] = {"enabled": True}
    old = filled.store.object("bkt", "d/a").generation
    filled.store.put("bkt", "d/a", b"newer", FIELDS)
    live = filled.store.object("bkt", "d/a").generation
    assert change(filled, f"gs://bkt/d/a#{live}", "gs://bkt/d/a", **options).done == 1
    assert filled.store.object("bkt", "d/a").data == b"newer"
    assert (filled.store.object("bkt", "d/a").generation == live) == ("cache_control" in options)
    assert change(filled, f"gs://bkt/d/a#{old}", "gs://bkt/d/a", **options).done == 1
    assert filled.store.object("bkt", "d/a").data == b"d/a"


def test_a_folder_that_would_be_copied_below_itself_is_refused_with_a_cure(filled: Cloud) -> None:
    """The names are those of any copy, so settings in place need the folder above as the target."""
    [failure] = change(filled, "gs://bkt/d", "gs://bkt/d", recursive=True, cache_control="x").failures
    assert "name the folder above as the target" in (failure.hint or "")
    assert change(filled, "gs://bkt/*", "gs://bkt/", recursive=True, cache_control="x").done == 2
