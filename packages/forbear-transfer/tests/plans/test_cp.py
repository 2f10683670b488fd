"""The plan of a copy: which source goes to which target, by the rules of cp."""

import os
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.files import make
from forbear_transfer import Action, Item, Settings, Storage, Url, aplan, plan
from forbear_transfer.objects import Object
from forbear_transfer.plans import cp, targets
from forbear_transfer.plans.cp import refuse_clashes
from forbear_transfer.plans.matches import Match
from forbear_transfer.plans.targets import CopyTarget


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with some files."""
    monkeypatch.chdir(tmp_path)
    make(tmp_path, "a.txt", "b.txt", "dir/a", "dir/sub/b", "other/a")
    return tmp_path


@pytest.fixture
def filled(cloud: Cloud) -> Cloud:
    """A bucket with some objects."""
    for name in ("a.txt", "b.txt", "dir/a", "dir/sub/b", "dir/sub/c.txt", "there/x", "solo"):
        cloud.store.put("bkt", name, name.encode())
    return cloud


def pairs(cloud: Cloud, sources: str | Sequence[str], target: str, **asked: bool | str) -> list[str]:
    """Return the planned items as text."""
    items = plan(sources, target, settings=Settings(endpoint=cloud.url), **asked)  # type: ignore[arg-type]
    return sorted(
        f"{item.source} -> {item.target}" if item.action is Action.COPY else f"{item.source}: {item.note}"
        for item in items
    )


@pytest.mark.parametrize(
    ("sources", "target", "planned"),
    [
        ("a.txt", "gs://bkt", ["a.txt -> gs://bkt/a.txt"]),
        ("a.txt", "gs://bkt/", ["a.txt -> gs://bkt/a.txt"]),
        ("a.txt", "gs://bkt/x/", ["a.txt -> gs://bkt/x/a.txt"]),
        ("a.txt", "gs://bkt/x", ["a.txt -> gs://bkt/x"]),
        ("a.txt", "gs://bkt/there", ["a.txt -> gs://bkt/there"]),
        ("dir/a", "gs://bkt/x/", ["dir/a -> gs://bkt/x/a"]),
        (["a.txt", "dir/a"], "gs://bkt/there", ["a.txt -> gs://bkt/there/a.txt", "dir/a -> gs://bkt/there/a"]),
        ("*.txt", "gs://bkt/x/", ["a.txt -> gs://bkt/x/a.txt", "b.txt -> gs://bkt/x/b.txt"]),
        ("dir", "gs://bkt", ["dir: it is a folder"]),
        ("*", "gs://bkt", [
            "a.txt -> gs://bkt/a.txt", "b.txt -> gs://bkt/b.txt", "dir: it is a folder", "other: it is a folder",
        ]),
        ("nix", "gs://bkt", ["nix: nix does not exist"]),
        ("nix*", "gs://bkt", ["nix*: nothing matches nix*"]),
        ("-", "gs://bkt/x", ["- -> gs://bkt/x"]),
        ("gs://bkt/a.txt", "new", ["gs://bkt/a.txt -> new"]),
        ("gs://bkt/a.txt", "dir", ["gs://bkt/a.txt -> dir/a.txt"]),
        ("gs://bkt/a.txt", "new/", ["gs://bkt/a.txt -> new/a.txt"]),
        ("gs://bkt/a.txt", "a.txt", ["gs://bkt/a.txt -> a.txt"]),
        ("gs://bkt/a.txt", "-", ["gs://bkt/a.txt -> -"]),
        ("gs://bkt/a.txt#7", "new/", ["gs://bkt/a.txt#7 -> new/a.txt"]),
        ("gs://bkt/*.txt", "dir", ["gs://bkt/a.txt -> dir/a.txt", "gs://bkt/b.txt -> dir/b.txt"]),
        ("gs://bkt/dir/*", "dir", ["gs://bkt/dir/a -> dir/a", "gs://bkt/dir/sub/: it is a folder"]),
        ("gs://bkt/*/sub/?", "dir", ["gs://bkt/dir/sub/b -> dir/b"]),
        ("gs://bkt/dir/**", "dir", [
            "gs://bkt/dir/a -> dir/a", "gs://bkt/dir/sub/b -> dir/b", "gs://bkt/dir/sub/c.txt -> dir/c.txt",
        ]),
        ("gs://bkt/dir/", "dir", ["gs://bkt/dir/: it is a folder"]),
        ("gs://bkt/a.txt", "gs://bkt/x/", ["gs://bkt/a.txt -> gs://bkt/x/a.txt"]),
        ("gs://bkt/*.txt", "gs://bkt/x/", ["gs://bkt/a.txt -> gs://bkt/x/a.txt", "gs://bkt/b.txt -> gs://bkt/x/b.txt"]),
        ("gs://bkt/*.txt", "gs://bkt", [
            "gs://bkt/a.txt: source and target are the same", "gs://bkt/b.txt: source and target are the same",
        ]),
    ],
)  # fmt: skip
def test_files_go_where_cp_puts_them(
    sources: str | list[str], target: str, planned: list[str], here: Path, filled: Cloud
) -> None:
    """A file goes into a folder, and otherwise to the very name; patterns and several sources need a folder."""
    assert pairs(filled, sources, target) == planned


@pytest.mark.parametrize(
    ("sources", "target", "planned"),
    [
        ("dir", "gs://bkt", ["dir/a -> gs://bkt/dir/a", "dir/sub/b -> gs://bkt/dir/sub/b"]),
        ("dir/", "gs://bkt/x/", ["dir/a -> gs://bkt/x/dir/a", "dir/sub/b -> gs://bkt/x/dir/sub/b"]),
        ("dir", "gs://bkt/x", ["dir/a -> gs://bkt/x/a", "dir/sub/b -> gs://bkt/x/sub/b"]),
        ("dir", "gs://bkt/there", ["dir/a -> gs://bkt/there/dir/a", "dir/sub/b -> gs://bkt/there/dir/sub/b"]),
        ("dir/.", "gs://bkt/x/", ["dir/./a -> gs://bkt/x/a", "dir/./sub/b -> gs://bkt/x/sub/b"]),
        ("a.txt", "gs://bkt/x", ["a.txt -> gs://bkt/x"]),
        (["a.txt", "dir"], "gs://bkt/x/", [
            "a.txt -> gs://bkt/x/a.txt", "dir/a -> gs://bkt/x/dir/a", "dir/sub/b -> gs://bkt/x/dir/sub/b",
        ]),
        ("gs://bkt/dir/sub", "new", ["gs://bkt/dir/sub/b -> new/b", "gs://bkt/dir/sub/c.txt -> new/c.txt"]),
        ("gs://bkt/dir/sub", "new/", [
            "gs://bkt/dir/sub/b -> new/sub/b", "gs://bkt/dir/sub/c.txt -> new/sub/c.txt",
        ]),
        ("gs://bkt/dir/sub/", "dir", ["gs://bkt/dir/sub/b -> dir/sub/b", "gs://bkt/dir/sub/c.txt -> dir/sub/c.txt"]),
        ("gs://bkt/solo", "new", ["gs://bkt/solo -> new"]),
        ("gs://bkt/nix", "new", ["gs://bkt/nix: gs://bkt/nix does not exist"]),
        ("gs://bkt/d*", "new/", [
            "gs://bkt/dir/a -> new/dir/a", "gs://bkt/dir/sub/b -> new/dir/sub/b",
            "gs://bkt/dir/sub/c.txt -> new/dir/sub/c.txt",
        ]),
        ("gs://bkt/dir/*/", "new/", ["gs://bkt/dir/sub/b -> new/sub/b", "gs://bkt/dir/sub/c.txt -> new/sub/c.txt"]),
        ("gs://bkt/there", "gs://bkt/x", ["gs://bkt/there/x -> gs://bkt/x/x"]),
        ("gs://bkt/there", "gs://bkt/dir", ["gs://bkt/there/x -> gs://bkt/dir/there/x"]),
        ("gs://bkt/there", "gs://bkt/there/y/", [
            "gs://bkt/there/: cannot copy gs://bkt/there/ into itself",
        ]),
        ("gs://bkt/there", "gs://bkt/", ["gs://bkt/there/: cannot copy gs://bkt/there/ into itself"]),
    ],
)  # fmt: skip
def test_folders_keep_their_names_below_what_is_a_folder_already(
    sources: str | list[str], target: str, planned: list[str], here: Path, filled: Cloud
) -> None:
    """As with `cp -r`: below an existing folder by its name, otherwise its contents right below the target."""
    assert pairs(filled, sources, target, recursive=True) == planned


def test_a_whole_bucket_goes_by_its_name(here: Path, filled: Cloud) -> None:
    """The bucket is a folder like others."""
    assert "gs://bkt/dir/a -> new/bkt/dir/a" in pairs(filled, "gs://bkt", "new/", recursive=True)
    assert "gs://bkt/dir/a -> new/dir/a" in pairs(filled, "gs://bkt", "new", recursive=True)


def test_what_is_excluded_is_not_in_the_plan(here: Path, filled: Cloud) -> None:
    """The expression is matched from the beginning of the name below the folder."""
    assert pairs(filled, "dir", "gs://bkt/x", recursive=True, exclude="sub") == ["dir/a -> gs://bkt/x/a"]
    assert pairs(filled, "gs://bkt/dir", "x", recursive=True, exclude=".*b$|a") == [
        "gs://bkt/dir/sub/c.txt -> x/sub/c.txt"
    ]
    assert pairs(filled, "*.txt", "gs://bkt", exclude="a") == ["b.txt -> gs://bkt/b.txt"]


def test_names_with_wildcards_in_them_can_be_named(here: Path, cloud: Cloud) -> None:
    """A pattern that matches nothing else is a name, here and in the cloud."""
    make(here, "x[1]", "y*")
    cloud.store.put("bkt", "x[1]", b"")
    assert pairs(cloud, "x[1]", "gs://bkt/z") == ["x[1] -> gs://bkt/z"]
    assert pairs(cloud, "y*", "gs://bkt/z") == ["y* -> gs://bkt/z"]
    assert pairs(cloud, "gs://bkt/x[1]", "dir") == ["'gs://bkt/x[[]1]' -> dir/x[1]"]


ODD = ["a b", "a%2Fb", "a#1", "a?b", "a+b&c=d", "ä/漢", "..a", "a/.../b", "-x", "\x7f", "😀"]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_stay_what_they_are_both_ways(name: str, here: Path, cloud: Cloud) -> None:
    """Characters that are special in URLs, patterns or addresses are ordinary in names that are listed."""
    cloud.store.put("bkt", f"from/{name}", b"")
    make(here, f"odd/{name}")
    storage = Settings(endpoint=cloud.url)
    (down,) = plan("gs://bkt/from", "to", recursive=True, settings=storage)
    (up,) = plan("odd", "gs://bkt/up", recursive=True, settings=storage)
    assert down.target == os.path.join("to", name)  # noqa: PTH118
    assert not isinstance(up.target, str)
    assert (up.target.name, up.target.generation) == (f"up/{name}", None)


def test_objects_that_can_be_no_file_are_refused_one_by_one(here: Path, cloud: Cloud) -> None:
    """A name that leads out of the target, is empty, or lies below another object is refused; others are planned."""
    for name in ("../up", "a//b", "/abs", "./x", "ok", "f", "f/below", "f-", "folder/", ""):
        cloud.store.put("bkt", f"d/{name}", b"x")
    items = plan("gs://bkt/d", "new", recursive=True, settings=Settings(endpoint=cloud.url))
    refused = {
        str(item.source).removeprefix("gs://bkt/d/"): item.note for item in items if item.action is Action.REFUSE
    }
    assert set(refused) == {"../up", "a//b", "/abs", "./x", "f/below"}
    assert refused["f/below"] == "'f' is an object, too, and its file cannot be a folder as well"
    assert {item.target for item in items if item.action is Action.COPY} == {"new/ok", "new/f", "new/f-"}
    assert {str(item.source): item.note for item in items if item.action is Action.SKIP} == {
        "gs://bkt/d/": "it stands for a folder",
        "gs://bkt/d/folder/": "it stands for a folder",
    }


def test_within_the_cloud_every_name_goes(cloud: Cloud) -> None:
    """Names that no file can have are names of objects all the same."""
    names = ["../up", "a//b", "/abs", "f", "f/below", "folder/"]
    for name in names:
        cloud.store.put("bkt", f"d/{name}", b"x")
    items = plan("gs://bkt/d", "gs://bkt/e", recursive=True, settings=Settings(endpoint=cloud.url))
    assert {item.action for item in items} == {Action.COPY}
    assert {str(item.target) for item in items} == {f"gs://bkt/e/{name}" for name in names}


def test_files_that_can_be_no_object_are_refused_one_by_one(here: Path, cloud: Cloud) -> None:
    """A line end or bytes that are no text in a name: each says why, the others go."""
    make(here, "odd/a\nb", "odd/ok")
    (here / "odd" / os.fsdecode(b"\xff")).write_bytes(b"")
    items = plan("odd", "gs://bkt/x", recursive=True, settings=Settings(endpoint=cloud.url))
    assert [(item.source, item.action) for item in items if item.action is not Action.COPY] == [
        ("odd/a\nb", Action.REFUSE),
        (os.fsdecode(b"odd/\xff"), Action.REFUSE),
    ]


def test_two_sources_with_one_target_are_refused_before_anything_is_done(here: Path, filled: Cloud) -> None:
    """Files, folders or matches of a pattern with one target are refused, as one would replace the other."""
    for sources in (["dir/a", "other/a"], "*/a", ["dir/a", "dir/../other/a"], "**"):
        with pytest.raises(ValueError, match=r"would have the same target, .(a|b\.txt)"):
            pairs(filled, sources, "gs://bkt/x/")
    with pytest.raises(ValueError, match="would have the same target, 'dir'"):
        pairs(filled, ["dir", "./dir"], "gs://bkt/x/", recursive=True)
    with pytest.raises(ValueError, match=r"the contents of \. must be copied by themselves"):
        pairs(filled, [".", "dir"], "gs://bkt/x/", recursive=True)


async def test_matches_that_wait_for_the_end_of_a_listing_wait_on_disk(tmp_path: Path) -> None:
    """Memory holds a digest of each name, however much a listing says of its object."""
    metadata = {"key": "x" * 500}

    async def found() -> AsyncGenerator[Match]:
        for number in range(4_000):
            name = f"folder/{number:08}"
            listed = Object("bkt", name, 1, 1, metadata=dict(metadata, number=str(number)))
            yield Match(Url("bkt", name), str(number), object=listed)

    tracemalloc.start()
    try:
        names = [match.name async for match in refuse_clashes(found(), CopyTarget(str(tmp_path), folder=True))]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert names == [str(number) for number in range(4_000)]
    assert peak < 3_500_000


@pytest.mark.parametrize("target", ["gs://bkt/solo", "gs://bkt/"])
def test_an_object_is_not_copied_onto_itself(filled: Cloud, target: str) -> None:
    """By its own name or into its own folder: either is refused."""
    assert pairs(filled, "gs://bkt/solo", target) == ["gs://bkt/solo: source and target are the same"]


@pytest.mark.parametrize(
    ("sources", "target", "says"),
    [
        (
            "a.txt",
            "b.txt",
            "must begin with gs://, got a.txt and b.txt; on this machine alone, use the cp of the system",
        ),
        ([], "gs://bkt", "`sources` must name at least one"),
        (["a.txt", ""], "gs://bkt", "none may be empty"),
        ("a.txt", "", "`target` must name"),
        (
            ["a.txt", "b.txt"],
            "gs://bkt/x",
            "folder for several sources, got gs://bkt/x; gs://bkt/x/ would name one",
        ),
        ("gs://bkt/*", "new", "`target` must be a folder for several sources, got new; new/ would name one"),
        ("gs://bkt/*", "a.txt", "`target` must be a folder"),
        ("-", "gs://bkt/", "`target` must name the object"),
        (["-", "a.txt"], "gs://bkt/", "must be the only source"),
        ("gs://bkt/*", "-", "takes a single object"),
        ("gs://bkt/*#7", "new/", "`sources` must be an object if it has a generation"),
        ("gs://B*/x", "new", "an address must name a bucket"),
        ("gs://", "new", "an address must name a bucket"),
    ],
)
def test_what_makes_no_sense_is_refused_as_a_whole(
    sources: str | list[str], target: str, says: str, here: Path, cloud: Cloud
) -> None:
    """Each error names the parameter and the cure."""
    with pytest.raises(ValueError, match=says.replace("*", r"\*")):
        pairs(cloud, sources, target)


def test_a_bad_expression_is_refused(cloud: Cloud) -> None:
    """The error says what is wrong with it."""
    with pytest.raises(ValueError, match="`exclude` must be a regular expression, got '\\('"):
        pairs(cloud, "gs://bkt/x", "new", exclude="(")


def test_a_listing_that_fails_stops_no_other_source(here: Path, filled: Cloud) -> None:
    """The items of other sources are planned although one listing fails."""
    planned = pairs(filled, ["gs://nowhere/*", "gs://bkt/*.txt"], "dir")
    assert planned[:2] == ["gs://bkt/a.txt -> dir/a.txt", "gs://bkt/b.txt -> dir/b.txt"]
    assert planned[2].startswith("gs://nowhere/*: list gs://nowhere/: 404 Not Found")


def test_listings_are_retried(here: Path, filled: Cloud) -> None:
    """A server that is busy for a while does not change the plan."""
    filled.fault(Fault.status(503, operation="storage.objects.list", times=3))
    with virtual_time():
        assert pairs(filled, "gs://bkt/*.txt", "dir") == ["gs://bkt/a.txt -> dir/a.txt", "gs://bkt/b.txt -> dir/b.txt"]


def test_where_capitals_do_not_count_the_second_name_is_refused(
    here: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On such a disk the second file would replace the first."""
    for name in ("d/Name", "d/name", "d/other"):
        cloud.store.put("bkt", name, b"x")

    def blind(_folder: str) -> bool:
        return True

    monkeypatch.setattr(targets, "is_case_blind", blind)
    assert pairs(cloud, "gs://bkt/d", "new", recursive=True) == [
        "gs://bkt/d/Name -> new/Name",
        "gs://bkt/d/name: its file would be that of 'Name': this disk ignores upper and lower case",
        "gs://bkt/d/other -> new/other",
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps both")
@pytest.mark.parametrize("second", ["cafe\N{COMBINING ACUTE ACCENT}", "CAFE\N{COMBINING ACUTE ACCENT}"])
def test_where_accents_do_not_count_the_second_name_is_refused(
    second: str, here: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Disks of macOS ignore case, and whether an accent is a part of its letter."""
    first = "caf\N{LATIN SMALL LETTER E WITH ACUTE}"
    for name in (first, second):
        cloud.store.put("bkt", f"d/{name}", b"x")
        cloud.store.put("bkt", f"{name}/x/y", b"x")

    def blind(_folder: str) -> bool:
        return True

    monkeypatch.setattr(targets, "is_case_blind", blind)
    monkeypatch.setattr(cp, "is_case_blind", blind)
    clash = f"its file would be that of {second!r}: this disk ignores how accents are encoded"
    assert [one.endswith(clash) for one in pairs(cloud, "gs://bkt/d", "new", recursive=True)] == [False, True]
    with pytest.raises(ValueError, match="would have the same target"):
        pairs(cloud, [f"gs://bkt/{first}", f"gs://bkt/{second}"], "dir", recursive=True)


def test_disks_are_asked_whether_capitals_count(tmp_path: Path) -> None:
    """The folder of the tests is on one where they do, or /tmp is the same as /TMP."""
    blind = (tmp_path.parent / tmp_path.name.upper()).exists()
    assert targets.is_case_blind(str(tmp_path / "not" / "there")) is blind


def test_a_plan_costs_no_request_that_it_does_not_need(here: Path, filled: Cloud) -> None:
    """An object that is named is not asked for beforehand, and a file needs no look at the target."""
    pairs(filled, "gs://bkt/a.txt", "new")
    pairs(filled, ["a.txt"], "gs://bkt/x")
    pairs(filled, ["a.txt", "b.txt"], "gs://bkt/x/")
    assert len(filled.requests) == 0
    pairs(filled, "gs://bkt/*.txt", "dir")
    assert len(filled.requests) == 2  # a look at an object of that name, and the listing


async def test_items_come_while_the_listing_goes_on(here: Path, cloud: Cloud) -> None:
    """The first item is there before the second page was asked for."""
    from forbear_transfer.plans.arguments import PlanOptions, make_copy_plan

    for number in range(1500):
        cloud.store.put("bkt", f"d/{number:04}", b"")
    async with Storage(endpoint=cloud.url) as storage:
        options: PlanOptions = {"recursive": True, "no_clobber": True, "exclude": None}
        made = make_copy_plan("plan", PlanOptions, "gs://bkt/d", "new", options)
        items = made.items(storage, await made.find_target(storage))
        first: Item = await anext(items)
        before = len(cloud.requests)
        rest = [item async for item in items]
    assert first.no_clobber
    assert len(rest) == 1499
    assert len(cloud.requests) == before + 1


async def test_inside_an_event_loop_the_blocking_form_says_what_to_do(cloud: Cloud) -> None:
    """It would stop all else."""
    with pytest.raises(RuntimeError, match="await `aplan` instead"):
        plan("gs://bkt/x", "new")
    async with Storage(endpoint=cloud.url) as storage:
        assert len(await aplan(storage, "gs://bkt/x", "new")) == 1


def test_each_match_here_is_looked_at_once(here: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look is a call of the system, and there may be a million files; a link is looked at, and where it leads."""
    make(here, "d/a", "d/b")
    (here / "d/link").symlink_to("a")
    looks: list[str] = []

    def count(plain: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def look(path: str, **options: bool) -> os.stat_result:
            looks.append(path)
            return plain(path, **options)

        return look

    monkeypatch.setattr(os, "stat", count(os.stat))
    monkeypatch.setattr(os, "lstat", count(os.lstat))
    items = plan("d/*", "gs://bkt/", settings=Settings(endpoint=cloud.url), links="follow")
    assert [item.source for item in items] == ["d/a", "d/b", "d/link"]
    assert [path for path in looks if path in {"d/a", "d/b", "d/link"}] == ["d/a", "d/b", "d/link", "d/link"]
