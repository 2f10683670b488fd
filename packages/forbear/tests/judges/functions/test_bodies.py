"""Files and iterators from outside of a function: a second attempt would send what the first has left of them."""

import asyncio
import contextlib
import csv
import http.client
import io
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import httpx
import pytest
import requests
import urllib3

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.wire import Answer, Wire, reply

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
CONTENT = b"x" * 5000
LOST, OK = Answer(end="close"), reply(200, b"{}")
HALF = reply(200, b"half", length=100, end="close")
BUSY = reply(503, b"{}")


FILES = contextlib.ExitStack()


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    with FILES:
        yield


def file() -> Any:
    """Return a file as `open` does, at its start."""
    opened = FILES.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - it is closed after the test
    opened.write(CONTENT)
    opened.seek(0)
    return opened


def named() -> Any:
    """Return a wrapper around a file."""
    opened = FILES.enter_context(tempfile.NamedTemporaryFile())  # noqa: SIM115 - it is closed after the test
    opened.write(CONTENT)
    opened.seek(0)
    return opened


def buffer() -> Any:
    """Return a file in memory."""
    return io.BytesIO(CONTENT)


def chunks() -> Iterator[bytes]:
    """Yield the content in parts."""
    yield CONTENT[:2000]
    yield CONTENT[2000:]


async def async_chunks() -> AsyncIterator[bytes]:
    """Yield the content in parts."""
    yield CONTENT[:2000]
    yield CONTENT[2000:]


