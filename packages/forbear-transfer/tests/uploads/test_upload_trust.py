"""The trust of uploads: where data may go, and which reports of success count."""

import json
from collections.abc import Awaitable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from forbear.services import cloud_storage
from forbear_cloud.storage.model import crc32c_of
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.transfer.uploads import CHUNK, TARGET, data_of, file_of, storing
from forbear_transfer.downloads.download import download
from forbear_transfer.errors import ChecksumMismatch, HttpError, TargetChanged, TransferError, WrongResponse
from forbear_transfer.objects import Object, Url
from forbear_transfer.rewrite import copy
from forbear_transfer.state import State
from forbear_transfer.storage.client import Storage
from forbear_transfer.storage.endpoint import is_trusted, proxy
from forbear_transfer.uploads.upload import upload
from forbear_transfer.wire.response import Broken

pytestmark = pytest.mark.anyio

SECRET = "upload_id=SECRET"
PLACE = f"/upload/storage/v1/b/bkt/o?uploadType=resumable&{SECRET}"
FEW = cloud_storage.policy.with_attempts(2)
DATA = data_of(2 * CHUNK)


def resource(data: bytes = DATA, **changes: Any) -> dict[str, Any]:
    """Return the metadata of an object, as a server states them."""
    own = {"bucket": TARGET.bucket, "name": TARGET.name, "generation": "5", "size": str(len(data))}
    return {**own, "crc32c": crc32c_of(data), **changes}


def told(value: dict[str, Any]) -> Answer:
    """Return a response with an object's metadata."""
    return reply(200, json.dumps(value).encode(), "Content-Type: application/json")


def begun(location: str = PLACE) -> Answer:
    """Return a response that begins a session."""
    return reply(200, b"", f"Location: {location}")


def half() -> Answer:
    """Return a response that acknowledges the first chunk."""
    return reply(308, b"", f"Range: bytes=0-{CHUNK - 1}")


E = "https://storage.googleapis.com"
HERE = "http://127.0.0.1:4443"


@pytest.mark.parametrize(
    ("endpoint", "url", "home"),
    [
        (E, f"{E}{PLACE}", True),
        (E, f"{E}:443{PLACE}", True),
        (E, f"https://STORAGE.googleapis.com{PLACE}", True),
        (E, f"https://www.googleapis.com{PLACE}", True),
        ("https://gcs.example", f"{E}{PLACE}", True),
        ("https://gcs.example:8443", f"https://gcs.example:8443{PLACE}", True),
        (HERE, f"{HERE}{PLACE}", True),
        (HERE, f"http://localhost:4443{PLACE}", True),
        (HERE, f"http://0.0.0.0:4443{PLACE}", True),
        (HERE, f"http://[::1]:4443{PLACE}", True),
        ("http://localhost:4443", f"http://127.0.0.1:4443{PLACE}", True),
        (E, f"http://storage.googleapis.com{PLACE}", False),
        (E, f"https://www.googleapis.com:444{PLACE}", False),
        (E, f"https://evil.example{PLACE}", False),
        (E, f"https://storage.googleapis.com.evil.example{PLACE}", False),
        (E, f"https://evilgoogleapis.com{PLACE}", False),
        (E, f"https://storage.googleapis.com@evil.example{PLACE}", False),
        (E, f"https://me:pw@storage.googleapis.com{PLACE}", False),
        (E, f"https://evil.example\\@storage.googleapis.com{PLACE}", False),
        (E, f"https://storage.googleapis.com\t.evil.example{PLACE}", False),
        ("https://gcs.example", f"https://gcs.example:8443{PLACE}", False),
        ("https://gcs.example", f"http://gcs.example{PLACE}", False),
        ("http://gcs.example", f"http://www.googleapis.com{PLACE}", False),
        ("http://gcs.example:4443", f"http://127.0.0.1:4443{PLACE}", False),
        (HERE, f"http://127.0.0.1:4444{PLACE}", False),
        (HERE, f"http://127.0.0.2:4444{PLACE}", False),
        (HERE, f"http://gcs.example:4443{PLACE}", False),
        (HERE, f"https://www.googleapis.com{PLACE}", False),
        (HERE, f"http://u:p@127.0.0.1:4443{PLACE}", False),
        (HERE, f"http://127.0.0.1:99999{PLACE}", False),
        (HERE, f"http://[::bad{PLACE}", False),
        (HERE, f"http:///{PLACE}", False),
        (HERE, "file:///etc/passwd", False),
        (HERE, f"ftp://127.0.0.1:4443{PLACE}", False),
        (HERE, f"{HERE}{PLACE} x", False),
        (HERE, "", False),
    ],
)
def test_where_data_may_go(endpoint: str, url: str, home: bool) -> None:
    """Data may go to the endpoint, to another name of this machine or to another host of Google's, and nowhere else."""
    assert is_trusted(url, endpoint) is home


