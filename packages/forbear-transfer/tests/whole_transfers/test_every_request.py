"""A fault or a kill at every request of a command: nothing is lost, and the same command again does the rest."""

import contextlib
import gzip
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault, RandomFaults
from forbear_cloud.faults.actions import When
from forbear_cloud.faults.parameters import check_match
from forbear_cloud.http.messages import HttpRequest
from forbear_testkit.transfer.campaign.trial import settle
from forbear_testkit.transfer.files import contents, files
from forbear_transfer import Settings, Summary, TransferError, cp, mv, rm, rsync
from forbear_transfer.downloads.target import is_part

Place = dict[str, bytes]
FAULTS: dict[str, Callable[[int], Fault]] = {
    "refused": lambda number: Fault.status(403, nth=number),
    "lost before": lambda number: Fault.reset(nth=number),
    "lost after": lambda number: Fault.reset(when="after", nth=number),
    "an error, though it was done": lambda number: Fault.status(503, when="after", nth=number),
}


class Command(NamedTuple):
    """A command over objects and the files in "t", and both as they are in the end."""

    objects: Place
    files: Place
    run: Callable[..., Summary]
    objects_after: Place
    files_after: Place


def texts(*names: str) -> Place:
    """Return contents that say their names."""
    return {name: name.encode() for name in names}


OVERLAPPING = texts("x/y/z/1", "x/y/z/2", "y/z/1", "y/z/2", "beside")
MOVED = {"y/z/1": b"x/y/z/1", "y/z/2": b"x/y/z/2", "z/1": b"y/z/1", "z/2": b"y/z/2", "beside": b"beside"}
ODD = texts("a?", "ab", "a[?]c")
PACKED = {"s/z": gzip.compress(b"text"), "s/x/1": b"1", "s/y": b"2"}
OLD = {"x": b"old", "y/1": b"old", "z": b"other"}
OVERLAP = "mv of overlapping sets"
COMMANDS: dict[str, Command] = {
    OVERLAP: Command(
        OVERLAPPING,
        {},
        partial(mv, ["gs://bkt/x/y", "gs://bkt/y/z"], "gs://bkt/", recursive=True),
        MOVED,
        {},
    ),
    "mv of a name": Command(
        ODD, {}, partial(mv, "gs://bkt/a?", "gs://bkt/to/", literal=True),
        {"to/a?": b"a?", "ab": b"ab", "a[?]c": b"a[?]c"}, {},
    ),
    "rm of a name": Command(
        ODD, {}, partial(rm, "gs://bkt/a[?]c", literal=True), texts("a?", "ab"), {}
    ),
    "rsync -d where folders take the place of files": Command(
        PACKED, OLD, partial(rsync, "gs://bkt/s", "t", recursive=True, delete=True),
        PACKED, {"x/1": b"1", "y": b"2", "z": b"text"},
    ),
    "cp with --verify-source": Command(
        {}, texts("1", "2/3"),
        partial(cp, "t", "gs://bkt/", recursive=True, verify_source=True),
        {"t/1": b"1", "t/2/3": b"2/3"}, texts("1", "2/3"),
    ),
    "cp with --preserve-posix, down": Command(
        texts("s/a", "s/b"), {"a": b"old"}, partial(cp, "gs://bkt/s/*", "t/", preserve_posix=True),
        texts("s/a", "s/b"), {"a": b"s/a", "b": b"s/b"},
    ),
    "rsync -d with --preserve-posix and --links, up": Command(
        texts("t/1", "t/old"), texts("1", "2/3"),
        partial(rsync, "t", "gs://bkt/t", recursive=True, delete=True, preserve_posix=True, links="skip"),
        {"t/1": b"1", "t/2/3": b"2/3"}, texts("1", "2/3"),
    ),
    "rm of all versions": Command(
        texts("a", "b", "c"), {}, partial(rm, ["gs://bkt/a", "gs://bkt/b"], all_versions=True), texts("c"), {}
    ),
    "another class": Command(
        texts("a", "b"), {},
        partial(cp, "gs://bkt/*", "gs://bkt/", storage_class="NEARLINE", cache_control="x"),
        texts("a", "b"), {},
    ),
    "other metadata": Command(
        texts("a", "b"), {}, partial(cp, "gs://bkt/*", "gs://bkt/", cache_control="x"),
        texts("a", "b"), {},
    ),
}  # fmt: skip


