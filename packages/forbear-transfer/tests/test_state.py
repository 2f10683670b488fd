"""State: on disk whole or not at all, private, and held by one process at a time."""

import fcntl
import multiprocessing
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from forbear_transfer import state as states
from forbear_transfer.errors import Locked, TransferError
from forbear_transfer.state import State, default_directory

PARTS = ("upload", "http://x", "gs://b/o", "/f")


def files(folder: Path) -> list[str]:
    """Return the files in a folder, by the ends of their names."""
    return sorted(each.suffix for each in folder.iterdir())


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    """By the same parts, in another run; the last one counts."""
    with State(tmp_path, *PARTS) as state:
        assert state.load() == {}
        state.save({"a": 1})
        state.save({"a": 2, "b": [None, "ü"]})
    with State(tmp_path, *PARTS) as state:
        assert state.load() == {"a": 2, "b": [None, "ü"]}
    with State(tmp_path, *PARTS[:-1], "/g") as state:
        assert state.load() == {}


def test_what_is_forgotten_is_gone(tmp_path: Path) -> None:
    """With its lock; the folder stays."""
    with State(tmp_path / "new" / "folder", *PARTS) as state:
        state.save({"a": 1})
        state.forget()
        state.forget()
    assert files(tmp_path / "new" / "folder") == []


def test_it_is_private(tmp_path: Path) -> None:
    """Folder, state and lock."""
    folder = tmp_path / "states"
    with State(folder, *PARTS) as state:
        state.save({"a": 1})
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}


def test_what_another_left_does_not_matter(tmp_path: Path) -> None:
    """A process that died while it saved leaves a file that anybody may read; it is not written to."""
    with State(tmp_path, *PARTS) as state:
        state.save({"a": 1})
        (path,) = tmp_path.glob("*.json")
        left = path.with_suffix(".new")
        left.write_text("half")
        left.chmod(0o666)
        state.save({"a": 2})
        assert state.load() == {"a": 2}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 0, "values": {}}', '{"version": 1}', "[" * 100_000, "\xff"]
)
def test_what_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    """A state is a help, and no more."""
    with State(tmp_path, *PARTS) as state:
        state.save({"a": 1})
        (path,) = tmp_path.glob("*.json")
        path.write_text(text, encoding="latin-1")
        assert state.load() == {}


@pytest.mark.parametrize("lasting", [True, False])
def test_a_full_disk_leaves_no_wrong_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lasting: bool) -> None:
    """A full disk is an error with a cure, and leaves no older state unless that is still true; later ones may fit."""

    def full(descriptor: Any, mode: str) -> None:
        os.close(descriptor)
        raise OSError(28, "No space left on device")

    told: list[str] = []
    with State(tmp_path, *PARTS, warn=told.append) as state:
        state.save({"a": 1})
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdopen", full)
            state.save({"a": 2}, lasting=lasting)
        assert (state.kept, state.load()) == ((False, {}) if lasting else (True, {"a": 1}))
        state.save({"a": 3})
        assert (state.kept, state.load()) == (True, {"a": 3})
    if lasting:
        [text] = told
        assert text == (
            f"cannot keep the state of the transfer in {tmp_path}: No space left on device; it goes on, but another "
            "process cannot continue it; name a folder that can be written to: FORBEAR_STATE_DIR=/path"
        )
    else:
        assert told == []
    assert files(tmp_path) == [".json"]


@pytest.mark.parametrize("folder", ["file/x", "file", "link", "/proc/forbear/x"])
def test_where_nothing_can_be_kept_it_is_said(tmp_path: Path, folder: str) -> None:
    """The transfer goes on as if there were no state, without a folder for it."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    told: list[str] = []
    with State(tmp_path / folder, *PARTS, warn=told.append) as state:
        state.save({"a": 1})
        assert (state.kept, state.load()) == (False, {})
        state.forget()
    assert len(told) == 1
    assert told[0].startswith(f"cannot keep the state of the transfer in {tmp_path / folder}: ")
    assert (tmp_path / "file").read_bytes() == b""


def test_by_default_it_is_a_warning(tmp_path: Path) -> None:
    """Of Python, so that it is seen once and can be silenced."""
    (tmp_path / "file").touch()
    with pytest.warns(RuntimeWarning, match="cannot keep the state"), State(tmp_path / "file", *PARTS):
        pass


def test_who_has_no_home_keeps_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container, whose user nobody knows."""

    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("FORBEAR_STATE_DIR", "XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", home)
    told: list[str] = []
    with State(None, *PARTS, warn=told.append) as state:
        assert not state.kept
    assert "in ~: this user has no home folder; " in told[0]