@pytest.mark.parametrize("stream", [False, True])
async def test_a_session_elsewhere_is_refused(tmp_path: Path, stream: bool) -> None:
    """A session at another host gets no byte, and the error does not show its secret."""
    with Wire(told(resource())) as elsewhere, Wire(begun(f"{elsewhere.url}{PLACE}")) as wire:
        source = file_of(tmp_path, len(DATA))
        async with storing(wire.url, policy=FEW) as storage:
            with pytest.raises(WrongResponse, match=elsewhere.url) as caught:
                await upload(storage, BytesIO(DATA) if stream else source, TARGET, chunk_size=CHUNK)
        assert elsewhere.seen == []
    assert "SECRET" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    "location", ["http://[::bad", "http://127.0.0.1:99999/", "file:///etc/passwd", "/x y", "//evil"]
)
async def test_an_address_that_cannot_be_read_is_refused(tmp_path: Path, location: str) -> None:
    """An invalid Location is the same error."""
    with Wire(begun(f"{location}?{SECRET}")) as wire:
        async with storing(wire.url, policy=FEW) as storage:
            with pytest.raises(WrongResponse, match="does not belong") as caught:
                await upload(storage, file_of(tmp_path, len(DATA)), TARGET, chunk_size=CHUNK)
        assert len(wire.seen) == 1
    assert "SECRET" not in str(caught.value)


