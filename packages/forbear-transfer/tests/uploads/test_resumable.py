"""Uploads through sessions: after each failure the server is queried, and in the end there is one version, or none."""

import os
from pathlib import Path
from typing import Any

import pytest

from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault
from forbear_cloud.faults.actions import Delay, Stall
from forbear_cloud.storage.model import crc32c_of
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.transfer.uploads import (
    CANCEL,
    CHUNK,
    INSERT,
    KIB,
    MIB,
    QUERY,
    SEND,
    START,
    TARGET,
    When,
    data_of,
    file_of,
    metered,
    steps,
    stored,
    storing,
    versions,
)
from forbear_transfer.errors import (
    ChecksumMismatch,
    HttpError,
    SourceChanged,
    TargetChanged,
    TargetExists,
    TransferError,
)
from forbear_transfer.uploads.upload import upload

pytestmark = pytest.mark.anyio

SIZE = 5 * CHUNK + 1000
SIX = ["start", *["send"] * 6]


async def test_a_large_file_goes_in_chunks(cloud: Cloud, tmp_path: Path) -> None:
    """The start states the size, and the last chunk has the checksum of all bytes."""
    with metered() as told:
        async with storing(cloud) as storage:
            made = await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert steps(cloud) == SIX
    assert cloud.requests[0].headers["x-upload-content-length"] == str(SIZE)
    assert [each.headers.get("x-goog-hash") for each in cloud.requests][-2:] == [None, f"crc32c={made.crc32c}"]
    assert made.crc32c == crc32c_of(stored(cloud)) == crc32c_of(data_of(SIZE))
    assert told.bytes == told.most == SIZE


async def test_by_default_the_end_goes_by_itself(cloud: Cloud, tmp_path: Path) -> None:
    """A file over 8 MiB goes in large chunks and a small last one, whose checksum is known before it is sent."""
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, 20 * MIB + 5), TARGET)
    ranges = [each.headers["content-range"] for each in cloud.requests if each.operation == SEND]
    last = 12 * MIB + CHUNK
    assert ranges == [f"bytes 0-{last - 1}/{20 * MIB + 5}", f"bytes {last}-{20 * MIB + 4}/{20 * MIB + 5}"]
    assert stored(cloud) == data_of(20 * MIB + 5)


FAULTS: list[Any] = [
    pytest.param(fault, asked, id=name)
    for name, fault, asked in [
        ("a reset before", Fault.reset(operation=SEND, nth=3), 1),
        ("a reset after", Fault.reset(when="after", operation=SEND, nth=3), 1),
        ("503", Fault.status(503, operation=SEND, nth=3), 1),
        ("503 after", Fault.status(503, when="after", operation=SEND, nth=3), 1),
        ("429", Fault.status(429, retry_after=5, operation=SEND, nth=3), 1),
        ("408", Fault.status(408, operation=SEND, nth=3), 1),
        ("400 out of the blue", Fault.status(400, operation=SEND, nth=3), 1),
        ("412 out of the blue", Fault.status(412, operation=SEND, nth=3), 1),
        ("a part, then a reset", Fault.partial(100 * KIB, nth=3), 1),
        ("a part, then 503", Fault.partial(100 * KIB, status=503, nth=3), 1),
        ("a part, told", Fault.partial(100 * KIB, status=308, nth=3), 0),
        ("nothing kept, told", Fault.partial(0, status=308, nth=3), 0),
        ("nothing kept of the first", Fault.partial(0, status=308, nth=1), 0),
        ("a stall", Fault.stall(operation=SEND, nth=6), 1),
        ("a late reply", Fault.delay(0.5, when="after", operation=SEND, nth=3), 1),
        ("a lost final reply", Fault.reset(when="after", operation=SEND, nth=6), 1),
        ("a broken final reply", Fault.truncate(20, operation=SEND, nth=6), 1),
        ("a garbled final reply", Fault.corrupt(0, operation=SEND, nth=6), 1),
        ("503 after the end", Fault.status(503, when="after", operation=SEND, nth=6), 1),
    ]
]


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize(("fault", "asked"), FAULTS)
async def test_one_session_and_one_version(cloud: Cloud, tmp_path: Path, fault: Fault, asked: int, older: bool) -> None:
    """Whatever fails, the session continues after the stored bytes, and no byte is sent twice without need."""
    if older:
        cloud.store.put("bkt", "thing", b"older", {})
    cloud.fault(fault)
    slow = isinstance(fault.action, Stall | Delay)
    with metered() as told:
        async with storing(cloud, stall_timeout=0.2 if slow else 60) as storage:
            made = await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert stored(cloud) == data_of(SIZE)
    assert versions(cloud) == 1
    assert made.generation == cloud.store.object("bkt", "thing").generation
    done = steps(cloud)
    assert done.count("start") == 1 + older
    assert done.count("query") == asked or (slow and done.count("query") > asked)  # a busy machine is slow, too
    assert told.bytes == SIZE
    assert cloud.pending_faults == 0


