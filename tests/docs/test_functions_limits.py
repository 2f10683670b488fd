"""The limits on the page about functions: each row is tried, so that none stays there that was mended."""

import contextlib
import http.client
import io
import pickle
import urllib.request
from collections.abc import Callable, Iterator

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


def _read_elsewhere() -> None:
    parts = [io.BytesIO(b"first and second")]

    def take() -> bytes:
        return parts[0].read(8)

    def work(url: str) -> None:
        requests.put(url, data=take(), timeout=5)

    with Wire(LOST, OK) as wire:
        POLICY.call(work, wire.url)
        assert [seen.body for seen in wire.seen] == [b"first an", b"d second"]


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


TRIED: dict[str, Callable[[], None]] = {
    "it raises an error of its own after a response that no variable holds": _status_elsewhere,
    "another function reads from a file or an iterator that was made outside": _read_elsewhere,
    "it says `urlopen(url, order)` without the word `data=`, and follows a redirect": _urlopen_without_the_word,
    "in a worker of a process pool, httpx follows a redirect, or a write works before the error": _redirect_in_a_worker,
}


IN_TRANSACTIONS = ("it rolls back", "it commits", "it runs `WITH")
"""The beginnings of rows about databases, which have their tests in `test_sql.py` and its neighbours."""


def _rows() -> Iterator[str]:
    part = PAGE.partition("## What it cannot read\n")[2].partition("\n## ")[0]
    for line in part.splitlines():
        if line.startswith("| ") and "what your function does" not in line:
            row = line.split(" | ")[0].removeprefix("| ")
            if not row.startswith(IN_TRANSACTIONS):
                yield row


def test_every_row_is_tried() -> None:
    """A row without its test may be wrong by tomorrow."""
    assert list(_rows()) == list(TRIED)


@pytest.mark.parametrize("row", TRIED)
def test_a_row(row: str) -> None:
    """The error shows nothing, so the function is repeated."""
    with virtual_time(), contextlib.suppress(http.client.HTTPException):
        TRIED[row]()
