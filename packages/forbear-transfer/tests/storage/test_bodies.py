"""Whatever a server sends instead of an answer, time and memory end: long, slow, nested, repeated."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from forbear.services import cloud_storage
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.transfer.uploads import CHUNK, TARGET, file_of, storing
from forbear_transfer.downloads.download import download
from forbear_transfer.errors import Stalled, TransferError, WrongResponse
from forbear_transfer.functions import cp
from forbear_transfer.objects import Object, Url
from forbear_transfer.plans.targets import Nesting
from forbear_transfer.rewrite import copy
from forbear_transfer.storage.bodies import ANSWER, LONGEST_TOKEN, seconds_of
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.storage.credentials import token_session
from forbear_transfer.storage.listing import EMPTY_PAGES, PAGE, Pages
from forbear_transfer.uploads.upload import upload
from forbear_transfer.wire.response import NotConnected

LISTING = "storage#objects"

pytestmark = pytest.mark.anyio

ONCE = cloud_storage.policy.with_attempts(1)
OK = b"HTTP/1.1 200 OK\r\n"


@asynccontextmanager
async def endless(head: bytes, piece: bytes, *, pause: float) -> AsyncGenerator[str]:
    """A server that answers every request with `head`, and then with `piece` again and again."""
    over, tasks = asyncio.Event(), set[asyncio.Task[Any] | None]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            request = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (line for line in request.lower().split(b"\r\n") if line.startswith(b"content-length")), b":0"
            )
            await reader.readexactly(int(length.partition(b":")[2]))
            writer.write(head)
            while not over.is_set() and not writer.is_closing():
                writer.write(piece)
                await writer.drain()
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), pause)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        over.set()
        server.close()
        await server.wait_closed()
        await asyncio.gather(*(task for task in tasks if task is not None))


RESOURCE = {"bucket": "bkt", "name": "thing", "generation": "5", "size": "9", "crc32c": "AAAAAA=="}


def ways(storage: Storage, folder: Path) -> dict[str, Callable[[], Any]]:
    """Requests of every kind."""
    return {
        "look": lambda: storage.stat(TARGET),
        "list": lambda: anext(storage.objects("bkt")),
        "folder": lambda: storage.is_folder(TARGET),
        "delete": lambda: storage.delete(Object.of(RESOURCE).url),
        "insert": lambda: upload(storage, file_of(folder, 10), TARGET),
        "insert a stream": lambda: upload(storage, file_of(folder, CHUNK + 1), TARGET, chunk_size=2 * CHUNK),
        "begin": lambda: upload(storage, file_of(folder, 2 * CHUNK), TARGET, chunk_size=CHUNK),
        "rewrite": lambda: copy(storage, Object.of({**RESOURCE, "name": "source"}), TARGET),
        "data": lambda: download(storage, TARGET, folder / "file"),
        "listed data": lambda: download(storage, Object.of(RESOURCE), folder / "file"),
    }


KINDS = list(ways(Storage(endpoint="http://127.0.0.1:1"), Path()))


DROPS = {
    "endless 1xx": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"),
    "a header in drops": (OK + b"X: ", b"a"),
    "a body in drops": (OK + b"Content-Length: 100000\r\n\r\n{", b" "),
    "a body without length in drops": (OK + b"Connection: close\r\n\r\n{", b" "),
}


def drops() -> list[Any]:
    """Each kind of request with each kind of drops; a few of them in every run. Data may take as long as they come."""
    pairs = [(kind, drop) for kind in KINDS for drop in DROPS if "data" not in kind or "body" not in drop]
    few = {pair for number, pair in enumerate(pairs) if number % 5 == 0}
    return [pytest.param(*pair, marks=() if pair in few else pytest.mark.soak) for pair in pairs]


@pytest.mark.parametrize(("kind", "drop"), drops())
async def test_drops_end(tmp_path: Path, kind: str, drop: str) -> None:
    """However much keeps coming, a response that is not there in time has failed, as one that never came."""
    async with endless(*DROPS[drop], pause=0.005) as url:
        for limit in (0.05, 0.5, 5):
            async with storing(url, policy=ONCE.with_attempt_timeout(limit)) as storage:
                with pytest.raises((Stalled, WrongResponse, NotConnected)) as caught:
                    await asyncio.wait_for(ways(storage, tmp_path)[kind](), 20)
            if caught.type is not NotConnected:
                return
    pytest.fail("no connection, though a busy machine got more and more time for it")


@pytest.mark.parametrize("step", ["chunk", "question"])
async def test_drops_within_a_session_end(tmp_path: Path, step: str) -> None:
    """So does the response to a chunk, or to a question, whose body never ends."""
    begun = reply(200, b"", "Location: /upload/storage/v1/b/bkt/o?upload_id=1")
    drops = Answer(OK + b"Content-Length: 100000\r\n\r\n{", "stall")
    script = [begun, drops] if step == "chunk" else [begun, reply(412), drops]
    with Wire(*script) as wire:
        async with storing(wire.url, policy=ONCE.with_attempt_timeout(0.2)) as storage:
            with pytest.raises((Stalled, WrongResponse)):
                await upload(storage, file_of(tmp_path, 2 * CHUNK), TARGET, chunk_size=CHUNK)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "data" not in kind])
async def test_bodies_without_end_end(tmp_path: Path, kind: str) -> None:
    """No more is read than an honest response can have."""
    piece = b'{"a":1},' * 8192
    head = OK + b'Connection: close\r\n\r\n{"items":['
    async with endless(head, piece, pause=0) as url, storing(url) as storage:
        with pytest.raises(WrongResponse, match="goes on after"):
            await ways(storage, tmp_path)[kind]()


def test_how_long_a_response_may_take() -> None:
    """As long as an attempt may, or all of them, whichever is less; ten minutes where nothing is said."""
    policy = cloud_storage.policy
    assert seconds_of(policy) == 600
    assert seconds_of(policy.with_timeout(20)) == 20
    assert seconds_of(policy.with_timeout(20).with_attempt_timeout(5)) == 5
    assert seconds_of(policy.with_timeout(20).with_attempt_timeout(50)) == 20
    assert seconds_of(policy.with_attempts(3).with_timeout(None)) == 600


async def test_a_page_of_objects_with_all_their_metadata_passes() -> None:
    """A thousand of them, with the longest names, and with as much metadata as there can be, each letter escaped."""
    items = [
        {**RESOURCE, "name": f"{number:04}" + "n" * 1020, "metadata": {"key": "ä" * 4093}, "contentType": "t" * 200}
        for number in range(1000)
    ]
    body = json.dumps({"kind": LISTING, "items": items}).encode()
    assert 20 * 1024 * 1024 < len(body) < PAGE
    with Wire(reply(200, body)) as wire:
        async with storing(wire.url) as storage:
            assert len([found async for found in storage.objects("bkt")]) == 1000


def turn(tokens: Iterable[str], *, empty: bool) -> None:
    """Go through pages with these tokens."""
    pages = Pages("list")
    for token in tokens:
        pages.next_token(token, empty=empty)


@given(st.integers(0, 60), st.integers(1, 60))
def test_a_circle_of_tokens_is_noticed(before: int, length: int) -> None:
    """However long it is, and however long the way to it, within a few rounds and with one token in memory."""
    tokens = itertools.chain(map(str, range(before)), itertools.cycle(f"again {number}" for number in range(length)))
    with pytest.raises(WrongResponse, match="repeats an earlier page"):
        turn(itertools.islice(tokens, 4 * (before + length) + 4), empty=False)


@given(st.sets(st.text(min_size=1), max_size=200))
def test_tokens_that_do_not_repeat_are_fine(tokens: set[str]) -> None:
    """Any number of them, to the end of the listing."""
    pages = Pages("list")
    assert [pages.next_token(token, empty=False) for token in tokens] == list(tokens)
    assert pages.next_token(None, empty=True) is None


def test_empty_pages_end() -> None:
    """A few in a row are fine, and are counted anew after one that lists something."""
    pages = Pages("list")
    for number in range(3 * EMPTY_PAGES):
        pages.next_token(str(number), empty=number % EMPTY_PAGES != 0)
    with pytest.raises(WrongResponse, match="pages in a row list nothing"):
        turn(map(str, itertools.count()), empty=True)


def page(items: list[dict[str, Any]], token: object = None, prefixes: object = ()) -> Answer:
    """A page of a listing."""
    return reply(
        200, json.dumps({"kind": LISTING, "items": items, "prefixes": prefixes, "nextPageToken": token}).encode()
    )


def named(*names: str) -> list[dict[str, Any]]:
    """Objects of these names."""
    return [{**RESOURCE, "name": name} for name in names]


@pytest.mark.parametrize(
    "pages",
    [
        [page([], "A"), page([], "B"), page([], "A"), page([], "B"), page([], "A"), page([], "B"), page([], "A")],
        [page([], "A" * (LONGEST_TOKEN + 1))],
        [page([], 7)],
        [page([], "\ud800"), page([])],
        [page(named("a", "a"))],
        [page(named("a"), "A"), page(named("a"))],
        [page(named("b", "a"))],
        [page([], None, ["a/", "a/"])],
        [page([], None, [7])],
        [page([], None, "a/")],
        [page([{**RESOURCE, "name": 7}])],
        [page([{**RESOURCE, "name": None}])],
        [page([{**RESOURCE, "generation": "9" * 100}])],
        [page([{**RESOURCE, "size": "9" * 4000}])],
        [page([{**RESOURCE, "size": -1}])],
        [page([{**RESOURCE, "crc32c": 7}])],
        [page([{**RESOURCE, "metadata": ["x"]}])],
        [page([{**RESOURCE, "metadata": {"x": 7}}])],
    ],
    ids=[
        "tokens in a circle", "a long token", "a token that is a number", "a token that is no Unicode", "a name twice",
        "a name on two pages", "names out of order", "a folder twice", "a folder that is a number", "folders as text",
        "a name that is a number", "no name", "a huge generation", "a huge size", "a size below nothing",
        "a checksum that is a number", "metadata as a list", "metadata of numbers",
    ],
)  # fmt: skip
async def test_listings_that_make_no_sense_end(pages: list[Answer]) -> None:
    """With an error that says so, which stops what depends on that listing and nothing else."""
    with Wire(*pages) as wire:
        async with storing(wire.url, policy=ONCE) as storage:
            with pytest.raises(TransferError):
                [found async for found in storage.objects("bkt")]
        assert len(wire.seen) <= 7


ODD = ["a\ud800b", "a\udc80b"]
MEDIA = ("x-goog-generation: 5", "x-goog-hash: crc32c=AAAAAA==")


@pytest.mark.parametrize("source", ["gs://bkt/", "gs://bkt/*", "gs://bkt/**"])
@pytest.mark.parametrize("manifest", [True, False])
def test_names_that_are_no_unicode_fail_alone(tmp_path: Path, source: str, manifest: bool) -> None:
    """A lone surrogate in a listing is a failure of that item: the others are copied, and each is in the manifest."""
    listing = page([{**each, "size": "0"} for each in named(*ODD, "b")])
    there = [page(named("b"))] if source.endswith("/") else []
    with Wire(*there, listing, reply(200, b"", *MEDIA)) as wire:
        noted = tmp_path / "done.csv" if manifest else None
        settings = Settings(endpoint=wire.url)
        summary = cp(source, f"{tmp_path}/out/", recursive=True, literal=False, manifest=noted, settings=settings)
    assert (summary.done, summary.failed) == (1, 2)
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == ["b"]
    if noted is not None:
        assert [line.rpartition(",")[0].rpartition(",")[2] for line in noted.read_text().splitlines()[1:]].count(
            "OK"
        ) == 1


def test_folders_that_are_no_unicode_are_one_failure(tmp_path: Path) -> None:
    """Matches of a pattern below them are not listed, and the rest goes on."""
    with Wire(page([], None, ["a\ud800/"])) as wire:
        summary = cp("gs://bkt/*/x", f"{tmp_path}/out/", literal=False, settings=Settings(endpoint=wire.url))
    assert (summary.done, summary.failed) == (0, 1)
    assert "not Unicode" in str(summary.failures[0].error)


def test_a_name_twice_is_no_crash() -> None:
    """Neither where a listing is looked at for files that would have to be folders."""
    nesting = Nesting()
    assert [nesting.parent(name) for name in ("a", "a", "a/b", "a/b")] == [None, None, "a", "a"]


def test_odd_addresses_can_be_written_down() -> None:
    """Their text is always Unicode."""
    assert [str(Url("bkt", name)) for name in ("a", "ä", *ODD)] == [
        "gs://bkt/a", "gs://bkt/ä", "gs://bkt/a\\ud800b", "gs://bkt/a\\udc80b",
    ]  # fmt: skip


def test_requests_for_tokens_follow_no_redirect() -> None:
    """They hold secrets, which stay with the server that they are for."""
    with (
        Wire(reply(200)) as elsewhere,
        Wire(reply(307, b"", f"Location: {elsewhere.url}")) as wire,
        token_session() as session,
    ):
        assert session.request("POST", wire.url, data=b"assertion=SECRET", timeout=5).status_code == 307
        assert elsewhere.seen == []


def test_requests_for_tokens_read_no_endless_body() -> None:
    """A megabyte is more than any token."""
    with Wire(reply(200, bytes(ANSWER)), reply(200, bytes(2 * ANSWER))) as wire, token_session() as session:
        assert len(session.request("POST", wire.url, data=b"", timeout=5).content) == ANSWER
        with pytest.raises(requests.exceptions.RequestException, match="goes on after"):
            session.request("POST", wire.url, data=b"", timeout=5)


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
def test_requests_for_tokens_on_this_machine_go_through_no_proxy(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """It would read the secrets in them."""
    monkeypatch.delenv("no_proxy", raising=False)
    with Wire(reply(200)) as proxy, Wire(reply(204)) as wire, token_session() as session:
        monkeypatch.setenv(name, proxy.url)
        for host in ("127.0.0.1", "localhost"):
            url = wire.url.replace("127.0.0.1", host)
            assert session.request("POST", f"{url}/token", data=b"SECRET", timeout=5).status_code == 204
        assert session.request("POST", "http://tokens.invalid/", data=b"", timeout=5).status_code == 200
        assert [each.target for each in proxy.seen] == ["http://tokens.invalid/"]