@pytest.mark.parametrize("fault", [{"action": "reset"}, {"action": "status", "code": 503}], ids=["reset", "503"])
async def test_questions_are_asked_until_they_are_answered(cloud: Cloud, tmp_path: Path, fault: dict[str, Any]) -> None:
    """A failed query is repeated."""
    cloud.fault(Fault.reset(operation=SEND, nth=3), Fault.from_json({**fault, "operation": QUERY, "times": 3}))
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert steps(cloud).count("query") == 4
    assert versions(cloud) == 1


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_lost_start_leaves_an_orphan_at_worst(cloud: Cloud, tmp_path: Path, when: Any) -> None:
    """A failed start is repeated; a session that it may have begun commits nothing."""
    cloud.fault(Fault.reset(when=when, operation=START))
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert steps(cloud).count("start") == 2
    assert versions(cloud) == 1


@pytest.mark.parametrize("code", [404, 410])
@pytest.mark.parametrize("nth", [1, 3, 6])
async def test_a_session_that_is_gone_makes_room_for_another(cloud: Cloud, tmp_path: Path, code: int, nth: int) -> None:
    """If the session is gone, all bytes are sent through another one, and the reported progress is taken back."""
    cloud.fault(Fault.expire_session(status=code, nth=nth))
    with metered() as told:
        async with storing(cloud) as storage:
            await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert steps(cloud) == ["start", *["send"] * nth, *SIX]
    assert versions(cloud) == 1
    assert told.bytes == SIZE


async def test_a_session_that_is_gone_when_asked(cloud: Cloud, tmp_path: Path) -> None:
    """The same holds if a query finds that the session is gone."""
    cloud.fault(Fault.reset(operation=SEND, nth=3), Fault.expire_session(operation=QUERY))
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert versions(cloud) == 1


@pytest.mark.parametrize("older", [False, True])
async def test_a_finished_session_that_is_gone_is_not_done_again(cloud: Cloud, tmp_path: Path, older: bool) -> None:
    """If the last response was lost and the session is gone, the precondition of the new one finds the object."""
    if older:
        cloud.store.put("bkt", "thing", b"older", {})
    cloud.fault(Fault.reset(when="after", operation=SEND, nth=6), Fault.expire_session(operation=QUERY))
    with metered() as told:
        async with storing(cloud) as storage:
            made = await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert versions(cloud) == 1
    assert made.generation == cloud.store.object("bkt", "thing").generation
    assert told.bytes == SIZE


async def test_sessions_that_always_go_are_given_up(cloud: Cloud, tmp_path: Path) -> None:
    """If every session is lost, the upload fails."""
    cloud.fault(Fault.expire_session(skip=3, times=None))
    async with storing(cloud) as storage:
        with pytest.raises(TransferError, match="has lost stored bytes 16 times"):
            await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert versions(cloud) == 0


async def test_a_bucket_that_is_gone_ends_it(cloud: Cloud, tmp_path: Path) -> None:
    """A 404 from a session begins another one; a 404 to its start ends the upload."""
    path = file_of(tmp_path, SIZE)

    def vanish() -> None:
        cloud.store.delete_bucket(cloud.store.bucket("bkt"))
        cloud.store.sessions.clear()

    with metered(When(2 * CHUNK, vanish)):
        async with storing(cloud) as storage:
            with pytest.raises(HttpError, match="begin to upload") as caught:
                await upload(storage, path, TARGET, chunk_size=CHUNK)
    assert caught.value.status == 404
    assert not os.listdir(os.environ["FORBEAR_STATE_DIR"])  # noqa: PTH208


async def test_bytes_that_the_server_forgets_go_again(cloud: Cloud, tmp_path: Path) -> None:
    """Bytes that the server had acknowledged and has lost are sent again."""
    cloud.fault(Fault.rewind(CHUNK, nth=4), Fault.rewind(0, nth=6))
    with metered() as told:
        async with storing(cloud) as storage:
            await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert stored(cloud) == data_of(SIZE)
    assert steps(cloud).count("start") == 1
    assert told.bytes == SIZE


