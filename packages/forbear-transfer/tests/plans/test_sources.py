"""A name is a name: whatever `ls` prints can be pasted back, and no command takes it for others."""

import io
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Invoke, invoke
from forbear_transfer import (
    Settings,
    Url,
    cat,
    cp,
    du,
    hashes,
    ls,
    mv,
    rm,
    stat,
)

__all__ = ["invoke"]

PIECES = [
    *"ab?*[]{}#%\\'\"$`~! -/.é\t\u2028😀1", "a/../b", "#1", "..", "**", "//", "\x1b", "x" * 1020,
]  # fmt: skip
NAMES = st.one_of(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1, max_size=8),
).filter(lambda name: name not in {".", ".."} and 0 < len(name.encode()) <= 1024)
"""Names that Cloud Storage can hold."""


def paste(lines: list[str]) -> list[str]:
    """Return the words that a shell makes of lines."""
    script = f"printf '%s\\0' {' '.join(lines)}"
    return subprocess.run(["bash", "-c", script], capture_output=True, check=True, text=True).stdout.split("\0")[:-1]


class Doing(Protocol):
    """The commands, as functions or as a command line."""

    def list(self, *addresses: str) -> list[str]: ...
    def stat(self, word: str) -> int: ...
    def cat(self, word: str) -> bytes: ...
    def copy(self, word: str, target: str) -> object: ...
    def move(self, word: str, target: str) -> object: ...
    def remove(self, word: str) -> object: ...


class Functions:
    """The library."""

    def __init__(self, cloud: Cloud) -> None:
        self._settings = Settings(endpoint=cloud.url)

    def list(self, *addresses: str) -> list[str]:
        found = ls(list(addresses), recursive=True, settings=self._settings)
        return [f"{Url(one.bucket, one.name)}" for one in found]

    def stat(self, word: str) -> int:
        return len(stat(word, settings=self._settings))

    def cat(self, word: str) -> bytes:
        stream = io.BytesIO()
        cat(word, stream, settings=self._settings)
        return stream.getvalue()

    def copy(self, word: str, target: str) -> None:
        assert cp(word, target, settings=self._settings).done == 1

    def move(self, word: str, target: str) -> None:
        assert mv(word, target, settings=self._settings).done == 1

    def remove(self, word: str) -> None:
        assert rm(word, settings=self._settings).deleted == 1


class Commands:
    """The command line, in this process."""

    def __init__(self, call: Invoke) -> None:
        self._invoke = call

    def list(self, *addresses: str) -> list[str]:
        return self._run("ls", "-r", *addresses).decode().split("\n")[:-1]

    def stat(self, word: str) -> int:
        return len(self._run("stat", "--json", word).splitlines())

    def cat(self, word: str) -> bytes:
        return self._run("cat", word)

    def copy(self, word: str, target: str) -> None:
        self._run("cp", word, target)

    def move(self, word: str, target: str) -> None:
        self._run("mv", word, target)

    def remove(self, word: str) -> None:
        self._run("rm", "--yes", word)

    def _run(self, *words: str) -> bytes:
        done = self._invoke(*words)
        assert done.exit_code == 0, (words, done.output)
        return done.stdout_bytes


def check_pasted(cloud: Cloud, names: Sequence[str], doing: Doing) -> None:
    """Store objects, and have each command take each of them by the words that are printed for it."""
    cloud.reset()
    for bucket in ("bkt", "copies", "moved"):
        cloud.store.create_bucket(bucket)
    for name in names:
        cloud.store.put("bkt", name, name.encode())
    lines = doing.list("gs://bkt")
    assert all(line.isprintable() for line in lines)
    words = dict(zip(sorted(names, key=str.encode), paste(lines), strict=True))
    known = {*names}
    for name, word in words.items():
        is_folder = name.endswith("/") and any(one != name and one.startswith(name) for one in names)
        if is_folder or word.removeprefix("gs://bkt/") in known - {name}:
            continue  # it is also the name of a folder, or of another object: the commands ask which
        assert doing.stat(word) == 1
        assert doing.cat(word) == name.encode()
        doing.copy(word, "gs://copies/x")
        assert cloud.store.object("copies", "x").data == name.encode()
        doing.move(word, f"gs://moved/{name}" if not name.endswith("/") else "gs://moved/")
        assert sorted(one.data for one in cloud.store.bucket("bkt").versions()) == sorted(
            one.encode() for one in known - {name}
        )
        known.remove(name)
        [left] = paste(doing.list("gs://moved"))
        assert doing.cat(left) == name.encode()
        doing.remove(left)
        assert not [*cloud.store.bucket("moved").versions()]


