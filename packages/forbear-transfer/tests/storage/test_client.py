"""Storage: where requests go and what they say, what its errors mean, and that nothing is left open."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

import forbear
from forbear.core.verdict import Kind
from forbear.http.request import Request
from forbear.services import cloud_storage, iam
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.wire import Wire, reply
from forbear_testkit.transfer.uploads import metered, storing
from forbear_transfer.errors import HttpError, Stalled, TransferError
from forbear_transfer.objects import Url
from forbear_transfer.storage.client import Settings, Storage
from forbear_transfer.storage.endpoint import ENDPOINT, is_private, proxy
from forbear_transfer.wire.response import Broken, NotConnected

pytestmark = pytest.mark.anyio

CHUNK = Request(
    "PUT", "h", "/upload/storage/v1/b/b/o?uploadType=resumable&upload_id=1", {"content-range": "bytes 0-1/2"}
)


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        (None, None, ENDPOINT),
        (None, "localhost:4443", "http://localhost:4443"),
        (None, "http://localhost:4443/", "http://localhost:4443"),
        ("https://other", "localhost:4443", "https://other"),
    ],
)
def test_where_it_is(
    monkeypatch: pytest.MonkeyPatch, given: str | None, environment: str | None, expected: str
) -> None:
    """The argument, the environment, the real service."""
    if environment is not None:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", environment)
    assert Storage(endpoint=given).endpoint == expected


def test_arguments_are_checked() -> None:
    """With the rule and the cure."""
    with pytest.raises(ValueError, match="`endpoint` must be an http or https URL"):
        Storage(endpoint="ftp://x")
    with pytest.raises(ValueError, match="`policy` must be one of Cloud Storage"):
        Storage(policy=iam.policy)
    with pytest.raises(ValueError, match="`policy` must be one of Cloud Storage"):
        Storage(policy=forbear.retry(on=OSError))


async def test_it_must_be_entered() -> None:
    """Before, and not after it was left."""
    storage = Storage(endpoint="http://127.0.0.1:1")
    with pytest.raises(RuntimeError, match="must be entered"):
        await storage.stat(Url("b", "o"))
    async with storage:
        pass
    with pytest.raises(RuntimeError, match="must be entered"):
        await storage.stat(Url("b", "o"))


async def test_absence_is_an_answer(cloud: Cloud) -> None:
    """A look for an object that does not exist, and its deletion, are no failures of which listeners hear."""
    heard: list[object] = []
    async with storing(cloud, policy=cloud_storage.policy.with_on_event(heard.append), connections=1) as storage:
        for _ in range(2):
            assert await storage.stat(Url("bkt", "a")) is None
            await storage.delete(Url("bkt", "a"))
    assert heard == []


async def test_a_write_has_one_token_for_all_attempts(cloud: Cloud) -> None:
    """It is a UUID that no other write has; a read has none."""
    cloud.fault(Fault.status(503))
    policy = cloud_storage.policy.with_backoff(forbear.Constant(0))
    async with storing(cloud, policy=policy) as storage:
        for _ in range(2):
            await storage.delete(Url("bkt", "a"), {"ifGenerationMatch": 1})
        await storage.stat(Url("bkt", "a"))
    one, again, other, read = (request.headers.get("x-goog-gcs-idempotency-token") for request in cloud.requests)
    assert one == again != other
    made = UUID(one or "")
    assert (str(made), made.version, read) == (one, 4, None)


async def test_requests_say_who_pays(cloud: Cloud) -> None:
    """In each of them."""
    async with storing(cloud, user_project="payer") as storage:
        await storage.stat(Url("bkt", "a b+c&d=e%/ü"))
    assert "userProject=payer" in cloud.requests[0].query
    assert cloud.requests[0].path == "/storage/v1/b/bkt/o/a%20b%2Bc%26d%3De%25%2F%C3%BC"


async def test_what_is_there_is_told(cloud: Cloud) -> None:
    """An older version by its number, nothing as None, and an error as an error."""
    there = cloud.store.put("bkt", "thing", b"x", {"contentType": "a/b"})
    async with storing(cloud) as storage:
        found = await storage.stat(Url("bkt", "thing"))
        assert found is not None
        assert (found.generation, found.size, found.content_type) == (there.generation, 1, "a/b")
        assert await storage.stat(found.url) == found
        assert await storage.stat(Url("bkt", "thing", 5)) is None
        assert await storage.stat(Url("bkt", "none")) is None
        cloud.fault(Fault.status(403, message="no"))
        with pytest.raises(HttpError, match=r"look at gs://bkt/thing: 403 Forbidden: no"):
            await storage.stat(Url("bkt", "thing"))


async def test_lists_go_on_over_pages(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, with folders where a delimiter is given."""
    monkeypatch.setattr("forbear_transfer.storage.listing._PAGE_ITEMS", 2)
    for name in ("a/1", "a/2", "b", "c/1", "d"):
        cloud.store.put("bkt", name, b"x", {})
    async with storing(cloud) as storage:
        assert [each.name async for each in storage.objects("bkt")] == ["a/1", "a/2", "b", "c/1", "d"]
        folded = [
            str(each if isinstance(each, Url) else each.name) async for each in storage.objects("bkt", delimiter="/")
        ]
    assert sorted(folded) == ["b", "d", "gs://bkt/a/", "gs://bkt/c/"]