def prepare(cloud: Cloud, command: Command) -> None:
    """Make what is there before the command."""
    cloud.reset()
    cloud.clear_faults()
    cloud.store.create_bucket("bkt")
    for name, data in command.objects.items():
        packed = {"contentEncoding": "gzip"} if data.startswith(b"\x1f\x8b") else {}
        cloud.store.put("bkt", name, data, packed)
    shutil.rmtree("t", ignore_errors=True)
    for name, data in command.files.items():
        path = Path("t", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (1_600_000_000, 1_600_000_000))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.soak
def test_a_fault_at_every_request_loses_nothing(here: Path, cloud: Cloud, name: str, fault: str) -> None:
    """After the fault, each content is where it was or where it goes; after the next run, all is where it goes."""
    command, settings = COMMANDS[name], Settings(endpoint=cloud.url)
    prepare(cloud, command)
    with virtual_time(seed=1):
        assert command.run(settings=settings).ok
    count = len(cloud.requests)
    assert (contents(cloud), files(here / "t")) == (command.objects_after, command.files_after)
    kept = {*command.objects.values()} & {*command.objects_after.values()}
    for number in range(1, count + 1):
        prepare(cloud, command)
        cloud.fault(FAULTS[fault](number))
        with virtual_time(seed=1):
            with contextlib.suppress(TransferError):
                command.run(settings=settings)
            assert kept <= {*contents(cloud).values()}, number
            cloud.clear_faults()
            again = command.run(settings=settings)
        assert kept <= {*contents(cloud).values()}, number
        if name != OVERLAP:  # there, objects that have arrived at a source are moved or copied once more
            assert again.ok or "does not exist" in str(again.failures[0].error), (number, again.failures)
            assert (contents(cloud), files(here / "t")) == (command.objects_after, command.files_after), number


VICTIM = "import pickle, sys; pickle.load(sys.stdin.buffer)()"
LONGEST = 60  # seconds


class Killer(RandomFaults):
    """Kills a process once a request has come, before it is executed or before it is answered."""

    def __init__(self, process: "subprocess.Popen[bytes]", number: int, when: When) -> None:
        super().__init__(0, (), 0, check_match({}))
        self._process, self._left = process, number
        self._fault = Fault.reset(when=when)

    def draw(self, request: HttpRequest, operation: str | None) -> Fault | None:
        """Count a request, and lose what comes to it once the process is gone."""
        self._left -= 1
        if self._left:
            return None
        self._process.kill()
        self._process.wait(LONGEST)
        return self._fault


def run_killed(cloud: Cloud, command: Command, number: int, when: When) -> bool:
    """Run a command in a process that is killed at a request; return False if it ends before."""
    process = subprocess.Popen([sys.executable, "-c", VICTIM], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    cloud.fault(Killer(process, number, when))
    work = partial(command.run, settings=Settings(endpoint=cloud.url))
    _, errors = process.communicate(pickle.dumps(work), LONGEST)
    assert process.returncode in (0, -9), errors
    settle(cloud)
    cloud.clear_faults()
    return process.returncode == -9


def check_killed(cloud: Cloud, folder: Path, name: str, when: When, number: int) -> bool:
    """Kill a command at a request, and run it again; return False if it has no such request.

    The part of a small download stays, and nothing reads it.
    """
    command = COMMANDS[name]
    kept = {*command.objects.values()} & {*command.objects_after.values()}
    prepare(cloud, command)
    was_killed = run_killed(cloud, command, number, when)
    assert kept <= {*contents(cloud).values()}, number
    with virtual_time(seed=1):
        again = command.run(settings=Settings(endpoint=cloud.url))
    assert kept <= {*contents(cloud).values()}, number
    if name != OVERLAP and was_killed:
        assert again.ok or "does not exist" in str(again.failures[0].error), (number, again.failures)
        left = {path: data for path, data in files(folder / "t").items() if not is_part(Path(path).name)}
        assert (contents(cloud), left) == (command.objects_after, command.files_after), number
    return was_killed


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.soak
def test_a_kill_at_every_request_loses_nothing(here: Path, cloud: Cloud, name: str, when: When) -> None:
    """Killed before the request is executed, or before its answer is read: the next run does the rest."""
    number = 1
    while check_killed(cloud, here, name, when, number):
        number += 1
    assert number > 2


def test_a_kill_loses_nothing(here: Path, cloud: Cloud) -> None:
    """As above, once: in the middle of a move."""
    assert check_killed(cloud, here, "mv of a name", "after", 4)
