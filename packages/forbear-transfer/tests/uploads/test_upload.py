"""Uploads in one request: exactly one new version, whatever response is lost, and always under a precondition."""

import os
import socket
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import forbear
from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault
from forbear_cloud.storage.model import crc32c_of
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.transfer.uploads import (
    INSERT,
    KIB,
    MIB,
    TARGET,
    data_of,
    file_of,
    metered,
    open_files,
    storing,
    versions,
)
from forbear_transfer.errors import (
    ChecksumMismatch,
    HttpError,
    Stalled,
    TargetChanged,
    TargetExists,
)
from forbear_transfer.objects import MTIME, Url
from forbear_transfer.uploads.upload import upload

pytestmark = pytest.mark.anyio

IN_MEMORY, IN_PIECES = 5 * KIB, 3 * MIB
SIZES = [0, 1, IN_MEMORY, 256 * KIB, 256 * KIB + 1, IN_PIECES, 8 * MIB]
BOTH = pytest.mark.parametrize("size", [IN_MEMORY, IN_PIECES])
LOST: list[Any] = [
    pytest.param({"action": "reset", "when": "after"}, id="reset"),
    pytest.param({"action": "close", "when": "after"}, id="close"),
    pytest.param({"action": "status", "code": 503, "when": "after"}, id="503"),
    pytest.param({"action": "truncate", "keep": 10}, id="broken reply"),
    pytest.param({"action": "stall", "keep": 10}, id="stalled reply"),
]
UNDONE: list[Any] = [
    pytest.param({"action": "reset"}, id="reset"),
    pytest.param({"action": "status", "code": 503}, id="503"),
    pytest.param({"action": "status", "code": 429, "retry_after": 3}, id="429"),
]


def lose(cloud: Cloud, fault: dict[str, Any], nth: int = 1) -> None:
    """Let the nth upload request meet a fault."""
    cloud.fault(Fault.from_json({**fault, "operation": INSERT, "nth": nth}))


@pytest.mark.parametrize("size", SIZES)
async def test_one_request_makes_one_version(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """The request has data, checksum, content type, modification time and a precondition."""
    path = file_of(tmp_path, size, "notes.txt")
    os.utime(path, (1, 1_700_000_000.9))
    with metered() as told:
        async with storing(cloud) as storage:
            made = await upload(storage, path, TARGET, metadata={"colour": "red"})
    assert len(cloud.requests) == 1
    assert "ifGenerationMatch=0" in cloud.requests[0].query
    there = cloud.store.object("bkt", "thing")
    assert there.data == data_of(size)
    assert (made.generation, made.size, made.crc32c) == (there.generation, size, crc32c_of(data_of(size)))
    assert made.content_type == "text/plain"
    assert made.metadata == {MTIME: "1700000000", "colour": "red"}
    assert made.mtime == 1_700_000_000
    assert told.bytes == told.most == size


@BOTH
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("fault", LOST)
async def test_a_lost_response_makes_no_second_version(
    cloud: Cloud, tmp_path: Path, size: int, older: bool, fault: dict[str, Any]
) -> None:
    """If the response is lost, the object is written once, whether it is new or replaces another."""
    if older:
        cloud.store.put("bkt", "thing", b"older", {})
    lose(cloud, fault, nth=2 if older else 1)
    with metered() as told:
        async with storing(cloud, stall_timeout=0.2) as storage:
            made = await upload(storage, file_of(tmp_path, size), TARGET)
    assert versions(cloud) == 1
    assert made.generation == cloud.store.object("bkt", "thing").generation
    assert told.bytes == size
    assert cloud.pending_faults == 0


@BOTH
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("fault", UNDONE)
async def test_what_was_not_done_is_done_again(
    cloud: Cloud, tmp_path: Path, size: int, older: bool, fault: dict[str, Any]
) -> None:
    """If the first attempt had no effect, the second one makes the object."""
    if older:
        cloud.store.put("bkt", "thing", b"older", {})
    lose(cloud, fault)
    with metered() as told:
        async with storing(cloud) as storage:
            await upload(storage, file_of(tmp_path, size), TARGET)
    assert cloud.store.object("bkt", "thing").data == data_of(size)
    assert versions(cloud) == 1
    assert (told.bytes, told.retries) == (size, 1)


async def test_whatever_is_there_is_replaced_under_its_own_condition(cloud: Cloud, tmp_path: Path) -> None:
    """An existing target is replaced under its generation; the first guess is that it does not exist."""
    older = cloud.store.put("bkt", "thing", b"older", {})
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, 10), TARGET)
    assert [each.status for each in cloud.requests] == [412, 200, 200]
    assert f"ifGenerationMatch={older.generation}" in cloud.requests[2].query