async def test_what_is_gone_is_deleted(cloud: Cloud) -> None:
    """Just that version, and once more is no error."""
    there = cloud.store.put("bkt", "thing", b"x", {})
    cloud.fault(Fault.reset(when="after", operation="storage.objects.delete"))
    async with storing(cloud) as storage:
        found = await storage.stat(Url("bkt", "thing"))
        assert found is not None
        await storage.delete(found.url)
        assert await storage.stat(Url("bkt", "thing")) is None
    assert cloud.effects.count("storage.objects.delete") == 1
    assert there.generation == found.generation


async def test_retries_are_told_to_both_listeners(cloud: Cloud) -> None:
    """Each to its own; the policy's listener stays."""
    heard: list[Any] = []
    cloud.fault(Fault.status(503, times=2))
    async with storing(cloud, policy=cloud_storage.policy.with_on_event(heard.append)) as storage:
        with metered() as told:
            await storage.stat(Url("bkt", "x"))
    assert told.retries == 2
    assert len(heard) > 2


@pytest.mark.parametrize(
    ("error", "request_", "kind"),
    [
        (HttpError("x", 503), CHUNK, Kind.TRANSIENT),
        (HttpError("x", 429), CHUNK, Kind.TRANSIENT),
        (HttpError("x", 403), CHUNK, Kind.PERMANENT),
        (HttpError("x", 503), None, Kind.TRANSIENT),
        (HttpError("x", 302), CHUNK, Kind.PERMANENT),
        (Stalled("x"), None, Kind.TRANSIENT),
        (Broken("x"), None, Kind.TRANSIENT),
        (NotConnected("x"), None, Kind.NOT_EXECUTED),
        (ValueError("x"), None, Kind.PERMANENT),
    ],
)
def test_errors_have_the_verdicts_of_the_service(error: Exception, request_: Request | None, kind: Kind) -> None:
    """The table of the service judges a response, and the kind of failure a connection."""
    assert Storage(endpoint="http://127.0.0.1:1").verdict(error, request_).kind is kind


def test_the_verdict_has_the_retry_after_of_the_server() -> None:
    """The verdict on a response has the seconds that the server asks for."""
    error = HttpError("x", 503, headers={"retry-after": "7"})
    assert Storage(endpoint="http://127.0.0.1:1").verdict(error, CHUNK).retry_after == 7


async def test_redirects_are_not_followed(cloud: Cloud) -> None:
    """A 308 is an answer of an upload session, and no other host is to be asked."""
    with Wire(reply(308, b"", "Location: http://127.0.0.1:1/")) as wire:
        async with storing(wire.url) as storage, await storage.stream("PUT", f"{wire.url}/x", {}) as response:
            assert response.status == 308
        assert len(wire.seen) == 1


@pytest.mark.parametrize(
    ("endpoint", "private"),
    [
        ("https://x", True),
        ("http://127.0.0.1:1", True),
        ("http://[::1]", True),
        ("http://x", False),
        ("http://", False),
    ],
)
def test_where_nobody_listens(endpoint: str, private: bool) -> None:
    """Encrypted, or on this machine."""
    assert is_private(endpoint) is private


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"https_proxy": "http://me:pw@proxy:1"}, "http://me:pw@proxy:1"),
        ({"https_proxy": "proxy:1"}, "http://proxy:1"),
        ({"https_proxy": "proxy:1", "no_proxy": ".example"}, None),
        ({"http_proxy": "proxy:1"}, None),
    ],
)
def test_the_proxy_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str | None
) -> None:
    """As other programs read it."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy("https://gcs.example") == expected


async def test_requests_go_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is looked for once, when the session begins."""
    with Wire(reply(200, b'{"bucket":"b","name":"o","generation":"1","size":"0"}')) as wire:
        monkeypatch.setenv("http_proxy", wire.url)
        monkeypatch.delenv("no_proxy", raising=False)
        async with storing("http://gcs.invalid") as storage:
            monkeypatch.delenv("http_proxy")
            await storage.stat(Url("b", "o"))
        assert wire.seen[0].target.startswith("http://gcs.invalid/storage/v1/b/b/o/o")