async def test_a_kept_session_elsewhere_is_not_gone_on_with(tmp_path: Path) -> None:
    """If a state has a session at another host, the upload begins again."""
    with Wire(told(resource())) as elsewhere, Wire(begun(), half(), told(resource())) as wire:
        source = file_of(tmp_path, len(DATA))
        seen = source.stat()
        this = {
            "source": [seen.st_size, seen.st_mtime_ns, seen.st_ino],
            "resource": {
                "contentType": "application/octet-stream",
                "metadata": {"goog-reserved-file-mtime": str(int(seen.st_mtime))},
            },
            "asked": None,
        }
        for changed in ({}, {"asked": 7}):
            wire.answers = [begun(), half(), told(resource())]
            with State(tmp_path / "state", "upload", wire.url, str(TARGET), str(source)) as state:
                state.save({**this, **changed, "session": f"{elsewhere.url}{PLACE}", "generation": 0})
            async with storing(wire.url) as storage:
                await upload(storage, source, TARGET, chunk_size=CHUNK, state=tmp_path / "state")
        assert elsewhere.seen == []
        assert [each.method for each in wire.seen] == ["POST", "PUT", "PUT"] * 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_carry_nothing_elsewhere(tmp_path: Path, status: int) -> None:
    """Neither requests nor data nor credentials follow a redirect."""
    small, large = file_of(tmp_path, 10, "small"), file_of(tmp_path, len(DATA), "large")
    with Wire(told(resource())) as elsewhere:
        away = reply(status, b"", f"Location: {elsewhere.url}/steal?{SECRET}")
        with Wire(away) as wire:
            async with storing(wire.url, policy=FEW) as storage:
                url = TARGET
                for attempt in (
                    storage.stat(url),
                    storage.delete(Object.of(resource()).url),
                    upload(storage, small, url),
                    upload(storage, large, url, chunk_size=CHUNK),
                    download(storage, url, tmp_path / "file"),
                    download(storage, Object.of(resource()), tmp_path / "file"),
                    copy(storage, Object.of(resource(name="other")), url),
                ):
                    with pytest.raises(TransferError):
                        await attempt
                wire.answers = [begun(), away]
                with pytest.raises(TransferError):
                    await upload(storage, large, url, chunk_size=CHUNK)
        assert elsewhere.seen == []


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4443", "127.9.9.9", "localhost:1", "LOCALHOST.", "[::1]:4443"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_proxy_is_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch, endpoint: str, scheme: str) -> None:
    """Requests to a loopback endpoint use no proxy, which could read the tokens."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://proxy.invalid:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    assert proxy(f"{scheme}://{endpoint}") is None
    assert proxy(f"{scheme}://127.example") == "http://proxy.invalid:3128"


NOT_OURS = [
    pytest.param({"name": "other"}, WrongResponse, id="another object"),
    pytest.param({"bucket": "other"}, WrongResponse, id="another bucket"),
    pytest.param({"generation": "4"}, WrongResponse, id="what was there before"),
    pytest.param({"generation": "4", "size": "1"}, WrongResponse, id="what was there before, of another size"),
]


def deletions(wire: Wire) -> list[str]:
    """Return the objects that the client has deleted."""
    paths = [each.target.partition("?")[0] for each in wire.seen if each.method == "DELETE"]
    return [path for path in paths if not path.startswith("/upload/")]


def sent(storage: Storage, wire: Wire, folder: Path, way: str, answer: dict[str, Any]) -> Awaitable[Object]:
    """Upload or copy to TARGET, over generation 4; the last response is `answer`."""
    if way == "rewrite":
        wire.answers = [told({"done": True, "totalBytesRewritten": "0", "resource": answer})]
        return copy(storage, Object.of(resource(name="source")), TARGET, generation=4)
    if way == "insert":
        wire.answers = [told(answer)]
        return upload(storage, file_of(folder, len(DATA)), TARGET, generation=4)
    wire.answers = [begun(), half(), told(answer)]
    return upload(storage, file_of(folder, len(DATA)), TARGET, generation=4, chunk_size=CHUNK)


@pytest.mark.parametrize(
    "changes",
    [{"name": "other"}, {"bucket": "other"}, {"generation": "4"}, {"generation": "4", "size": "1"}],
    ids=["another object", "another bucket", "what was there", "what was there, of another size"],
)
@pytest.mark.parametrize("way", ["insert", "session", "rewrite"])
async def test_a_completion_of_something_else(tmp_path: Path, changes: dict[str, Any], way: str) -> None:
    """If the server reports an object that this upload cannot have made, the upload fails and deletes nothing."""
    with Wire(reply(500)) as wire:
        async with storing(wire.url, policy=FEW) as storage:
            with pytest.raises(WrongResponse, match="the server says that it made"):
                await sent(storage, wire, tmp_path, way, resource(**changes))
    assert deletions(wire) == []


@pytest.mark.parametrize("way", ["insert", "session", "rewrite"])
async def test_wrong_bytes_are_deleted_where_they_are_ours(tmp_path: Path, way: str) -> None:
    """A new version at the target with other bytes than were sent is deleted."""
    with Wire(reply(500)) as wire:
        async with storing(wire.url, policy=FEW) as storage:
            with pytest.raises(ChecksumMismatch):
                await sent(storage, wire, tmp_path, way, resource(data_of(len(DATA), 2)))
    assert deletions(wire) == [TARGET.path]


@pytest.mark.parametrize(
    ("said", "there", "right"),
    [
        ({}, {}, True),
        ({}, {"generation": "4"}, False),
        ({}, None, False),
        ({}, {"size": "3"}, False),
        ({}, {"crc32c": "AAAAAA=="}, False),
        ({"size": "3"}, {"size": "3"}, False),
        ({"customerEncryption": {"keySha256": "another"}}, {}, False),
    ],
    ids=["there", "unchanged", "nothing", "another size", "other bytes", "somebody else's", "another key"],
)
@pytest.mark.parametrize("refusal", [400, 412])
async def test_a_session_that_was_refused_and_then_is_done(
    tmp_path: Path, said: dict[str, Any], there: dict[str, Any] | None, right: bool, refusal: int
) -> None:
    """A 200 after a 412 counts only if the object exists as stated; nothing is deleted."""
    look = reply(404) if there is None else told(resource(**there))
    with Wire(begun(), half(), reply(refusal), told(resource(**said)), look) as wire:
        async with storing(wire.url, policy=FEW) as storage:
            work = upload(storage, file_of(tmp_path, len(DATA)), TARGET, chunk_size=CHUNK)
            if right:
                assert (await work).generation == 5
            else:
                with pytest.raises((TargetChanged, ChecksumMismatch, WrongResponse)) as caught:
                    await work
                assert "deleted" not in str(caught.value)
    assert deletions(wire) == []


@pytest.mark.parametrize("there", [True, False])
async def test_a_session_that_is_done_before_its_end_was_sent(tmp_path: Path, there: bool) -> None:
    """If the server reports success before the last byte was sent, the object is looked at."""
    look = told(resource()) if there else reply(404)
    with Wire(begun(), told(resource()), look) as wire:
        async with storing(wire.url, policy=FEW) as storage:
            work = upload(storage, file_of(tmp_path, len(DATA)), TARGET, chunk_size=CHUNK)
            if there:
                assert (await work).generation == 5
            else:
                with pytest.raises(TargetChanged, match="there is nothing"):
                    await work


@pytest.mark.parametrize("there", [True, False])
async def test_a_completion_without_a_checksum_is_looked_at(tmp_path: Path, there: bool) -> None:
    """If the server states no checksum, the object is looked at."""
    bare = {name: value for name, value in resource().items() if name != "crc32c"}
    with Wire(told(bare), told(bare) if there else reply(404)) as wire:
        async with storing(wire.url, policy=FEW) as storage:
            work = upload(storage, file_of(tmp_path, len(DATA)), TARGET)
            if there:
                assert (await work).size == len(DATA)
            else:
                with pytest.raises(TargetChanged):
                    await work


async def test_what_was_there_with_the_same_bytes_is_no_proof(tmp_path: Path) -> None:
    """If the response is lost, the replaced object does not pass for the new one, even with the same bytes."""
    with Wire(reply(200, b"", end="close", length=100), told(resource(generation="4"))) as wire:
        async with storing(wire.url, policy=cloud_storage.policy.with_attempts(1)) as storage:
            with pytest.raises(Broken):
                await upload(storage, file_of(tmp_path, len(DATA)), TARGET, generation=4)


@pytest.mark.parametrize("count", ["-1", str(len(DATA) + 1)])
async def test_a_copy_never_has_more_than_its_source(count: str) -> None:
    """A copy fails if the service reports more bytes than the source has."""
    answer = {"done": False, "totalBytesRewritten": count, "rewriteToken": "t"}
    with Wire(told(answer)) as wire:
        async with storing(wire.url, policy=FEW) as storage:
            with pytest.raises(WrongResponse, match="has copied"):
                await copy(storage, Object.of(resource(name="source")), TARGET)


async def test_the_address_of_a_session_needs_no_host(tmp_path: Path) -> None:
    """A Location without a host belongs to the endpoint."""
    with Wire(begun(PLACE), half(), told(resource())) as wire:
        async with Storage(endpoint=wire.url) as storage:
            await upload(storage, file_of(tmp_path, len(DATA)), Url("bkt", TARGET.name), chunk_size=CHUNK)
        assert [each.method for each in wire.seen] == ["POST", "PUT", "PUT"]


async def test_errors_of_refused_requests_are_http_errors(tmp_path: Path) -> None:
    """A redirect of a chunk ends the upload with its status."""
    with Wire(begun(), reply(307, b"", "Location: http://elsewhere.invalid/"), reply(200)) as wire:
        async with storing(wire.url, policy=FEW) as storage:
            with pytest.raises(HttpError, match="307"):
                await upload(storage, file_of(tmp_path, len(DATA)), TARGET, chunk_size=CHUNK)