@pytest.fixture
def from_environment(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the cloud."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)


@pytest.mark.parametrize("how", ["library", "command"])
@given(names=st.lists(NAMES, min_size=1, max_size=4, unique=True))
@example(names=["a", "a\0b"])
@examples(
    max_examples=max(2, examples().max_examples // 30), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_ls_prints_can_be_pasted_back(
    cloud: Cloud, invoke: Invoke, from_environment: None, how: str, names: list[str]
) -> None:
    """Every command takes it for this one object, although the names match each other as patterns."""
    check_pasted(cloud, names, Functions(cloud) if how == "library" else Commands(invoke))


@pytest.fixture
def twins(cloud: Cloud) -> Settings:
    """Objects whose names match others: as a pattern, and as a version."""
    version = cloud.store.put("bkt", "a", b"a").generation
    for name in ("file[1].txt", "file1.txt", f"a#{version}", "x?"):
        cloud.store.put("bkt", name, name.encode())
    return Settings(endpoint=cloud.url)


def names_of(cloud: Cloud) -> list[str]:
    """Return the names of all objects."""
    return sorted(one.name for one in cloud.store.bucket("bkt").versions())


def test_a_name_comes_before_a_pattern_where_it_is_read(here: Path, cloud: Cloud, twins: Settings) -> None:
    """In each command, and as the library and its options say otherwise."""
    (version,) = (name for name in names_of(cloud) if name.startswith("a#"))
    for name in ("file[1].txt", "x?", version):
        address, stream = f"gs://bkt/{name}", io.BytesIO()
        cat(address, stream, settings=twins)
        assert stream.getvalue() == name.encode()
        assert cp(address, "copy", settings=twins).done == 1
        assert Path("copy").read_bytes() == name.encode()
        assert [one.object.name for one in stat(address, settings=twins)] == [name]
        assert [getattr(one, "name", "") for one in ls(address, settings=twins)] == [name]
        assert du(address, settings=twins)[-1].bytes == len(name)
        assert hashes(address, literal=True, settings=twins)[0].size == len(name)
    for pattern, other in (("gs://bkt/file[1].txt", "file1.txt"), (f"gs://bkt/{version}", "a")):
        assert [one.object.name for one in stat(pattern, literal=False, settings=twins)] == [other]
        assert [getattr(one, "name", "") for one in ls(pattern, literal=False, settings=twins)] == [other]
    assert cp("gs://bkt/x?", "one/", literal=True, settings=twins).done == 1


@pytest.mark.parametrize("moves", [True, False], ids=["mv", "rm"])
def test_nothing_is_deleted_while_it_is_not_clear_what_is_meant(cloud: Cloud, twins: Settings, moves: bool) -> None:
    """The error names the ways to say it; a name that matches nothing else is clear."""
    before = names_of(cloud)
    (version,) = (name for name in before if name.startswith("a#"))

    def run(address: str, literal: bool | None = None) -> int:
        if moves:
            return mv(address, "gs://bkt/to/", literal=literal, settings=twins).done
        return rm(address, literal=literal, settings=twins).done

    for name in ("file[1].txt", version):
        with pytest.raises(ValueError, match=r"so nothing is done; say which by --literal \(`literal=True`\)"):
            run(f"gs://bkt/{name}")
    assert names_of(cloud) == before
    assert run("gs://bkt/x?") == 1
    assert run("gs://bkt/file[1].txt", literal=True) == 1
    assert "file1.txt" in names_of(cloud)
    assert run("gs://bkt/file[1].txt", literal=False) == 1
    assert run(f"gs://bkt/{version}", literal=True) == 1
    assert "a" in names_of(cloud)


def test_a_name_that_is_the_escaped_form_of_another(cloud: Cloud) -> None:
    """A printed name is read as it was meant; deletions ask which one."""
    for name in ("a?b", "a[?]b"):
        cloud.store.put("bkt", name, name.encode())
    settings, printed = Settings(endpoint=cloud.url), paste([f"{Url('bkt', 'a?b')}", f"{Url('bkt', 'a[?]b')}"])
    assert [one.object.name for one in stat(printed, settings=settings)] == ["a?b", "a[?]b"]
    with pytest.raises(ValueError, match="so nothing is done"):
        rm(printed[0], settings=settings)
    assert rm(printed[1], settings=settings).deleted == 1
    assert names_of(cloud) == ["a?b"]
    assert rm(printed[0], settings=settings).deleted == 1


@pytest.mark.parametrize(("name", "last"), [("a/", "a/"), ("d/a/", "a/"), ("/", "/"), ("d//", "/")])
def test_an_object_whose_name_ends_with_a_slash(here: Path, cloud: Cloud, name: str, last: str) -> None:
    """By itself it is an object as any other, in each version; with others below it, only if that is said."""
    settings, address = Settings(endpoint=cloud.url), f"gs://bkt/{name}"
    cloud.store.bucket("bkt").fields["versioning"] = {"enabled": True}
    cloud.store.create_bucket("copies")
    old = f"{address}#{cloud.store.put('bkt', name, b'old').generation}"
    cloud.store.put("bkt", name, b"new")
    for source, data in ((address, b"new"), (old, b"old")):
        stream = io.BytesIO()
        cat(source, stream, settings=settings)
        assert stream.getvalue() == data
        assert cp(source, "copy", settings=settings).done == 1
        assert Path("copy").read_bytes() == data
        assert [one.object.size for one in stat(source, settings=settings)] == [3]
        assert hashes(source, settings=settings)[0].size == 3
        assert cp(source, "gs://copies/", settings=settings).done == 1
        [copied] = cloud.store.bucket("copies").versions()
        assert (copied.data, copied.name) == (data, last)
    assert rm(old, settings=settings).deleted == 1
    cloud.store.put("bkt", f"{name}below", b"")
    for moves in (True, False):
        [failure] = (mv if moves else cp)(address, "gs://copies/x", settings=settings).failures
        hint = "copy folders with `recursive`, and an object of just this name with `literal`"
        assert (failure.error, failure.hint) == ("it is a folder", hint)
    [failure] = rm(address, settings=settings).failures
    assert failure.hint == "use `recursive`, or `literal` for an object of just this name"
    assert mv(address, "gs://copies/x", literal=True, settings=settings).done == 1
    assert cloud.store.object("copies", "x").data == b"new"
    assert [one.name for one in cloud.store.bucket("bkt").versions() if one.deleted is None] == [f"{name}below"]


def test_a_user_who_may_only_list_is_told_that_it_is_a_folder(cloud: Cloud) -> None:
    """As before the object of that name was looked up."""
    cloud.store.put("bkt", "a/", b"")
    cloud.fault(Fault.status(403, operation="storage.objects.get"))
    [failure] = cp("gs://bkt/a/", "copy", settings=Settings(endpoint=cloud.url)).failures
    assert failure.error == "it is a folder"


def test_a_target_is_a_name(here: Path, cloud: Cloud) -> None:
    """Nothing in it is a pattern or a version; a source may hold the escaped form of a name."""
    Path("f").write_bytes(b"1")
    settings = Settings(endpoint=cloud.url)
    for name in ("a#1", "b[?]", "c*"):
        assert cp("f", f"gs://bkt/{name}", settings=settings).done == 1
    assert names_of(cloud) == ["a#1", "b[?]", "c*"]
    assert [one.object.name for one in stat(["gs://bkt/a[#]1", "gs://bkt/c[*]"], settings=settings)] == ["a#1", "c*"]