async def test_many_requests_share_their_connections() -> None:
    """As many as allowed at a time."""
    answer = reply(200, b'{"bucket":"b","name":"o","generation":"1","size":"0"}')
    with Wire(answer) as wire:
        async with storing(wire.url, connections=3) as storage:
            await asyncio.gather(*(storage.stat(Url("b", "o")) for _ in range(30)))
        assert wire.connections <= 3


async def test_a_response_that_breaks_off_while_its_object_is_replaced_is_asked_for_anew(cloud: Cloud) -> None:
    """Its rest would be that of another one."""
    cloud.store.put("bkt", "o", b"old")
    cloud.fault(
        Fault.truncate(share=0.5, operation="storage.objects.get"),
        Fault.replace_object(b"new!", operation="storage.objects.get"),
    )
    async with storing(cloud) as storage:
        found = await storage.stat(Url("bkt", "o"))
    assert found is not None
    assert found.size == 4


@pytest.mark.parametrize("body", ["<html>log in here</html>", "\xff", "[" * 100_000, "{}", "[]", '{"bucket": 1}', "7"])
async def test_a_response_without_a_json_object_is_an_error(body: str) -> None:
    """A response that is no JSON, or no object, is an error that says so, whoever sent it."""
    with Wire(reply(200, body.encode("latin-1"))) as wire:
        async with Storage(endpoint=wire.url) as storage:
            with pytest.raises(TransferError, match=r"the server's response (is not JSON|does not describe an object)"):
                await storage.stat(Url("bkt", "o"))


@pytest.mark.parametrize(
    "page",
    [
        "null",
        "[]",
        "{}",
        '{"error": {"code": 500}}',
        '{"kind": "storage#object", "items": []}',
        '{"items": []}',
        '{"kind": "storage#objects", "items": 7}',
        '{"kind": "storage#objects", "items": {}}',
        '{"kind": "storage#objects", "items": ""}',
        '{"kind": "storage#objects", "prefixes": false}',
        '{"kind": "storage#objects", "items": [7]}',
        '{"kind": "storage#objects", "items": [{"bucket": "bkt", "name": "elsewhere/a", "generation": 1}]}',
        '{"kind": "storage#objects", "items": [{"bucket": "other", "name": "folder/a", "generation": "1"}]}',
        '{"kind": "storage#objects", "items": [{"bucket": "bkt", "name": "folder/a", "generation": 1, "size": -1}]}',
        '{"kind": "storage#objects", "nextPageToken": "again"}',
    ],
)
async def test_listings_that_cannot_be_trusted_end(page: str) -> None:
    """By them files would be taken for gone, or have names that are not theirs, or there would be no end of it."""
    with Wire(reply(200, page.encode())) as wire:
        async with Storage(endpoint=wire.url) as storage:
            with pytest.raises(TransferError):
                [found async for found in storage.objects("bkt", "folder/")]


@pytest.mark.parametrize("status", [201, 204, 206, 299])
async def test_a_listing_is_answered_by_200_only(status: int) -> None:
    """A part of one, or an answer to something else, does not count as all that is there."""
    with Wire(reply(status, b"" if status == 204 else b'{"kind": "storage#objects", "items": []}')) as wire:
        async with Storage(endpoint=wire.url) as storage:
            with pytest.raises(TransferError):
                [found async for found in storage.objects("bkt", "folder/")]
            with pytest.raises(TransferError):
                await storage.is_folder(Url("bkt", "folder"))


async def test_what_is_redirected_was_not_done() -> None:
    """A portal that wants a login answers to a deletion, too."""
    with Wire(reply(302, b"", "Location: http://portal.invalid/")) as wire:
        async with Storage(endpoint=wire.url) as storage:
            with pytest.raises(HttpError, match="302 Found"):
                await storage.call("delete it", "DELETE", "/storage/v1/b/bkt/o/name")


def test_a_policy_that_vouches_for_all_is_refused() -> None:
    """A policy with repeatable=True would repeat any request, so it is refused, with the cure."""
    policies = (
        cloud_storage.policy.with_repeatable(True),
        forbear.retry(on=OSError),
        forbear.retry(on=KeyError, repeatable=True),
    )
    for policy in (policies[0], policies[2].with_on(OSError), policies[1] | policies[2]):
        with pytest.raises(ValueError, match=r"`policy` must not have repeatable=True.*leave it out"):
            Settings(endpoint="http://localhost", policy=policy).storage()
