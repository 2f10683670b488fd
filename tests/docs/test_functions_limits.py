"""The limits on the page about functions: each row is tried, so that none stays there that was mended."""

import contextlib
import http.client
import io
import itertools
import pickle
import sqlite3
import tempfile
import urllib.request
import xmlrpc.client
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import requests

import forbear
from forbear.evidence import read
from forbear.testing import virtual_time
from forbear_testkit import ROOT
from forbear_testkit.clients.wire import Answer, Wire, reply

PAGE = (ROOT / "docs" / "functions.md").read_text(encoding="utf-8")
POLICY = forbear.retry(on=Exception, attempts=2, timeout=None)
LOST, OK = Answer(end="close"), reply(200, b"{}")
SEE_OTHER = reply(303, b"", "Location: /done")


def _status_elsewhere() -> None:
    def check(status: int) -> None:
        if status >= 500:
            raise RuntimeError("the shop is down")

    def work(url: str) -> None:
        check(requests.post(url, timeout=5).status_code)

    with Wire(reply(500), OK) as wire:
        POLICY.call(work, wire.url)
        assert [seen.method for seen in wire.seen] == ["POST", "POST"]


_kept: requests.Response


def _kept_by_the_module() -> None:
    def send(url: str) -> None:
        global _kept  # noqa: PLW0603 - the row is about it
        _kept = requests.post(url, timeout=5)

    def place(url: str) -> None:
        send(url)

    def work(url: str) -> None:
        place(url)
        int(_kept.text)

    with Wire(OK, OK) as wire:
        with pytest.raises(ValueError, match="invalid"):
            POLICY.call(work, wire.url)
        assert [seen.method for seen in wire.seen] == ["POST", "POST"]


def _read_elsewhere() -> None:
    parts = [io.BytesIO(b"first and second")]

    def take() -> bytes:
        return parts[0].read(8)

    def work(url: str) -> None:
        requests.put(url, data=take(), timeout=5)

    with Wire(LOST, OK) as wire:
        POLICY.call(work, wire.url)
        assert [seen.body for seen in wire.seen] == [b"first an", b"d second"]


def _taken_from_an_iterator() -> None:
    parts = map(str.encode, ["first", "second", "third"])

    def work(url: str) -> None:
        for part in parts:
            requests.put(url, data=part, timeout=5)

    with Wire(LOST, OK) as wire:
        POLICY.call(work, wire.url)
        assert [seen.body for seen in wire.seen] == [b"first", b"second", b"third"]


def _after_an_sdk() -> None:
    def work(url: str) -> None:
        with xmlrpc.client.ServerProxy(url) as shop:
            int(str(shop.order()))

    done = reply(200, xmlrpc.client.dumps(("done",), methodresponse=True).encode(), "Content-Type: text/xml")
    with Wire(done) as wire:
        with pytest.raises(ValueError, match="invalid"):
            POLICY.call(work, wire.url)
        assert [seen.method for seen in wire.seen] == ["POST", "POST"]


def _passed_on() -> None:
    def send(url: str) -> object:
        return requests.post(url, timeout=5)

    def create(url: str) -> object:
        return send(url)

    def work(url: str) -> None:
        order = create(url)
        int(repr(order))

    with Wire(OK, OK) as wire:
        with pytest.raises(ValueError, match="invalid"):
            POLICY.call(work, wire.url)
        assert [seen.method for seen in wire.seen] == ["POST", "POST"]


def _urlopen_without_the_word() -> None:
    def work(url: str) -> None:
        with urllib.request.urlopen(url, b"order", 5) as response:
            response.read()

    with Wire(SEE_OTHER, reply(200, b"half", length=9, end="close"), SEE_OTHER, OK) as wire:
        POLICY.call(work, wire.url)
        assert [seen.method for seen in wire.seen] == ["POST", "GET"] * 2


def _redirect_in_a_worker() -> None:
    with Wire(SEE_OTHER, LOST) as wire, httpx.Client(verify=False, follow_redirects=True) as client:
        with pytest.raises(httpx.RemoteProtocolError) as caught:
            client.post(wire.url)
        assert [sent.method for sent in read(caught.value).requests] == ["GET", "POST"]  # type: ignore[union-attr]
        arrived = pickle.loads(pickle.dumps(caught.value))
        assert [sent.method for sent in read(arrived).requests] == ["GET"]  # type: ignore[union-attr]


