"""A name is a name: whatever `ls` prints can be pasted back, and no command takes it for others."""

import io
import random
import subprocess
from pathlib import Path

import pytest

from forbear_cloud import Cloud, Fault
from forbear_transfer import (
    Settings,
    Storage,
    Url,
    acat,
    acp,
    als,
    amv,
    arm,
    astat,
    cat,
    cp,
    du,
    hashes,
    ls,
    mv,
    rm,
    stat,
)

CHARACTERS = [*"ab?*[]{}#%\\'\"$`~! -/.é\t\u2028😀1", "a/../b", "#1", "..", "**"]
ODD = ["a?b", "a*b", "a[b]", "[x", "a#1", "#1", "-r", "--", "a b", "tab\there", "dir/", "a/../b", "x" * 1024]


def hostile(count: int) -> list[str]:
    """Return so many names, each of which Cloud Storage can hold."""
    drawn = random.Random(25)
    names = dict.fromkeys(ODD)
    while len(names) < count:
        name = "".join(drawn.choices(CHARACTERS, k=drawn.randint(1, 9)))
        if name not in {".", ".."}:
            names[name] = None
    return list(names)


def paste(lines: list[str]) -> list[str]:
    """Return the words that a shell makes of lines."""
    script = f"printf '%s\\0' {' '.join(lines)}"
    return subprocess.run(["bash", "-c", script], capture_output=True, check=True, text=True).stdout.split("\0")[:-1]


@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.soak)])
async def test_what_ls_prints_can_be_pasted_back(cloud: Cloud, count: int) -> None:
    """Every command takes it for this one object, although the names match each other as patterns."""
    names = hostile(count)
    for bucket in ("copies", "moved"):
        cloud.store.create_bucket(bucket)
    for name in names:
        cloud.store.put("bkt", name, name.encode())
    async with Storage(endpoint=cloud.url) as storage:
        entries = [entry async for entry in als(storage, "gs://bkt", recursive=True)]
        lines = [f"{Url(entry.bucket, entry.name)}" for entry in entries if not isinstance(entry, Url)]
        assert all(line.isprintable() for line in lines)
        moved = paste([f"{Url('moved', name)}" for name in sorted(names)])
        for name, word, left in zip(sorted(names), paste(lines), moved, strict=True):
            recursive, stream = name.endswith("/"), io.BytesIO()
            assert [one.object.name async for one in astat(storage, word)] == [name]
            await acat(storage, word, stream)
            assert stream.getvalue() == name.encode()
            if not recursive:
                assert (await acp(storage, word, f"gs://copies/{name}")).done == 1, name
                assert cloud.store.object("copies", name).data == name.encode()
                assert (await amv(storage, word, f"gs://moved/{name}")).done == 1, name
            if recursive:  # others may lie below it
                assert (await arm(storage, f"gs://bkt/{name}", literal=True)).deleted == 1, name
            else:
                assert (await arm(storage, left)).deleted == 1, name
    assert [*cloud.store.bucket("bkt").versions(), *cloud.store.bucket("moved").versions()] == []


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
