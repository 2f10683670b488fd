"""State: on disk whole or not at all, private, and held by one process at a time."""

import multiprocessing
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from forbear.transfer.errors import Locked, TransferError
from forbear.transfer.state import State, default_directory

PARTS = ("upload", "http://x", "gs://b/o", "/f")


def files(folder: Path) -> list[str]:
    """What lies in a folder, by the ends of the names."""
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


def test_the_older_one_stays_where_a_new_one_cannot_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full is told, with a cure."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with State(tmp_path, *PARTS) as state:
        state.save({"a": 1})
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(TransferError, match="No space left on device") as caught:
            state.save({"a": 2})
        assert "FORBEAR_STATE_DIR" in str(caught.value.hint)
        assert state.load() == {"a": 1}
    assert files(tmp_path) == [".json"]


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """With the same cure."""
    (tmp_path / "file").touch()
    with pytest.raises(TransferError, match="cannot keep the state"), State(tmp_path / "file" / "x", *PARTS):
        pass


def test_one_at_a_time(tmp_path: Path) -> None:
    """Also within a process; the next one gets in when the first is out."""
    with State(tmp_path, *PARTS):
        with pytest.raises(Locked, match="another process is at work on this transfer") as caught:
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


def test_a_dead_process_holds_nothing(tmp_path: Path) -> None:
    """What it saved is there for the next one."""
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