class Progress:
    """A wrapper around a file, as one that counts what was read."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def read(self, size: int = -1) -> Any:
        """Read from the file."""
        return self.wrapped.read(size)


def _by_requests(url: str, body: Any) -> None:
    requests.put(url, data=body, timeout=5).raise_for_status()


def _by_form(url: str, body: Any) -> None:
    requests.put(url, files={"file": body}, timeout=5).raise_for_status()


def _by_urllib(url: str, body: Any) -> None:
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Length": str(len(CONTENT))})
    with urllib.request.urlopen(request, timeout=5) as response:
        response.read()


def _by_http_client(url: str, body: Any) -> None:
    parts = urlsplit(url)
    with contextlib.closing(http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=5)) as connection:
        connection.request("PUT", parts.path, body=body)
        response = connection.getresponse()
        response.read()
        if response.status == 503:
            raise requests.RequestException


def _by_urllib3(url: str, body: Any) -> None:
    with urllib3.PoolManager(retries=False) as pool:
        pool.request("PUT", url, body=body)


def _by_httpx(url: str, body: Any) -> None:
    with httpx.Client(verify=False) as client:
        client.put(url, content=body).raise_for_status()


def _by_form_of_httpx(url: str, body: Any) -> None:
    with httpx.Client(verify=False) as client:
        client.put(url, files={"file": body}).raise_for_status()


def _by_async_httpx(url: str, body: Any) -> None:
    async def send() -> None:
        async with httpx.AsyncClient(verify=False) as client:
            (await client.put(url, content=body)).raise_for_status()

    asyncio.run(send())


def _by_aiohttp(url: str, body: Any) -> None:
    async def send() -> None:
        async with aiohttp.ClientSession() as session, session.put(url, data=body) as response:
            response.raise_for_status()
            await response.read()

    asyncio.run(send())


class Case(NamedTuple):
    """A client, what makes its body, and what the server does with the first request."""

    send: Callable[[str, Any], None]
    make: Callable[[], Any]
    fault: Answer = LOST


CASES = [
    Case(_by_requests, file),
    Case(_by_requests, named),
    Case(_by_requests, buffer, BUSY),
    Case(_by_requests, chunks, HALF),
    Case(_by_form, file),
    Case(_by_form, buffer, BUSY),
    Case(_by_urllib, file),
    Case(_by_urllib, chunks, HALF),
    Case(_by_http_client, file),
    Case(_by_http_client, chunks, HALF),
    Case(_by_urllib3, file),
    Case(_by_urllib3, chunks, HALF),
    Case(_by_httpx, file),
    Case(_by_httpx, chunks),
    Case(_by_async_httpx, async_chunks),
    Case(_by_aiohttp, async_chunks),
    Case(_by_aiohttp, buffer, HALF),
]


def run(work: Callable[[str], object], *answers: Answer) -> tuple[list[int], BaseException | None]:
    """Run a function under a policy, and return the lengths of the bodies that arrived, and its error."""
    found = None
    with Wire(*answers) as wire, virtual_time():
        try:
            POLICY.call(work, f"{wire.url}/file")
        except Exception as error:
            found = error
        return [len(seen.body) for seen in wire.seen if seen.method == "PUT"], found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.send.__name__}-{case.make.__name__}")
def test_a_body_from_outside_is_sent_once(case: Case) -> None:
    """The server would store an empty or a cut body as success; one that is made in the function is whole each time."""
    body = case.make()
    lengths, error = run(lambda url: case.send(url, body), case.fault, OK)
    assert len(lengths) == 1
    assert error is not None
    assert "open it in the function, or pass bytes" in str(error.__notes__)
    lengths, error = run(lambda url: case.send(url, case.make()), case.fault, OK)
    assert error is None
    assert len(lengths) == 2
    assert min(lengths) >= len(CONTENT)


def test_what_wraps_a_body_from_outside() -> None:
    """The wrapper is made in the function, the file is not; nor is that of a `self`."""
    opened, wrapper = file(), Progress(file())
    assert run(lambda url: _by_urllib3(url, Progress(opened)), LOST, OK)[0] == [5000]

    def upload(url: str, owner: Progress) -> None:
        _by_urllib3(url, owner.wrapped)

    assert run(lambda url: POLICY.call(upload, url, wrapper), LOST, OK)[0] == [5000]


def test_bytes_that_were_read_from_a_file_of_outside() -> None:
    """The next attempt would read nothing."""

    def upload(url: str) -> None:
        _by_requests(url, opened.read())

    opened = file()
    assert run(upload, LOST, OK)[0] == [5000]


class Upload:
    """A holder of a file, as in the requests of web frameworks."""

    def __init__(self, opened: Any) -> None:
        self.file = opened

    def read(self) -> bytes:
        """Read what is left of the file."""
        content: bytes = self.file.read()
        return content

    def send(self, url: str) -> None:
        """Send what is left of the file."""
        _by_requests(url, self.file.read())

    def send_form(self, url: str) -> None:
        """Send the file in a form, which requests reads before it sends."""
        requests.put(url, files={"a": self.file}, timeout=5)


def _send_of(url: str, upload: Upload) -> None:
    _by_requests(url, upload.file.read())


def _send_read(url: str, upload: Upload) -> None:
    _by_requests(url, upload.read())


def _send_item(url: str, job: dict[str, Any]) -> None:
    _by_requests(url, job["file"].read())


def _send_lines(url: str, opened: Any) -> None:
    for line in opened:
        _by_requests(url, line)


def _send_rows(url: str, opened: Any) -> None:
    for row in csv.reader(opened):
        _by_requests(url, row[0].encode())


class Job:
    """A job that has its file from its class."""

    file: Any

    def send(self, url: str) -> None:
        """Send what is left of the file."""
        _by_requests(url, self.file.read())

    @classmethod
    def send_by_class(cls, url: str) -> None:
        """Send what is left of the file."""
        _by_requests(url, cls.file.read())


def _job_of(opened: Any) -> Any:
    return type("SubJob", (type("OwnJob", (Job,), {"file": opened}),), {})


def _send_read_rows(url: str, rows: Any) -> None:
    for row in rows:
        _by_requests(url, "".join(row).encode())


def _send_next_row(url: str, rows: Any) -> None:
    _by_requests(url, next(rows)[0].encode())


SENDERS: dict[str, Callable[[Any], Callable[[str], None]]] = {
    "of self": lambda opened: Upload(opened).send,
    "form": lambda opened: Upload(opened).send_form,
    "of an argument": lambda opened: partial(_send_of, upload=Upload(opened)),
    "by an argument": lambda opened: partial(_send_read, upload=Upload(opened)),
    "item": lambda opened: partial(_send_item, job={"file": opened}),
    "lines": lambda opened: partial(_send_lines, opened=opened),
    "rows": lambda opened: partial(_send_rows, opened=io.TextIOWrapper(opened)),
    "read rows": lambda opened: partial(_send_read_rows, rows=csv.reader(io.TextIOWrapper(opened))),
    "next row": lambda opened: partial(_send_next_row, rows=csv.reader(io.TextIOWrapper(opened))),
    "read rows of dicts": lambda opened: partial(_send_read_rows, rows=csv.DictReader(io.TextIOWrapper(opened))),
    "of a class": lambda opened: _job_of(opened)().send,
    "by a class": lambda opened: _job_of(opened).send_by_class,
}


@pytest.mark.parametrize("name", SENDERS)
def test_a_file_that_the_function_reads(name: str) -> None:
    """A file of outside counts wherever the function finds it by name, and however it reads it."""
    opened = io.BytesIO(b"first\nsecond\n")
    assert len(run(SENDERS[name](opened), LOST, OK)[0]) == 1


def test_a_function_that_begins_its_body_anew() -> None:
    """`seek` in the function makes the second body whole; httpx does so itself with the files of a form."""
    opened = file()

    def upload(url: str) -> None:
        opened.seek(0)
        _by_requests(url, opened)

    assert run(upload, LOST, OK) == ([5000, 5000], None)
    body: Any = chunks()

    def upload_chunks(url: str) -> None:
        if hasattr(body, "seek"):
            body.seek(0)
        _by_requests(url, body)

    assert run(upload_chunks, LOST, OK)[0] == [5000]  # nobody can begin a generator anew
    lengths, error = run(lambda url: _by_form_of_httpx(url, opened), LOST, OK)
    assert (len(set(lengths)), len(lengths), error) == (1, 2, None)


def test_nothing_of_the_body_was_read() -> None:
    """A refused connection is repeated, and so is a body that the client has not begun."""
    with Wire(OK) as nobody:
        pass
    opened, calls = file(), list[int]()

    def upload() -> None:
        calls.append(1)
        _by_urllib3(nobody.url, opened)

    with virtual_time(), pytest.raises(urllib3.exceptions.NewConnectionError):
        POLICY.call(upload)
    assert len(calls) == 3
    assert run(lambda url: _touch(url, opened), LOST, OK)[0] == [1, 1]


def _touch(url: str, opened: Any) -> None:
    assert opened.readable()
    requests.put(url, data=b"1", timeout=5)


def test_the_users_word() -> None:
    """`safe=` vouches for a second execution, not for an empty one; `repeatable=True` vouches for the function."""
    opened = file()
    with Wire(LOST, OK) as wire, virtual_time():
        url = f"{wire.url}/file"
        with pytest.raises(requests.ConnectionError):
            POLICY.with_changes(safe=f"PUT {url}").call(_by_requests, url, opened)
        POLICY.with_changes(repeatable=True).call(_by_requests, url, opened)
        assert [len(seen.body) for seen in wire.seen] == [5000, 0]


def test_a_file_that_boto3_uploads() -> None:
    """Botocore begins it anew for its own retries, but not for the next call; a file of each attempt is sent again."""
    opened = file()
    with Wire(LOST) as wire, virtual_time():
        storage = aws.client("s3", wire.url, attempts=1)
        for upload, sent in (
            (lambda: storage.put_object(Bucket="b", Key="k", Body=opened), 1),
            (lambda: storage.put_object(Bucket="b", Key="k", Body=file()), 4),
        ):
            with pytest.raises(Exception, match="Connection was closed"):
                POLICY.call(upload)
            assert len(wire.seen) == sent
        aws.close_all()


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_a_file_that_is_no_body(method: str, tmp_path: Path) -> None:
    """A log that is written, or a file that another function has read, does not stop a write of bytes."""
    path = tmp_path / "log"
    path.write_text("first line\n", encoding="utf-8")
    with Wire(Answer(end="close"), reply(200)) as wire, virtual_time(), path.open("a", encoding="utf-8") as log:
        with path.open(encoding="utf-8") as settings:
            settings.readline()

            def work(log: Any, settings: Any) -> None:
                log.write("try\n")
                requests.request(method, wire.url, data=None if method == "DELETE" else b"whole", timeout=5)

            POLICY.call(work, log, settings)
        assert len(wire.seen) == 2
