"""Every Python example of the README and of docs/ is run, in virtual time and against the embedded cloud."""

import doctest
import io
import re
import sqlite3
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import httpx
import prometheus_client
import pytest
import redis
from sybil import Example
from sybil.document import Document
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

from docs.generate.__main__ import API, FOLDER
from docs.generate.pages import PAGES
from forbear.testing import virtual_time
from forbear_cloud import Cloud
from forbear_testkit import ROOT
from forbear_testkit.clients.wire import Answer, Wire, reply

_READMES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "packages").glob("*/README.md"))]
_PAGES = [*_READMES, *sorted((ROOT / "docs").rglob("*.md"))]
_WITH_CODE = [page for page in _PAGES if "\n```python\n" in page.read_text(encoding="utf-8")]


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """A cloud with a bucket, for the examples to talk to."""
    with Cloud() as cloud:
        cloud.store.create_bucket("my-bucket")
        yield cloud


class FailsFirst(Wire):
    """A server that answers the first request to each path with 503, and the others with 200."""

    def _next(self, head: bytes) -> Answer:
        path = head.split(b" ")[1]
        return reply(200) if any(seen.target.encode() == path for seen in self.seen) else reply(503)


@pytest.fixture
def server() -> Iterator[Wire]:
    """A server of an API that no table knows."""
    with FailsFirst() as server:
        yield server


class _Line(sqlite3.Connection):
    """A connection that raises an error of the list `lost`, if there is one, after a COMMIT that was executed."""

    lost: ClassVar[list[Exception]] = []

    def commit(self) -> None:
        super().commit()
        if self.lost:
            raise self.lost.pop()


@pytest.fixture
def database(tmp_path: Path) -> dict[str, object]:
    """A SQLite database for the examples: its `dialect`, `connect()`, and the list `lost`."""
    connect = partial(sqlite3.connect, tmp_path / "database", factory=_Line)
    return {"dialect": "sqlite://", "connect": connect, "lost": _Line.lost}


class Printed:
    """The output of the Python blocks of a page; each block of `output` is compared with all that is new."""

    def __init__(self) -> None:
        self.text = io.StringIO()

    def check(self, example: Example) -> str | None:
        """Return what was printed if the block says otherwise; "..." stands for anything."""
        got = self.text.getvalue()
        self.text.seek(0)
        self.text.truncate()
        if doctest.OutputChecker().check_output(example.parsed, got, doctest.ELLIPSIS):
            return None
        return f"the example printed:\n{got}"


@pytest.fixture
def _own_metrics() -> Iterator[None]:
    """Take what a page has registered with Prometheus out again: each page is a program of its own."""
    known: dict[Any, Any] = prometheus_client.REGISTRY._collector_to_names
    before = set(known)
    yield
    for collector in known.keys() - before:
        prometheus_client.REGISTRY.unregister(collector)


@pytest.mark.usefixtures("_own_metrics")
@pytest.mark.parametrize("page", _WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(
    page: Path,
    cloud: Cloud,
    server: Wire,
    valkey: str,
    database: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The examples of a page run from top to bottom, in one namespace that begins with the servers of the fixtures."""
    printed = Printed()
    document = Document.parse(
        str(page), PythonCodeBlockParser(), CodeBlockParser("output", printed.check), SkipParser()
    )
    document.namespace |= {"cloud": cloud, "server": server, "valkey": valkey} | database
    examples = list(document.examples())
    with virtual_time(seed=1), redirect_stdout(printed.text):
        for example in examples:
            example.evaluate()
    for value in document.namespace.values():
        if isinstance(value, httpx.Client | redis.Redis):
            value.close()
    if "engine" in document.namespace:
        document.namespace["engine"].dispose()


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file that is there, or a page of the API that is built."""
    built = {FOLDER / f"{name}.md" for name in PAGES if name.startswith(API)}
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text(encoding="utf-8")):
        path = (page.parent / target).resolve()
        assert path in built or path.exists(), f"{page.name} links to {target}"