FAIL = "select * from nothing"


def _given_by_a_generator() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.execute("create table t (n integer)")
        db.execute("insert into t values (1)")
        sessions = itertools.repeat(db)

        def work() -> None:
            with next(sessions) as session:
                session.execute("insert into t values (2)")
                session.execute(FAIL)

        with pytest.raises(sqlite3.OperationalError) as caught:
            POLICY.call(work)
        assert "[attempts]" in str(caught.value.__notes__)
        assert db.execute("select count(*) from t").fetchone() == (0,)


def _begun_before_a_block() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.execute("create table t (n integer)")
        db.execute("insert into t values (1)")
        tries = 0
        with pytest.raises(sqlite3.OperationalError):  # noqa: PT012 - the block is what is tried
            for attempt in POLICY:
                with attempt, db:
                    tries += 1
                    db.execute("insert into t values (2)")
                    db.execute(FAIL)
        assert tries == 2
        assert db.execute("select count(*) from t").fetchone() == (0,)


def _execute_twice(statement: str, *, commits: bool = False, **options: Any) -> None:
    """Run a statement and one that fails, in a connection of each attempt; both attempts leave a row."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/shop"

        def work() -> None:
            with contextlib.closing(sqlite3.connect(path, **options)) as db:
                try:
                    db.execute(statement)
                    db.execute(FAIL)
                finally:
                    if commits:
                        db.commit()

        with contextlib.closing(sqlite3.connect(path)) as shop:
            shop.execute("create table t (n integer)")
            with pytest.raises(sqlite3.OperationalError):
                POLICY.call(work)
            assert shop.execute("select count(*) from t").fetchone() == (2,)


def _committed_after_an_error() -> None:
    _execute_twice("insert into t values (1)", commits=True)


def _committed_alone() -> None:
    _execute_twice("insert into t values (1)", isolation_level=None)


def _put_by_with() -> None:
    _execute_twice("with v as (select 1) insert into t select * from v")


TRIED: dict[str, Callable[[], None]] = {
    "it raises an error of its own after a response that it holds nowhere": (_status_elsewhere),
    "it fails by itself after a write of an SDK that worked, such as boto3, stripe or xmlrpc.client": _after_an_sdk,
    "a function deep below puts a response into a global variable, or an object of outside, and returns nothing": (
        _kept_by_the_module
    ),
    "another function reads from a file or an iterator that was made outside": _read_elsewhere,
    "it takes from an iterator of outside that is no file, generator or `csv.reader`, such as `map` or `enumerate`": (
        _taken_from_an_iterator
    ),
    "it passes on the response of a function deep below, and does not use it, in a variable without `res` in its "
    "name": _passed_on,
    "it says `urlopen(url, order)` without the word `data=`, and follows a redirect": _urlopen_without_the_word,
    "in a worker of a process pool, httpx follows a redirect, a write works before the error, or the error is one of "
    "its own": _redirect_in_a_worker,
    "it rolls back a transaction that began before, in a session that it gets from elsewhere, such as a generator or "
    "a cache": _given_by_a_generator,
    "in a block, it rolls back a transaction that began before the block": _begun_before_a_block,
    "it commits after an error of MySQL or SQLite, as by `finally: db.commit()`": _committed_after_an_error,
    "it uses sqlite3 with `isolation_level=None`, and closes the connection before the error arrives": _committed_alone,
    "it runs `WITH ... INSERT` in sqlite3, which commits by itself unless you say `autocommit=False`": _put_by_with,
}


def _rows() -> Iterator[str]:
    part = PAGE.partition("## What it cannot read\n")[2].partition("\n## ")[0]
    for line in part.splitlines():
        if line.startswith("| ") and "what your function does" not in line:
            yield line.split(" | ")[0].removeprefix("| ")


def test_every_row_is_tried() -> None:
    """A row without its test may be wrong by tomorrow."""
    assert list(_rows()) == list(TRIED)


@pytest.mark.parametrize("row", TRIED)
def test_a_row(row: str) -> None:
    """The error shows nothing, so the function is repeated."""
    with virtual_time(), contextlib.suppress(http.client.HTTPException):
        TRIED[row]()