async def test_in_a_crowd_it_goes_on_for_a_while(cloud: Cloud, tmp_path: Path) -> None:
    """Other writers delay an upload that replaces any version, but do not stop it."""
    cloud.store.put("bkt", "thing", b"older", {})
    cloud.fault(Fault.replace_object(b"theirs", operation=INSERT, times=4))
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, 10), TARGET)
    assert versions(cloud) == 1
    assert cloud.store.object("bkt", "thing").data == data_of(10)


async def test_a_crowd_that_never_ends_is_given_up(cloud: Cloud, tmp_path: Path) -> None:
    """If other clients keep writing, the upload fails after some rounds, and writes nothing."""
    cloud.store.put("bkt", "thing", b"older", {})
    cloud.fault(Fault.replace_object(b"theirs", operation=INSERT, times=None))
    async with storing(cloud) as storage:
        with pytest.raises(TargetChanged, match="other clients keep writing"):
            await upload(storage, file_of(tmp_path, 10), TARGET)
    assert versions(cloud) == 0


async def test_what_vanishes_in_between_is_no_obstacle(cloud: Cloud, tmp_path: Path) -> None:
    """If the target is deleted between refusal and look, the upload makes it."""
    cloud.store.put("bkt", "thing", b"older", {})
    cloud.fault(Fault.delete_object(operation="storage.objects.get"))
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, 10), TARGET)
    assert versions(cloud) == 1


@BOTH
async def test_nothing_is_clobbered_on_demand(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """With generation=0, an existing target stays."""
    cloud.store.put("bkt", "thing", b"older", {})
    async with storing(cloud) as storage:
        with pytest.raises(TargetExists, match="gs://bkt/thing exists already"):
            await upload(storage, file_of(tmp_path, size), TARGET, generation=0)
    assert versions(cloud) == 0


@pytest.mark.parametrize("fault", LOST)
async def test_ones_own_work_is_not_taken_for_anothers(cloud: Cloud, tmp_path: Path, fault: dict[str, Any]) -> None:
    """With generation=0, after a lost response, the upload recognizes its own object."""
    lose(cloud, fault)
    async with storing(cloud, stall_timeout=0.2) as storage:
        made = await upload(storage, file_of(tmp_path, 10), TARGET, generation=0)
    assert made.generation == cloud.store.object("bkt", "thing").generation
    assert versions(cloud) == 1


async def test_anothers_work_is_not_taken_for_ones_own(cloud: Cloud, tmp_path: Path) -> None:
    """After an attempt without effect, an object of somebody else is recognized as such."""
    cloud.fault(Fault.status(503, operation=INSERT), Fault.replace_object(b"x", operation=INSERT, when="before"))
    async with storing(cloud) as storage:
        with pytest.raises(TargetExists):
            await upload(storage, file_of(tmp_path, 10), TARGET, generation=0)
    assert versions(cloud) == 0


async def test_a_version_that_is_asked_for_is_replaced(cloud: Cloud, tmp_path: Path) -> None:
    """A required generation is replaced with a single request."""
    older = cloud.store.put("bkt", "thing", b"older", {})
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, 10), TARGET, generation=older.generation)
    assert len(cloud.requests) == 1


@pytest.mark.parametrize("doubt", [False, True])
async def test_a_version_that_has_changed_is_not_replaced(cloud: Cloud, tmp_path: Path, doubt: bool) -> None:
    """Another generation than the required one is not replaced, also after a lost response."""
    older = cloud.store.put("bkt", "thing", b"older", {})
    cloud.store.put("bkt", "thing", b"newer", {})
    if doubt:
        cloud.fault(Fault.status(503, operation=INSERT))
    async with storing(cloud) as storage:
        with pytest.raises(TargetChanged, match=f"is not generation {older.generation} any more"):
            await upload(storage, file_of(tmp_path, 10), TARGET, generation=older.generation)
    assert versions(cloud) == 0


async def test_replaced_right_after_a_lost_response_is_told(cloud: Cloud, tmp_path: Path) -> None:
    """If the response is lost and somebody else overwrites the object, the upload does not write again."""
    cloud.store.put("bkt", "thing", b"older", {})
    lose(cloud, {"action": "status", "code": 503, "when": "after"}, nth=2)
    cloud.fault(Fault.replace_object(b"theirs", operation=INSERT, nth=2))
    async with storing(cloud) as storage:
        with pytest.raises(TargetChanged, match="another client wrote"):
            await upload(storage, file_of(tmp_path, 10), TARGET)
    assert versions(cloud) == 1
    assert cloud.store.object("bkt", "thing").data == b"theirs"


@BOTH
async def test_bytes_changed_on_the_way_are_sent_again(cloud: Cloud, tmp_path: Path, size: int) -> None:
    """The server refuses bytes that do not match the checksum, and the client sends them again."""
    cloud.fault(Fault.corrupt_upload(3, operation=INSERT))
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, size), TARGET)
    assert [each.status for each in cloud.requests] == [400, 200]
    assert versions(cloud) == 1


