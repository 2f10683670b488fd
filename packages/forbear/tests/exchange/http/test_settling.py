"""Somebody else makes the same write between any two of our requests: what is called done, and what it is by then."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault

WHO = "x-who"
UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=multipart"
OLD, NEW = "/storage/v1/b/bkt/o/old", "/storage/v1/b/bkt/o/new"


@dataclass(frozen=True)
class Write:
    """One write: its condition, its body with a mark, and whether the cloud is as it asks."""

    method: str
    target: str
    condition: str
    body: Callable[[str], Any]
    holds: Callable[[Cloud], bool]
    is_marked: bool = True

    def send(self, client: httpx.Client, who: str, mark: str = "us", *, forced: bool = False) -> httpx.Response:
        """Send it with a mark, `forced` without its condition."""
        sign = "&" if "?" in self.target else "?"
        target = self.target if forced or not self.condition else f"{self.target}{sign}{self.condition}"
        headers, content = {WHO: who}, b""
        body = self.body(mark)
        if isinstance(body, bytes):
            headers["content-type"], content = "multipart/related; boundary=x", body
        elif body is not None:
            headers["content-type"], content = "application/json", json.dumps(body).encode()
        return client.request(self.method, target, headers=headers, content=content)


def multipart(mark: str) -> bytes:
    """An upload of "x" with a mark."""
    metadata = json.dumps({"name": "new", **marked(mark)}).encode()
    head = b"--x\r\ncontent-type: application/json\r\n\r\n" + metadata
    return head + b"\r\n--x\r\ncontent-type: text/plain\r\n\r\nx\r\n--x--"


def marked(mark: str) -> dict[str, Any]:
    """Fields with a mark."""
    return {"metadata": {"by": mark}}


def nothing(mark: str) -> None:
    """No body."""


def has(name: str, content: bytes | None, **fields: Any) -> Callable[[Cloud], bool]:
    """Return a function that says if an object is live with this content (None: no object) and these fields alone."""

    def holds(cloud: Cloud) -> bool:
        item = cloud.store.bucket("bkt").live(name)
        if item is None or content is None:
            return item is None and content is None
        return bytes(item.content) == content and item.fields == fields

    return holds


def has_bucket(name: str, *, is_there: bool) -> Callable[[Cloud], bool]:
    """Return a function that says if there is, or is not, such a bucket."""
    return lambda cloud: (name in cloud.store.buckets) is is_there


WRITES: dict[str, Write] = {
    "upload": Write(
        "POST",
        UPLOAD,
        "ifGenerationMatch=0",
        multipart,
        has("new", b"x", contentType="text/plain", metadata={"by": "us"}),
    ),
    "patch": Write("PATCH", OLD, "ifMetagenerationMatch=1", marked, has("old", b"old", **marked("us"))),
    "compose": Write(
        "POST",
        f"{NEW}/compose",
        "ifGenerationMatch=0",
        lambda mark: {"sourceObjects": [{"name": "old"}, {"name": "old"}], "destination": marked(mark)},
        has("new", b"oldold", **marked("us")),
    ),
    "rewrite": Write(
        "POST", f"{OLD}/rewriteTo/b/bkt/o/new", "ifGenerationMatch=0", marked, has("new", b"old", **marked("us"))
    ),
    "copy": Write("POST", f"{OLD}/copyTo/b/bkt/o/new", "ifGenerationMatch=0", nothing, has("new", b"old"), False),
    "delete": Write("DELETE", OLD, "ifGenerationMatch={generation}", nothing, has("old", None), False),
    "delete a generation": Write("DELETE", OLD, "generation={generation}", nothing, has("old", None), False),
    "create a bucket": Write(
        "POST", "/storage/v1/b?project=p", "", lambda mark: {"name": "fresh"}, has_bucket("fresh", is_there=True), False
    ),
    "delete a bucket": Write("DELETE", "/storage/v1/b/empty", "", nothing, has_bucket("empty", is_there=False), False),
}
FAULTS: dict[str, Fault | None] = {
    "none": None,
    "503 before": Fault.status(503),
    "reset before": Fault.reset(),
    "503 after": Fault.status(503, when="after"),
    "reset after": Fault.reset(when="after"),
}


def is_mine(sent: Mapping[str, Any], read: Mapping[str, Any]) -> bool:
    """The recipe of the documentation."""
    mark = (sent.get("metadata") or {}).get("by")
    return mark is not None and (read.get("metadata") or {}).get("by") == mark


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    """One cloud for all examples."""
    with Cloud() as cloud:
        yield cloud


class Between(httpx.HTTPTransport):
    """Before some of our requests, somebody else acts; each of our requests may meet a fault."""

    def __init__(self, cloud: Cloud, act: Callable[[str], object], write: Write, faults: list[str]) -> None:
        super().__init__(verify=False)
        self.cloud, self.act, self.write, self.faults = cloud, act, write, [*faults]
        self.state: bool | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Let the other act, then send ours, and note after each read whether the state is what we asked for."""
        self.act(request.method)
        fault = FAULTS[self.faults.pop(0)] if self.faults and request.method != "GET" else None
        if fault is not None:
            self.cloud.fault(fault)
        try:
            return super().handle_request(request)
        finally:
            if request.method == "GET":
                self.state = self.write.holds(self.cloud)