@pytest.mark.parametrize("nth", [1, 3, 6])
async def test_bytes_changed_on_the_way_are_never_seen(cloud: Cloud, tmp_path: Path, nth: int) -> None:
    """If the checksum in the last chunk does not match, all bytes are sent again, once."""
    cloud.fault(Fault.corrupt_upload(5, operation=SEND, nth=nth))
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert versions(cloud) == 1
    assert steps(cloud).count("start") == 2
    assert stored(cloud) == data_of(SIZE)


async def test_bytes_changed_on_the_way_again_are_an_error(cloud: Cloud, tmp_path: Path) -> None:
    """The second mismatch is final: no object is made, and no state is kept."""
    cloud.fault(Fault.corrupt_upload(5, operation=SEND, times=None))
    async with storing(cloud) as storage:
        with pytest.raises(ChecksumMismatch):
            await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert versions(cloud) == 0
    assert not os.listdir(os.environ["FORBEAR_STATE_DIR"])  # noqa: PTH208


@pytest.mark.parametrize("generation", [None, 0])
@pytest.mark.parametrize("lost", [False, True])
async def test_a_condition_that_fails_at_the_end_is_told(
    cloud: Cloud, tmp_path: Path, generation: int | None, lost: bool
) -> None:
    """If somebody else writes during the upload, their object stays, also if the last response was lost."""
    if lost:
        cloud.fault(Fault.reset(operation=SEND, nth=6))
    path = file_of(tmp_path, SIZE)
    with metered(When(5 * CHUNK, lambda: cloud.store.put("bkt", "thing", b"theirs", {}))):
        async with storing(cloud) as storage:
            with pytest.raises(TargetExists if generation == 0 else TargetChanged):
                await upload(storage, path, TARGET, generation=generation, chunk_size=CHUNK)
    assert versions(cloud) == 0
    assert stored(cloud) == b"theirs"


async def test_a_condition_that_cannot_hold_is_told_at_the_start(cloud: Cloud, tmp_path: Path) -> None:
    """A precondition that fails at the start is an error before any byte is sent."""
    older = cloud.store.put("bkt", "thing", b"older", {})
    path = file_of(tmp_path, SIZE)
    async with storing(cloud) as storage:
        with pytest.raises(TargetExists):
            await upload(storage, path, TARGET, generation=0, chunk_size=CHUNK)
        with pytest.raises(TargetChanged):
            await upload(storage, path, TARGET, generation=older.generation + 1, chunk_size=CHUNK)
    assert SEND not in [each.operation for each in cloud.requests]


@pytest.mark.parametrize("code", [403, 499, 501])
async def test_final_errors_are_final(cloud: Cloud, tmp_path: Path, code: int) -> None:
    """A permanent error ends the session, unless other credentials can cure it."""
    cloud.fault(Fault.status(code, operation=SEND, nth=2))
    async with storing(cloud) as storage:
        with pytest.raises(HttpError) as caught:
            await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert caught.value.status == code
    assert steps(cloud) == ["start", "send", "send", *([] if code == 403 else ["cancel"])]


async def test_400_is_asked_about_once(cloud: Cloud, tmp_path: Path) -> None:
    """A 400 may come from an attempt that timed out, so one query follows; the second 400 is final."""
    cloud.fault(Fault.status(400, operation=SEND, skip=1, times=None))
    async with storing(cloud) as storage:
        with pytest.raises(HttpError):
            await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert steps(cloud) == ["start", "send", "send", "query", "send", "cancel"]


async def test_patience_is_for_standing_still(cloud: Cloud, tmp_path: Path) -> None:
    """With two attempts, every chunk may fail once; two failures without progress are final."""
    for nth in range(1, 12, 2):
        cloud.fault(Fault.status(503, operation=SEND, nth=nth))
    policy = cloud_storage.policy.with_attempts(2)
    async with storing(cloud, policy=policy) as storage:
        await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
        cloud.fault(Fault.status(503, operation=SEND, times=None))
        with pytest.raises(HttpError):
            await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert versions(cloud) == 1


async def test_a_server_that_takes_and_keeps_nothing_is_given_up(cloud: Cloud, tmp_path: Path) -> None:
    """A server that confirms no bytes is abandoned at the limits of the policy."""
    cloud.fault(Fault.partial(0, status=308, times=None))
    async with storing(cloud, policy=cloud_storage.policy.with_attempts(5)) as storage:
        with pytest.raises(TransferError, match="has stored no more of it"):
            await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert steps(cloud).count("send") == 5


