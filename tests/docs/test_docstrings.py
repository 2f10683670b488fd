"""Each public name has an example in its docstring, which runs; `help(forbear)` begins with a screen."""

import doctest
import inspect
import os
import pydoc
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import redis

import forbear
from docs.generate import api
from docs.generate.__main__ import API, page
from forbear.testing import virtual_time
from forbear_cloud import Cloud

_FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL | doctest.NORMALIZE_WHITESPACE
_REFERENCE = re.compile(r"\bExample:\s+see\s+`(\w+)`\.")
"""The reference in the docstring of a twin, or of a small part of something, to a name of the same module."""


def texts(module: ModuleType) -> dict[str, str]:
    """Return the docstrings of the classes and functions of a public module, and of whatever the package itself has."""
    values = {name: getattr(module, name) for name in api.names(module.__name__)}
    return {name: inspect.getdoc(value) or "" for name, value in values.items() if module is forbear or is_code(value)}


def is_code(value: object) -> bool:
    """Return whether a value is a class or a function: what is none, as a constant, has no docstring of its own."""
    return isinstance(value, type) or (inspect.isroutine(value) and not inspect.isbuiltin(value))


@pytest.fixture(scope="module")
def running_cloud() -> Iterator[Cloud]:
    """A cloud for the examples of all modules."""
    with Cloud() as cloud:
        yield cloud


@pytest.fixture
def cloud(running_cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """The cloud, where transfers find it, and a folder to work in; without settings of the user's own."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", running_cloud.url)
    monkeypatch.setenv("FORBEAR_STATE_DIR", str(tmp_path / "states"))
    monkeypatch.setenv("BOTO_CONFIG", os.devnull)
    monkeypatch.chdir(tmp_path)
    return running_cloud


@pytest.mark.parametrize("name", api.MODULES)
def test_examples(name: str, cloud: Cloud, valkey: str) -> None:
    """Each name of a module has an example that runs and prints what stands below it, or refers to one that has."""
    module = pytest.importorskip(name, exc_type=ImportError)
    names = {"forbear": forbear, "cloud": cloud, "valkey": valkey}
    names |= {public: getattr(module, public) for public in api.names(name)}
    problems, found = list[str](), texts(module)
    for public, text in found.items():
        test = doctest.DocTestParser().get_doctest(text, names.copy(), public, None, None)
        reference = _REFERENCE.search(text)
        if reference and ">>> " not in found.get(reference[1], ""):
            problems.append(f"{public} refers to {reference[1]}, which has no example")
        if not (test.examples or reference):
            problems.append(f"{public} has no example")
        if test.examples:
            begin_anew(cloud, valkey)
            with virtual_time(seed=1):
                doctest.DocTestRunner(optionflags=_FLAGS).run(test, out=problems.append)
    assert problems == []


def begin_anew(cloud: Cloud, valkey: str) -> None:
    """Put the same photo into the current folder and the bucket, and nothing else there or into the Valkey."""
    cloud.reset()
    cloud.clear_faults()
    cloud.store.create_bucket("my-bucket")
    cloud.store.put("my-bucket", "photos/1.jpg", b"photo 1", {})
    shutil.rmtree("photos", ignore_errors=True)
    Path("photos").mkdir()
    Path("photos/1.jpg").write_bytes(b"photo 1")
    with redis.Redis(unix_socket_path=valkey) as server:
        server.flushall()


def test_examples_are_code_on_the_pages() -> None:
    """On the page of the API an example is a block of code."""
    text = page(f"{API}forbear")
    made = [name for name, doc in texts(forbear).items() if ">>> " in doc and is_code(getattr(forbear, name))]
    assert text.count("```pycon\n>>> ") == len(made)  # the entry of another value has the text of its variable


def test_help_begins_with_a_screen() -> None:
    """The first screen of `help(forbear)` says how to begin, and names what the package has."""
    text = pydoc.plain(pydoc.render_doc(forbear))
    about = text.partition("DESCRIPTION\n")[2].partition("\n\nPACKAGE CONTENTS")[0]
    assert text.index(about) < 200
    assert len(about.splitlines()) <= 20
    assert max(map(len, about.splitlines())) <= 125
    for name in ("retry", "install", "explain", "report", "safe_to_repeat", "update", "disabled", "stop_on"):
        assert f"forbear.{name}" in about