def play(
    cloud: Cloud, name: str, settle: Any, faults: list[str], others: list[str]
) -> tuple[httpx.Response | None, bool, Between]:
    """Send one write, and return the response, whether our own request took effect, and the transport."""
    cloud.reset()
    cloud.clear_faults()
    cloud.store.create_bucket("bkt")
    cloud.store.create_bucket("empty")
    item = cloud.store.put("bkt", "old", b"old")
    write = WRITES[name]
    condition = write.condition.format(generation=item.generation)
    write = Write(write.method, write.target, condition, write.body, write.holds, write.is_marked)
    mark = "us" if settle is True else "them"  # by the state their write is the same as ours, with a mark it is theirs
    actions, response = [*others], None
    with virtual_time(), httpx.Client(base_url=cloud.url, transport=httpx.HTTPTransport(verify=False)) as other:

        def act(method: str) -> None:
            action = actions.pop(0) if actions else "nothing"
            if action != "nothing":
                write.send(other, "them", mark, forced=action == "forced")

        inner = Between(cloud, act, write, faults)
        transport = RetryTransport(cloud_storage.policy.with_attempts(4), transport=inner, settle=settle)
        with httpx.Client(transport=transport, base_url=cloud.url) as client, suppress(httpx.TransportError):
            response = write.send(client, "us")
    ours = {request.number for request in cloud.requests if request.headers.get(WHO) == "us"}
    return response, any(effect.request in ours for effect in cloud.effects), inner


names = st.sampled_from(sorted(WRITES))
fault_lists = st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=3)
other_lists = st.lists(st.sampled_from(["nothing", "same", "forced"]), max_size=6)
few = settings(max_examples=max(1, settings().max_examples // 2))  # each one talks to the cloud a few times


@few
@given(name=names, faults=fault_lists, others=other_lists)
def test_a_mark_never_takes_another_s_write_for_ours(
    running: Cloud, name: str, faults: list[str], others: list[str]
) -> None:
    """With `mine`, whatever is called done was done by one of our own requests, and once."""
    response, executed, _ = play(running, name, is_mine, faults, others)
    if response is not None and response.is_success:
        assert executed


@few
@given(name=names, faults=fault_lists, others=other_lists)
def test_the_state_is_the_one_that_was_asked_for(
    running: Cloud, name: str, faults: list[str], others: list[str]
) -> None:
    """With True, what a read has settled is so at the moment of that read."""
    response, _, inner = play(running, name, True, faults, others)
    report = None if response is None else forbear.report(response)
    if report is not None and report.settled:
        assert inner.state is True


@pytest.mark.parametrize("name", sorted(WRITES))
@pytest.mark.parametrize("settle", [True, is_mine], ids=["True", "mine"])
def test_undisturbed_it_is_settled(running: Cloud, name: str, settle: Any) -> None:
    """Nobody else acts: the lost response of what can be proven is found."""
    response, executed, _ = play(running, name, settle, ["reset after"], [])
    assert response is not None
    assert executed
    proven = name != "compose" if settle is True else WRITES[name].is_marked
    assert response.is_success is proven


def test_the_same_write_of_somebody_else_is_told_apart(running: Cloud) -> None:
    """R1: ours was not executed, theirs was, with the same content: True takes it, a mark does not."""
    for settle, status in ((True, 200), (is_mine, 412)):
        response, executed, _ = play(running, "upload", settle, ["reset before"], ["nothing", "same"])
        assert response is not None
        assert (response.status_code, executed) == (status, False)
