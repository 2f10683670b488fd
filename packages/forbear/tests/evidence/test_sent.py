"""Streams: whether a body can be read once only, and whether somebody has read of it. No code of the user runs."""

import io
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from forbear.evidence.look import list_files
from forbear.evidence.sent import list_streams, was_read


def numbers() -> Iterator[int]:
    """Yield two numbers."""
    yield 1
    yield 2


async def async_numbers() -> AsyncGenerator[int]:
    """Yield two numbers."""
    yield 1
    yield 2


class Hostile:
    """A stream whose code must not run."""

    def read(self, size: int = -1) -> NoReturn:
        raise AssertionError("the user's code runs")

    tell = seekable = __iter__ = __len__ = read


class Raw(io.RawIOBase):
    """A raw file whose code must not run."""

    def tell(self) -> int:
        raise AssertionError("the user's code runs")

    def readable(self) -> bool:
        return True

    seekable = tell  # type: ignore[assignment]


@pytest.mark.parametrize("body", [None, b"x", "x", bytearray(b"x"), 1, [b"x"], {"a": 1}, (b"x", None)], ids=repr)
def test_whole_bodies(body: object) -> None:
    """Bytes, texts and lists are the same in each attempt."""
    assert list_streams(body) == ()


def test_streams_in_lists_and_wrappers() -> None:
    """Files in the fields of a form, and in what wraps them, are found three levels deep."""
    stream, hostile = io.BytesIO(b"x"), Hostile()
    hostile.__dict__["file"] = stream
    assert list_streams({"file": ("name", stream, "text/plain")}) == (stream,)
    assert list_streams(hostile) == (hostile, stream)
    assert list_streams(numbers()) != ()
    code = (lambda: None).__code__
    assert set(list_files({"a": stream, "b": hostile, "c": b"x"}, code)) == {stream}


OPENED: list[Callable[[Any], Any]] = [
    lambda path: io.BytesIO(b"content"),
    lambda path: path.open("rb"),
    lambda path: path.open("rb", buffering=0),
    lambda path: path.open("r+b"),
    lambda path: path.open(encoding="utf-8"),
    lambda path: tempfile.SpooledTemporaryFile(),  # noqa: SIM115 - the test closes it
]


@pytest.mark.parametrize("opened", OPENED, ids=range(len(OPENED)))
def test_files_that_python_can_ask(opened: Callable[[Any], Any], tmp_path: Path) -> None:
    """A file says where it is; one that is closed cannot be sent again."""
    path = tmp_path / "file"
    path.write_bytes(b"content")
    with opened(path) as stream:
        if isinstance(stream, tempfile.SpooledTemporaryFile):
            stream.write(b"content")
            stream.seek(0)
        assert not was_read(stream)
        stream.read(1)
        assert was_read(stream)
        stream.seek(0)
        assert not was_read(stream)
    assert was_read(stream)


def test_generators() -> None:
    """A generator that has not begun can be sent whole."""
    begun = numbers()
    assert not was_read(begun)
    next(begun)
    assert was_read(begun)
    list(begun)
    assert was_read(begun)


def test_async_generators() -> None:
    """The same holds for an async one."""
    begun = async_numbers()
    assert was_read(begun) is (sys.version_info < (3, 12))  # which does not say it
    with pytest.raises(StopIteration):
        begun.asend(None).send(None)
    assert was_read(begun)
    with pytest.raises(StopIteration):
        begun.aclose().send(None)
    assert was_read(begun)


def test_what_cannot_be_asked() -> None:
    """The user's own streams, raw files and pipes count as read, and none of their code runs."""
    reading, writing = os.pipe()
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123 - it has no path
        assert was_read(pipe)
    assert was_read(Hostile())
    raw: Any = Raw()
    assert was_read(io.BufferedReader(raw))
