"""Items whose targets are sources of others: they wait. Any such command is in test_order_random.py."""

from collections.abc import AsyncGenerator, Mapping
from itertools import pairwise

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_transfer import Finished, Item, Settings, Summary, TransferEvent, Url, cp, mv, plan
from forbear_transfer.commands.moving import MvOptions
from forbear_transfer.plans.arguments import make_copy_plan
from forbear_transfer.plans.order import OrderedItems
from forbear_transfer.plans.targets import CopyTarget

COPY = "storage.objects.rewrite"
Contents = dict[str, bytes]


def contents(cloud: Cloud) -> Contents:
    """Return all objects by name."""
    return {one.name: bytes(one.content) for one in cloud.store.bucket("bkt").versions()}


def put(cloud: Cloud, names: Mapping[str, bytes] | tuple[str, ...]) -> None:
    """Store objects; without contents, each holds its name."""
    for name in names:
        cloud.store.put("bkt", name, names[name] if isinstance(names, Mapping) else name.encode())


def run(cloud: Cloud, *sources: str, target: str, moves: bool) -> Summary:
    """Move or copy folders and patterns within the bucket, in virtual time."""
    names = [f"gs://bkt/{source}" for source in sources]
    with virtual_time(seed=1):
        return (mv if moves else cp)(names, f"gs://bkt/{target}", recursive=True, settings=Settings(endpoint=cloud.url))


@pytest.mark.parametrize("moves", [True, False], ids=["mv", "cp"])
@pytest.mark.parametrize("slow", range(1, 5))
def test_an_item_waits_for_the_reader_of_its_target(cloud: Cloud, moves: bool, slow: int) -> None:
    """Whichever request is slow, no object is replaced before it was read."""
    put(cloud, ("x/y/z/1", "x/y/z/2", "y/z/1", "y/z/2"))
    cloud.fault(Fault.delay(0.05, operation=COPY, nth=slow))
    assert run(cloud, "x/y", "y/z", target="", moves=moves).done == 4
    after = {"y/z/1": b"x/y/z/1", "y/z/2": b"x/y/z/2", "z/1": b"y/z/1", "z/2": b"y/z/2"}
    before = {} if moves else {"x/y/z/1": b"x/y/z/1", "x/y/z/2": b"x/y/z/2"}
    assert contents(cloud) == after | before


def test_chains_have_as_many_rounds_as_links(cloud: Cloud) -> None:
    """A folder that is nested into itself several times moves up by one level, each level before the one below it."""
    put(cloud, tuple(f"{'a/' * depth}f" for depth in range(2, 6)))
    assert run(cloud, "a/*", target="", moves=True).done == 4
    assert contents(cloud) == {f"{'a/' * (depth - 1)}f": f"{'a/' * depth}f".encode() for depth in range(2, 6)}


def test_a_copied_chain_of_any_length(cloud: Cloud) -> None:
    """Each copy replaces what the one before it has copied; the same command again replaces nothing."""
    names = ("x/y/z/w/v/1", "y/z/w/v/1", "z/w/v/1", "w/v/1")
    sources = ("x/y", "y/z", "z/w", "w/v")
    put(cloud, names)
    assert run(cloud, *sources, target="", moves=False).done == 4
    after = {target: source.encode() for source, target in pairwise((names[0], *names, "v/1"))}
    assert contents(cloud) == after
    assert run(cloud, *sources, target="", moves=False).failed == 4
    assert contents(cloud) == after


async def test_circles_are_refused() -> None:
    """Items that would replace each other's sources have no order; the error names the sources, at most five."""

    def item(source: str, target: str) -> Item:
        return Item(Url("bkt", source), Url("bkt", target))

    async def circle(size: int) -> AsyncGenerator[Item]:
        yield item("before", "0")
        for number in range(size):
            yield item(str(number), str((number + 1) % size))

    with OrderedItems() as two, pytest.raises(ValueError, match=r": gs://bkt/0, gs://bkt/1; name a target"):
        await two.fill(circle(2))
    with OrderedItems() as seven, pytest.raises(ValueError, match=r"gs://bkt/0, .*gs://bkt/4, 2 more; name a target"):
        await seven.fill(circle(7))


def test_a_source_moves_to_one_place(cloud: Cloud) -> None:
    """An object that two sources name would have two targets."""
    put(cloud, ("x/y/1",))
    with pytest.raises(ValueError, match=r"would move to gs://bkt/t/x/y/1 and to gs://bkt/t/y/1; leave one"):
        run(cloud, "x", "x/y", target="t/", moves=True)
    assert contents(cloud) == {"x/y/1": b"x/y/1"}