def session(*answers: Answer) -> Wire:
    """Begin a session, then send the given responses."""
    return Wire(reply(200, b"", "Location: /upload/storage/v1/b/bkt/o?uploadType=resumable&upload_id=1"), *answers)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (reply(308, b"", f"Range: bytes=0-{2 * CHUNK}"), "says that it has"),
        (reply(302, b"", "Location: /elsewhere"), "302"),
        (reply(418, b""), "418"),
    ],
    ids=["more than was sent", "a redirect", "a teapot"],
)
async def test_what_makes_no_sense_is_the_end(tmp_path: Path, answer: Answer, text: str) -> None:
    """An invalid response ends the upload, and the error shows it."""
    with session(answer) as wire:
        async with storing(wire.url) as storage:
            with pytest.raises(TransferError, match=text):
                await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)


async def test_a_garbled_range_is_asked_about(tmp_path: Path) -> None:
    """After an invalid Range, queries follow until the limits of the policy."""
    with session(reply(308, b"", "Range: bytes=7-9")) as wire:
        async with storing(wire.url, policy=cloud_storage.policy.with_attempts(3)) as storage:
            with pytest.raises(TransferError, match="has stored no more"):
                await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert [each.header("content-range") for each in wire.seen][2:4] == [f"bytes */{SIZE}"] * 2


async def test_no_session_is_no_upload(tmp_path: Path) -> None:
    """A response to the start without a Location is an error."""
    with Wire(reply(200)) as wire:
        async with storing(wire.url) as storage:
            with pytest.raises(TransferError, match="began no session"):
                await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)


async def test_what_was_stored_wrong_is_deleted(tmp_path: Path) -> None:
    """If the server does not compare the checksum, the client does, and deletes the wrong version."""
    wrong = b'{"bucket":"bkt","name":"thing","generation":"5","size":"%d","crc32c":"AAAAAA=="}' % SIZE
    taken = [reply(308, b"", f"Range: bytes=0-{count * CHUNK - 1}") for count in range(1, 6)]
    with session(*taken, reply(200, wrong), reply(204)) as wire:
        async with storing(wire.url) as storage:
            with pytest.raises(ChecksumMismatch):
                await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=CHUNK)
    assert [each.line for each in wire.seen if "generation=5" in each.line] == [
        "DELETE /storage/v1/b/bkt/o/thing?generation=5 HTTP/1.1"
    ]


async def test_all_there_but_not_done_is_asked_about(tmp_path: Path) -> None:
    """A server that has all bytes and no object yet is queried until it has."""
    done = b'{"bucket":"bkt","name":"thing","generation":"5","size":"%d","crc32c":"%s"}'
    made = done % (SIZE, crc32c_of(data_of(SIZE)).encode())
    whole = reply(308, b"", f"Range: bytes=0-{SIZE - 1}")
    with session(reply(308, b"", f"Range: bytes=0-{CHUNK - 1}"), whole, whole, reply(200, made)) as wire:
        async with storing(wire.url) as storage:
            await upload(storage, file_of(tmp_path, SIZE), TARGET, chunk_size=5 * CHUNK)
    assert [each.header("content-range") for each in wire.seen][3:] == [f"bytes */{SIZE}"] * 2


async def test_a_cancelled_session_is_not_missed(cloud: Cloud, tmp_path: Path) -> None:
    """A failed cancellation of the session does not hide the error before it."""
    path = file_of(tmp_path, SIZE)
    cloud.fault(Fault.reset(operation=CANCEL))
    with metered(When(2 * CHUNK, lambda: os.truncate(path, 5))):
        async with storing(cloud) as storage:
            with pytest.raises(SourceChanged):
                await upload(storage, path, TARGET, chunk_size=CHUNK)


async def test_other_operations_do_not_matter(cloud: Cloud, tmp_path: Path) -> None:
    """A file of exactly one chunk takes one request, and one of exactly two takes two chunks."""
    async with storing(cloud) as storage:
        await upload(storage, file_of(tmp_path, CHUNK), TARGET, chunk_size=CHUNK)
        await upload(storage, file_of(tmp_path, 2 * CHUNK), TARGET, chunk_size=CHUNK)
    assert [each.operation for each in cloud.requests if each.operation in (INSERT, SEND)] == [INSERT, SEND, SEND]