async def test_bytes_always_changed_on_the_way_are_an_error(cloud: Cloud, tmp_path: Path) -> None:
    """The third mismatch is final."""
    cloud.fault(Fault.corrupt_upload(3, operation=INSERT, times=None))
    async with storing(cloud) as storage:
        with pytest.raises(ChecksumMismatch, match="checksums differ"):
            await upload(storage, file_of(tmp_path, 10), TARGET)
    assert (len(cloud.requests), versions(cloud)) == (3, 0)


async def test_what_a_careless_server_stored_wrong_is_deleted(tmp_path: Path) -> None:
    """If the server does not compare the checksum, the client does, and deletes just the wrong version."""
    wrong = b'{"bucket":"bkt","name":"thing","generation":"5","size":"10","crc32c":"AAAAAA=="}'
    with Wire(reply(200, wrong), reply(204)) as wire:
        async with storing(wire.url) as storage:
            with pytest.raises(ChecksumMismatch, match="checksums differ"):
                await upload(storage, file_of(tmp_path, 10), TARGET)
    assert wire.seen[1].line == "DELETE /storage/v1/b/bkt/o/thing?generation=5 HTTP/1.1"


async def test_an_emulator_that_tells_no_checksum_is_believed(tmp_path: Path) -> None:
    """If an emulator states no checksum, only the size is compared."""
    with Wire(reply(200, b'{"bucket":"bkt","name":"thing","generation":"5","size":"10"}')) as wire:
        async with storing(wire.url) as storage:
            assert (await upload(storage, file_of(tmp_path, 10), TARGET)).generation == 5


@pytest.mark.parametrize("code", [400, 403, 404, 501])
async def test_final_errors_are_final(cloud: Cloud, tmp_path: Path, code: int) -> None:
    """A permanent error is raised after one attempt, and names the operation."""
    cloud.fault(Fault.status(code, message="no such luck", operation=INSERT))
    path = file_of(tmp_path, 10)
    async with storing(cloud) as storage:
        with pytest.raises(HttpError, match=f"upload {path}: .*: no such luck") as caught:
            await upload(storage, path, TARGET)
    assert caught.value.status == code
    assert len(cloud.requests) == 1


async def test_patience_ends(cloud: Cloud, tmp_path: Path) -> None:
    """At the limits of the policy, the error has a report of the attempts."""
    cloud.fault(Fault.status(503, operation=INSERT, times=None))
    async with storing(cloud, policy=cloud_storage.policy.with_attempts(3)) as storage:
        with pytest.raises(HttpError) as caught:
            await upload(storage, file_of(tmp_path, 10), TARGET)
    tried = forbear.report(caught.value)
    assert tried is not None
    assert len(tried.attempts) == 3


async def test_a_server_that_takes_no_bytes_has_stalled(tmp_path: Path) -> None:
    """If the server takes no bytes for too long, the attempt fails and is repeated."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        async with storing(url, stall_timeout=0.1, policy=cloud_storage.policy.with_attempts(2)) as storage:
            with pytest.raises(Stalled, match=r"took no byte for 0\.1 s") as caught:
                await upload(storage, file_of(tmp_path, 8 * MIB), TARGET)
    tried = forbear.report(caught.value)
    assert tried is not None
    assert len(tried.attempts) == 2


@BOTH
async def test_a_server_that_does_not_answer_has_stalled(tmp_path: Path, size: int) -> None:
    """If the server takes all bytes and does not respond, the attempt fails."""
    with Wire(Answer(end="stall")) as wire:
        async with storing(wire.url, stall_timeout=0.1, policy=cloud_storage.policy.with_attempts(2)) as storage:
            with pytest.raises(Stalled, match=r"(has not answered|took no byte) for 0\.1 s") as caught:
                await upload(storage, file_of(tmp_path, size), TARGET)
    tried = forbear.report(caught.value)
    assert tried is not None
    assert len(tried.attempts) == 2


async def test_streams_that_fit_go_at_once(cloud: Cloud) -> None:
    """Small streams go in one request; their content type is guessed from the name of the target."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one "
        yield b""
        yield b"two"

    async with storing(cloud) as storage:
        made = await upload(storage, pieces(), Url("bkt", "a.json"))
        assert (made.size, made.content_type, made.metadata) == (7, "application/json", {})
        assert (await upload(storage, BytesIO(b"xyz"), TARGET)).size == 3
        assert (await upload(storage, BytesIO(), Url("bkt", "empty"))).size == 0
    assert cloud.store.object("bkt", "a.json").data == b"one two"


async def test_nothing_is_left_open(cloud: Cloud, tmp_path: Path) -> None:
    """Neither success nor failure leaves a file open."""
    path = file_of(tmp_path, IN_PIECES)
    async with storing(cloud) as storage:
        await upload(storage, path, TARGET)
        with pytest.raises(TargetExists):
            await upload(storage, path, TARGET, generation=0)
    assert open_files(tmp_path) == 0