def test_where_no_more_files_can_be_opened_it_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others will close theirs, so that it can be tried again."""

    def exhausted(*_: object, **__: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "open", exhausted)
    with pytest.raises(TransferError, match="Too many open files"), State(tmp_path, *PARTS):
        pass


@pytest.fixture(autouse=True)
def nothing_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder was looked at before: the number of one that an earlier test had may come again."""
    monkeypatch.setattr(states, "_collected", set())


def old(folder: Path, name: str, suffix: str, days: float) -> Path:
    """A file of a state that was written so many days ago."""
    path = folder / f"{name * 32}{suffix}"
    path.write_bytes(b"{}")
    then = time.time() - days * 86_400
    os.utime(path, (then, then))
    return path


def test_old_states_are_collected(tmp_path: Path) -> None:
    """Those of which all is older than a month and that nobody holds; nothing else in the folder is touched."""
    gone = [old(tmp_path, "a", suffix, 32) for suffix in (".json", ".lock", ".new", ".now")]
    gone.append(old(tmp_path, "b", ".lock", 400))
    kept = [old(tmp_path, "c", ".json", 30), old(tmp_path, "d", ".json", 32), old(tmp_path, "d", ".lock", 1)]
    kept += [old(tmp_path, "e", ".json", 32), old(tmp_path, "E", ".json", 32), old(tmp_path, "f", ".txt", 32)]
    kept += [old(tmp_path, "e", ".lock", 32)]
    held = os.open(kept[-1], os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        with State(tmp_path, *PARTS):
            pass
    finally:
        os.close(held)
    assert not any(path.exists() for path in gone)
    assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_collecting_takes_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process looks once, and at a bounded number of files."""
    monkeypatch.setattr(states, "_MOST_COLLECTED", 10)
    for number in range(20):
        old(tmp_path, "0123456789abcdef"[number % 16], ".json" if number < 16 else ".now", 50)
    left: list[int] = []
    for _ in range(2):
        with State(tmp_path, *PARTS):
            pass
        left.append(len(list(tmp_path.iterdir())))
    assert 20 > left[0] == left[1] >= 8


def test_one_at_a_time(tmp_path: Path) -> None:
    """Also within a process; the next one gets in when the first is out."""
    with State(tmp_path, *PARTS):
        with pytest.raises(Locked, match="another process is working on this transfer") as caught:
            State(tmp_path, *PARTS).__enter__()
        assert "gs://b/o" in str(caught.value)
        with State(tmp_path, "download", *PARTS[1:]):
            pass
    with State(tmp_path, *PARTS):
        pass
    assert files(tmp_path) == []


def _hold(folder: Path, held: Any, go: Any) -> None:
    with State(folder, *PARTS) as state:
        state.save({"held": True})
        held.set()
        go.wait(10)


def test_a_dead_process_holds_no_lock(tmp_path: Path) -> None:
    """The next process can take the state that a dead one saved."""
    spawn = multiprocessing.get_context("spawn")
    held, go = spawn.Event(), spawn.Event()
    process = spawn.Process(target=_hold, args=(tmp_path, held, go))
    process.start()
    assert held.wait(10)
    with pytest.raises(Locked):
        State(tmp_path, *PARTS).__enter__()
    process.kill()
    process.join()
    process.close()
    with State(tmp_path, *PARTS) as state:
        assert state.load() == {"held": True}


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"FORBEAR_STATE_DIR": "/own"}, "/own"),
        ("linux", {"XDG_STATE_HOME": "/state"}, "/state/forbear/transfers"),
        ("linux", {"HOME": "/me"}, "/me/.local/state/forbear/transfers"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/forbear/transfers"),
    ],
)
def test_where_states_are_kept(
    monkeypatch: pytest.MonkeyPatch, platform: str, environment: dict[str, str], expected: str
) -> None:
    """The user's own choice comes first, then the system's habit."""
    for name in ("FORBEAR_STATE_DIR", "XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert default_directory() == Path(expected)