@pytest.mark.parametrize("moves", [True, False], ids=["mv", "cp"])
def test_what_waits_for_a_failure_is_not_done(cloud: Cloud, moves: bool) -> None:
    """If an object could not be read, nothing replaces it; the same command does the rest later."""
    put(cloud, ("x/y/z/1", "y/z/1"))
    cloud.fault(Fault.status(403, operation=COPY, nth=1))
    summary = run(cloud, "x/y", "y/z", target="", moves=moves)
    assert [one.error for one in summary.failures if "it waits for others" in (one.error or "")]
    assert contents(cloud) == {"x/y/z/1": b"x/y/z/1", "y/z/1": b"y/z/1"}
    assert run(cloud, "x/y", "y/z", target="", moves=moves).ok
    assert contents(cloud)["z/1"] == b"y/z/1"
    assert contents(cloud)["y/z/1"] == b"x/y/z/1"


@pytest.mark.parametrize("moves", [True, False], ids=["mv", "cp"])
def test_a_source_that_cannot_be_copied_is_not_replaced(cloud: Cloud, moves: bool) -> None:
    """The folder b/a would be copied into itself. So nothing is done: another item would replace an object in it."""
    put(cloud, ("b/1", "b/a/b/1"))
    summary = run(cloud, "b/*", target="b/a/b/", moves=moves)
    assert (summary.done, summary.failed) == (0, 2)
    assert contents(cloud) == {"b/1": b"b/1", "b/a/b/1": b"b/a/b/1"}


def test_a_source_that_is_gone_holds_up_nothing(cloud: Cloud) -> None:
    """After a run that was killed when it had moved one source, the same command moves the other."""
    put(cloud, ("x/y/z/1", "z/1"))
    assert run(cloud, "x/y", "y/z", target="", moves=True).done == 1
    assert contents(cloud) == {"y/z/1": b"x/y/z/1", "z/1": b"z/1"}


@pytest.mark.parametrize("moves", [True, False], ids=["mv", "cp"])
def test_the_same_command_again_replaces_no_only_copy(cloud: Cloud, moves: bool) -> None:
    """After the first run, z/1 is all that is left of what was y/z/1; what lies there now does not replace it."""
    put(cloud, ("x/y/z/1", "y/z/1"))
    assert run(cloud, "x/y", "y/z", target="", moves=moves).ok
    before = contents(cloud)
    assert run(cloud, "x/y", "y/z", target="", moves=moves).failed
    assert contents(cloud) == before


def test_a_dry_run_lists_them_in_order(cloud: Cloud) -> None:
    """It says what would be done, in the order in which it would be."""
    put(cloud, ("x/y/z/1", "y/z/1"))
    events: list[TransferEvent] = []
    names, connection = ["gs://bkt/x/y", "gs://bkt/y/z"], Settings(endpoint=cloud.url)
    assert mv(names, "gs://bkt/", settings=connection, on_event=events.append, recursive=True, dry_run=True).ok
    assert [str(one.outcome.item.source) for one in events if isinstance(one, Finished)] == [
        "gs://bkt/y/z/1",
        "gs://bkt/x/y/z/1",
    ]


def test_items_for_any_order_must_not_depend_on_it(cloud: Cloud) -> None:
    """`plan` returns items that can be executed in any order, or none."""
    put(cloud, ("x/y/z/1", "y/z/1"))
    with pytest.raises(ValueError, match=r"their order counts; use `cp`"):
        plan(["gs://bkt/x/y", "gs://bkt/y/z"], "gs://bkt/", recursive=True, settings=Settings(endpoint=cloud.url))
    assert len(plan("gs://bkt/x/y/*", "gs://bkt/x/", recursive=True, settings=Settings(endpoint=cloud.url))) == 1


@pytest.mark.parametrize(
    ("sources", "target", "overlaps"),
    [
        (["photos"], "photos-copy/", False),
        (["photos/*"], "copy/", False),
        (["x/y"], "", False),
        (["x/y", "y/z"], "", True),
        (["x/y", "y/z"], "t/", False),
        (["a/a/*"], "a/", True),
        (["photos*"], "photos-copy/", True),
        (["x", "x/y"], "t/", True),
    ],
)
async def test_only_plans_that_may_overlap_are_complete_before_the_first_write(
    sources: list[str], target: str, overlaps: bool
) -> None:
    """All others stream, such as a copy of a folder to one whose name begins alike."""
    names = [f"gs://bkt/{source}" for source in sources]
    made = make_copy_plan("mv", MvOptions, names, f"gs://bkt/{target}", {"recursive": True}, moves=True)
    assert made.may_overlap(CopyTarget(Url("bkt", target), folder=True)) is overlaps
