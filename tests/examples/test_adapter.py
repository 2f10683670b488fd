"""The adapter in `examples/adapter`, outside of forbear: it retries as forbear's own do, by public names only."""

import ast
import io
import socket
from collections.abc import Iterator
from http.client import InvalidURL
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import OpenerDirector, Request, build_opener

import pytest

import forbear
from forbear.events import Reason
from forbear.services import cloud_storage, rfc9110
from forbear.testing import virtual_time
from forbear.testing.virtual_clock import VirtualTime
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.wire import Wire, reply
from forbear_testkit.examples.load import FOLDER, load

MEDIA = "/storage/v1/b/bkt/o/there?alt=media"
UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=new"
adapter = load("adapter/urllib_retries")


@pytest.fixture(scope="module")
def running_cloud() -> Iterator[Cloud]:
    """A cloud for all tests."""
    with Cloud() as cloud:
        yield cloud


@pytest.fixture
def cloud(running_cloud: Cloud) -> Cloud:
    """The cloud with a bucket and an object."""
    running_cloud.reset()
    running_cloud.clear_faults()
    running_cloud.store.create_bucket("bkt")
    with build_opener().open(running_cloud.url + UPLOAD.replace("new", "there"), data=b"content"):
        return running_cloud


@pytest.fixture(autouse=True)
def time() -> Iterator[VirtualTime]:
    """Virtual time."""
    with virtual_time(seed=7) as time:
        yield time


def opener(*args: Any, **options: Any) -> OpenerDirector:
    """An opener that retries."""
    return build_opener(adapter.RetryHandler(*args, **options))


def sent(cloud: Cloud) -> list[str]:
    """The methods of the requests since the object was made."""
    return [request.method for request in cloud.requests][1:]


def made(cloud: Cloud) -> int:
    """The number of writes that were executed since the object was made."""
    return cloud.effects.total - 1


def test_it_imports_public_names_only() -> None:
    """The adapter imports the public names of forbear and `forbear.adapters`, and no name with an underscore."""
    tree = ast.parse((FOLDER / "adapter" / "urllib_retries.py").read_text(encoding="utf-8"))
    imported = [each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)]
    modules = {name for each in imported for name in _modules(each) if name.partition(".")[0] == "forbear"}
    assert modules == {"forbear", "forbear.adapters"}
    names = {alias.name for each in imported if isinstance(each, ast.ImportFrom) for alias in each.names}
    assert not {name for name in names if name.startswith("_")}
    read = [each for each in ast.walk(tree) if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "forbear"]
    assert {each.attr for each in read} <= {*forbear.__all__, *forbear._PARTS}


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]


def test_a_read_is_repeated(cloud: Cloud, time: VirtualTime) -> None:
    """A GET is sent again after 503, not before its Retry-After has passed."""
    cloud.fault(Fault.status(503, retry_after=7))
    with opener().open(cloud.url + MEDIA) as response:
        assert (response.status, response.read()) == (200, b"content")
    assert sent(cloud) == ["GET", "GET"]
    assert time.slept[0] >= 7
    assert forbear.report(response) is None


def test_a_write_without_proof_is_not_repeated(cloud: Cloud) -> None:
    """A POST that got a 503 may have been executed; the error of the response has the report."""
    cloud.fault(Fault.status(503))
    with pytest.raises(HTTPError) as caught:
        opener().open(cloud.url + UPLOAD, data=b"x")
    report = forbear.report(caught.value)
    assert caught.value.code == 503
    assert report is not None
    assert report.reason is Reason.UNSAFE
    assert caught.value.__notes__ == [report.note]
    assert (sent(cloud), made(cloud)) == (["POST"], 0)
    caught.value.close()


@pytest.mark.parametrize("why", ["vouched", "conditional"])
def test_a_write_that_may_be_executed_twice_is_repeated(cloud: Cloud, why: str) -> None:
    """It may be if the user vouches for it, or if it has the precondition that the service's table names."""
    cloud.fault(Fault.status(503))
    if why == "vouched":
        client, url = opener(safe=f"POST {cloud.url}/upload/storage/v1/b/*/o?*"), UPLOAD
    else:
        client, url = opener(cloud_storage.policy), f"{UPLOAD}&ifGenerationMatch=0"
    client.open(cloud.url + url, data=b"x").close()
    assert (sent(cloud), made(cloud)) == (["POST", "POST"], 1)


