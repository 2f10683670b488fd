"""Symbolic links below sources: followed or left out, and never followed out of their folder in silence."""

from pathlib import Path
from typing import Any

import pytest

from forbear_cloud import Cloud
from forbear_testkit.transfer.files import contents, make, moved, synced
from forbear_transfer import Settings, Summary, TransferEvent, cp, rsync
from forbear_transfer.plans.filters import LinkRule
from forbear_transfer.progress import Finished, Warned

PLAIN = ["tree/a", "tree/sub/b"]
LINKED = ["tree/away/secret", "tree/escape", "tree/inside/b", "tree/near"]
SOURCES = {"a folder": ("tree", "gs://bkt/"), "a pattern": ("tree/*", "gs://bkt/tree/")}


@pytest.fixture
def linked(here: Path) -> Path:
    """Return a folder that has links to files and folders, in it and out of it."""
    make(here, "tree/a", "tree/sub/b", "elsewhere/secret")
    for name, to in (("inside", "sub"), ("near", "a"), ("away", "../elsewhere"), ("escape", "../elsewhere/secret")):
        (here / "tree" / name).symlink_to(to)
    return here


def run(cloud: Cloud, how: str, rule: LinkRule | None) -> tuple[Summary, list[str]]:
    """Copy the folder, and return the summary and the texts of the warnings."""
    events: list[TransferEvent] = []
    options: dict[str, Any] = {"recursive": True, "links": rule, "on_event": events.append}
    if how == "rsync":
        done = rsync("tree", "gs://bkt/tree", settings=Settings(endpoint=cloud.url), **options)
    else:
        done = cp(*SOURCES[how], settings=Settings(endpoint=cloud.url), **options)
    return done, [event.text for event in events if isinstance(event, Warned)]


@pytest.mark.parametrize("how", ["rsync", *SOURCES])
def test_links_are_followed_or_left_out(linked: Path, cloud: Cloud, how: str) -> None:
    """By default they are followed, with one warning of the first that leads out of its folder."""
    done, warnings = run(cloud, how, "skip")
    assert (sorted(contents(cloud)), done.skipped, done.failed, warnings) == (PLAIN, 4, 0, [])
    done, (warning,) = run(cloud, how, None)
    assert (sorted(contents(cloud)), done.failed) == (sorted(PLAIN + LINKED), 0)
    assert warning.startswith("tree/away is a symbolic link out of tree, to ") or "tree/escape" in warning
    assert warning.endswith("; to leave links out or to follow them without this warning, use `links`")
    done, warnings = run(cloud, how, "follow")
    assert (done.failed, warnings) == (0, [])


@pytest.mark.parametrize(("pattern", "found"), [("tree/**", ["a", "b"]), ("tree/*/[bs]*", ["b"])])
def test_a_pattern_does_not_lead_through_links(linked: Path, cloud: Cloud, pattern: str, found: list[str]) -> None:
    """A folder behind a link is no part of it then, also where the pattern goes on."""
    cp(pattern, "gs://bkt/", links="skip", settings=Settings(endpoint=cloud.url))
    assert sorted(contents(cloud)) == found
    (linked / "tree" / "inside").unlink()
    with pytest.warns(RuntimeWarning, match="a symbolic link out of tree"):
        cp(pattern, "gs://bkt/", settings=Settings(endpoint=cloud.url))
    assert "secret" in contents(cloud)


def test_a_link_that_the_user_names_is_followed(linked: Path, cloud: Cloud) -> None:
    """It is the source itself, and not below it; so is a folder that is reached by a link."""
    assert cp("tree/escape", "gs://bkt/x/", links="skip", settings=Settings(endpoint=cloud.url)).done == 1
    assert cp("tree/away", "gs://bkt/x/", recursive=True, settings=Settings(endpoint=cloud.url)).done == 1
    assert sorted(contents(cloud)) == ["x/away/secret", "x/escape"]


def test_rsync_deletes_nothing_for_a_link_that_is_left_out(linked: Path, cloud: Cloud) -> None:
    """A copy made through the link of a file stays; those below the link of a folder are named, and stay.

    All else is deleted, and the next run has nothing to do.
    """
    assert synced(cloud, "tree", "gs://bkt/tree", links="follow").done == 6
    cloud.store.put("bkt", "tree/extra", b"")
    for deleted in (1, 0):
        events: list[TransferEvent] = []
        left = synced(cloud, "tree", "gs://bkt/tree", links="skip", delete=True, on_event=events.append)
        assert moved(left) == (deleted, deleted, 6, 0)
        notes = [str(one.outcome.error) for one in events if isinstance(one, Finished)]
        assert sorted(note for note in notes if "are kept" in note) == [
            f"it is a symbolic link, which is left out; 1 at the target, below gs://bkt/tree/{name}, are kept"
            for name in ("away", "inside")
        ]
        assert sorted(contents(cloud)) == sorted(PLAIN + LINKED)
    for name in ("inside", "away"):
        (linked / "tree" / name).unlink()
    assert moved(synced(cloud, "tree", "gs://bkt/tree", links="skip", delete=True)) == (2, 2, 2, 0)
    assert sorted(contents(cloud)) == ["tree/a", "tree/escape", "tree/near", "tree/sub/b"]


@pytest.mark.parametrize(
    ("rule", "source", "text"),
    [
        ("store", ".", "`links` must be 'follow', 'skip' or None, got 'store'"),
        ("skip", "gs://bkt/x", "`links` is for folders on this machine, and no source is one; leave it out"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rule: Any, source: str, text: str) -> None:
    """Before anything is read."""
    for function in (cp, rsync):
        with pytest.raises(ValueError, match=text):
            function(source, "gs://bkt/y", recursive=True, links=rule)
