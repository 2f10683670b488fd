"""Encryption keys of copies within the cloud: rewrites of several rounds, and objects that get another key in place."""

import json
from typing import Any

import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.transfer.keys import COPY, IMPATIENT, KMS, REWRITE, SECRETS, A, B, put, sha256
from forbear_testkit.transfer.uploads import MIB, TARGET, data_of, states, storing
from forbear_transfer import ChecksumMismatch, EncryptionKey, Object, TargetChanged, TransferError, acp, amv
from forbear_transfer.errors import WrongResponse
from forbear_transfer.rewrite import copy
from forbear_transfer.wire.response import WireError

pytestmark = pytest.mark.anyio


async def test_copies_of_several_rounds(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round has the keys of source and copy, and a run that was interrupted continues with the same keys only."""
    monkeypatch.setattr("forbear_transfer.rewrite.SMALL", MIB)  # smaller objects keep no state
    data = data_of(3 * MIB)
    rows: list[tuple[EncryptionKey | None, dict[str, Any], str | None]] = [
        (A, {"encryption_key": B, "decryption_keys": A}, B.sha256),
        (None, {"encryption_key": A}, A.sha256),
        (A, {"decryption_keys": [B, A]}, None),
        (A, {"kms_key": KMS, "decryption_keys": A}, None),
    ]
    for key, options, wanted in rows:
        cloud.reset()
        cloud.clear_faults()
        cloud.store.create_bucket("bkt")
        put(cloud, data, key)
        cloud.fault(Fault.reset(operation=REWRITE, nth=2))
        async with storing(cloud, policy=IMPATIENT) as storage:
            with pytest.raises(WireError):
                await copy(storage, TARGET, COPY, chunk_size=MIB, **options)
        (state,) = states()
        assert not any(secret in state.read_text() for secret in SECRETS)
        async with storing(cloud) as storage:
            if wanted is not None:
                other = A if wanted == B.sha256 else B
                with pytest.raises(TransferError, match="with another encryption key"):
                    await copy(storage, TARGET, COPY, encryption_key=other, decryption_keys=[A, B])
            cloud.fault(Fault.reset(when="after", operation=REWRITE, nth=3))
            made = await copy(storage, TARGET, COPY, chunk_size=MIB, **options)
        assert (made.key_sha256, sha256(cloud, "copy")) == (wanted, wanted)
        assert made.crc32c == cloud.store.object("bkt", "copy").crc32c
        assert cloud.effects.count(REWRITE) == 1
        assert cloud.requests.count(REWRITE) < 7
        kms = cloud.store.object("bkt", "copy").keys.kms_version
        assert kms == (f"{KMS}/cryptoKeyVersions/1" if "kms_key" in options else None)


async def test_a_key_is_rotated_in_place(cloud: Cloud) -> None:
    """An object is copied onto itself with another key, once, and not if it has that key already."""
    put(cloud, b"secret", metadata={"k": "v"})
    async with storing(cloud) as storage:
        cloud.fault(Fault.reset(when="after", operation=REWRITE))
        made = await copy(storage, TARGET, TARGET, encryption_key=B, decryption_keys=A)
        assert (made.key_sha256, made.metadata, cloud.effects.count(REWRITE)) == (B.sha256, {"k": "v"}, 1)
        for options, text in (({"encryption_key": B}, ", and it has this key already"), ({"decryption_keys": B}, "")):
            with pytest.raises(TransferError, match=f"source and target are the same{text}$"):
                await copy(storage, TARGET, TARGET, **options)  # type: ignore[arg-type]
        moved = await amv(storage, str(TARGET), str(TARGET), encryption_key=A, decryption_keys=B)
        assert [(each.error, each.hint) for each in moved.failures] == [
            ("source and target are the same", "give it another key with cp")
        ]
    assert cloud.effects.count() == 1


async def test_a_rotation_replaces_nothing_newer(cloud: Cloud) -> None:
    """If another client writes the object before it gets its new key, that version stays, also where old ones do."""
    cloud.store.bucket("bkt").fields["versioning"] = {"enabled": True}
    put(cloud, b"old")
    async with storing(cloud) as storage:
        (listed,) = [each async for each in storage.objects("bkt") if isinstance(each, Object)]
        put(cloud, b"new")
        with pytest.raises(TargetChanged, match=f"is not generation {listed.generation} any more"):
            await copy(storage, listed, TARGET, encryption_key=B, decryption_keys=A)
        assert cloud.store.object("bkt", TARGET.name).data == b"new"
        await copy(storage, listed.url, TARGET, encryption_key=B, decryption_keys=A)  # the user wants this version
    assert (cloud.store.object("bkt", TARGET.name).data, sha256(cloud)) == (b"old", B.sha256)


async def test_a_folder_gets_another_key_in_place(cloud: Cloud) -> None:
    """`cp` copies objects onto themselves to give them a key, and the next run skips those that have it."""
    for name in ("x/a", "x/y/b", "z"):
        put(cloud, name.encode(), A, name)
    async with storing(cloud) as storage:
        both: dict[str, Any] = {"encryption_key": B, "decryption_keys": A}
        for source, target, done, skipped in (
            ("gs://bkt/x", "gs://bkt/", 2, 0),
            ("gs://bkt/x", "gs://bkt/", 0, 2),
            ("gs://bkt/z", "gs://bkt/z", 1, 0),
            ("gs://bkt/z", "gs://bkt/", 0, 1),
            ("gs://bkt/z", "gs://bkt/z", 0, 1),
        ):
            summary = await acp(storage, source, target, recursive=target == "gs://bkt/", **both)
            assert (summary.done, summary.skipped, summary.failed) == (done, skipped, 0)
        nothing = await acp(storage, "gs://bkt/no", "gs://bkt/no", **both)
        assert [each.error for each in nothing.failures] == ["copy gs://bkt/no: 404 Not Found: there is no such object"]
        assert (await acp(storage, "gs://bkt/x", "gs://bkt/", recursive=True, decryption_keys=B)).failed == 1
    objects = {item.name: (item.keys.sha256, item.data) for item in cloud.store.bucket("bkt").versions()}
    assert objects == {name: (B.sha256, name.encode()) for name in ("x/a", "x/y/b", "z")}


async def test_a_copy_onto_itself_is_never_deleted() -> None:
    """A server that ignores the key, or damages the copy, has replaced the source: the copy may be all there is."""
    keyed = {"customerEncryption": {"keySha256": B.sha256}, "crc32c": "AAAAAA=="}
    rows: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({}, WrongResponse, "was not encrypted by the key that was sent$"),
        (keyed, ChecksumMismatch, "differs from"),
    ]
    there = {"bucket": TARGET.bucket, "name": TARGET.name, "generation": "4", "size": "5", "crc32c": "mnG7TA=="}
    for changes, kind, text in rows:
        done = {"done": True, "totalBytesRewritten": "5", "resource": {**there, "generation": "5", **changes}}
        with Wire(json_reply(there), json_reply(done)) as wire:
            async with storing(wire.url, policy=IMPATIENT) as storage:
                with pytest.raises(kind, match=text) as caught:
                    await copy(storage, TARGET, TARGET, encryption_key=B)
        assert "deleted" not in str(caught.value)
        assert [each.method for each in wire.seen] == ["GET", "POST"]


def json_reply(value: dict[str, Any]) -> Answer:
    """Return a response with JSON."""
    return reply(200, json.dumps(value).encode(), "Content-Type: application/json")