def test_a_lost_response_is_given_up(cloud: Cloud) -> None:
    """The upload was executed, once; nothing proves that to the client, so it raises the error with its report."""
    cloud.fault(Fault.close(when="after"))
    with pytest.raises(ConnectionError) as caught:
        opener().open(cloud.url + UPLOAD, data=b"x")
    assert (sent(cloud), made(cloud)) == (["POST"], 1)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is Reason.UNSAFE
    assert "must not be executed twice" in report.text


def test_what_was_never_sent_is_repeated(time: VirtualTime) -> None:
    """A refused connection proves that nothing was executed, so even a POST is repeated, until the limits end it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(URLError) as caught:
        opener(rfc9110.policy.with_attempts(3)).open(f"http://127.0.0.1:{port}/", data=b"x")
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.reason, len(report.attempts), len(time.slept)) == (Reason.ATTEMPTS, 3, 2)


def test_what_cannot_be_sent_is_not_repeated(time: VirtualTime) -> None:
    """No other attempt makes a wrong URL right."""
    with pytest.raises(InvalidURL, match="URL can't contain control characters"):
        opener().open("http://127.0.0.1:9/with space")
    assert time.slept == []


@pytest.mark.parametrize("fault", [Fault.truncate(keep=3), Fault.truncate(keep=3, reset=True)], ids=["close", "reset"])
def test_a_broken_download_is_continued(cloud: Cloud, fault: Fault) -> None:
    """The caller gets the whole body; the second request asks for the rest."""
    cloud.fault(fault)
    with opener().open(cloud.url + MEDIA) as response:
        assert response.read() == b"content"
        assert response.headers["Content-Length"] == "7"
    assert sent(cloud) == ["GET", "GET"]


def test_a_download_that_starts_over_has_the_new_headers() -> None:
    """If the object has changed before a byte arrived, the caller has the headers of what he reads."""
    broken = reply(200, b"", 'ETag: "a"', length=3, end="close")
    with Wire(broken, reply(200, b"other", 'ETag: "b"')) as wire, opener().open(wire.url) as response:
        assert response.read() == b"other"
        assert (response.headers["ETag"], response.headers["Content-Length"]) == ('"b"', "5")


@pytest.mark.parametrize(
    "data", [b"whole", io.BytesIO(b"whole"), iter([b"wh", b"ole"])], ids=["bytes", "file", "stream"]
)
def test_a_body_is_sent_again_from_its_start(data: Any) -> None:
    """Whatever the body is, each attempt sends all of it; the caller's request stays as it was."""
    request = Request("http://x", data=data, method="PUT")
    with Wire(reply(503), reply(200)) as wire:
        request.full_url = f"{wire.url}?a=b"
        opener().open(request).close()
        assert [seen.body for seen in wire.seen] == [b"whole"] * 2
        assert [seen.target for seen in wire.seen] == ["/?a=b"] * 2
    assert request.data is data


def test_a_key_is_the_same_in_all_attempts() -> None:
    """With an idempotency key that the API honours, a POST is repeated."""
    with Wire(reply(503), reply(200)) as wire:
        api = forbear.Api(wire.url, key=forbear.IdempotencyKey("Idempotency-Key", add=True))
        opener(apis=api).open(wire.url, data=b"x").close()
        keys = [seen.header("idempotency-key") for seen in wire.seen]
    assert len(keys) == 2
    assert len({*keys} - {None}) == 1


def test_a_result_is_judged_and_still_there() -> None:
    """`on_result` reads the body of each response, and the caller reads that of the last one."""
    policy = forbear.retry(OSError, on_result=lambda response: response.read() == b"not yet")
    with Wire(reply(200, b"not yet"), reply(200, b"done")) as wire, opener(policy).open(wire.url) as response:
        assert response.read() == b"done"
        assert len(wire.seen) == 2


def test_retries_can_be_turned_off(cloud: Cloud) -> None:
    """Within `forbear.disabled()` the library does what it always does."""
    cloud.fault(Fault.status(503))
    with forbear.disabled(), pytest.raises(HTTPError) as caught:
        opener().open(cloud.url + MEDIA)
    caught.value.close()
    assert sent(cloud) == ["GET"]
    assert forbear.report(caught.value) is None
