"""Encryption keys: objects are written and read with them, and no state, error or event shows a key."""

import base64
import io
import json
import pickle
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from forbear.text.redact import redact
from forbear_cloud import Cloud, Fault
from forbear_cloud.storage.model import crc32c_of
from forbear_testkit.rows import for_each
from forbear_testkit.transfer.downloads import names, odd_server, reply
from forbear_testkit.transfer.keys import COPY, IMPATIENT, KMS, REWRITE, SECRETS, A, B, put, sha256
from forbear_testkit.transfer.uploads import (
    CHUNK,
    INSERT,
    MIB,
    SEND,
    TARGET,
    data_of,
    file_of,
    states,
    steps,
    storing,
    versions,
)
from forbear_transfer import (
    EncryptionKey,
    HttpError,
    NoEncryptionKey,
    Object,
    Settings,
    Storage,
    TransferError,
    Url,
    acp,
    arsync,
    cat,
    check,
    cp,
    hashes,
    mv,
    plan,
    stat,
)
from forbear_transfer.downloads.download import download
from forbear_transfer.encryption import ObjectEncryption, check_keys
from forbear_transfer.rewrite import copy
from forbear_transfer.storage.endpoint import conceal_key
from forbear_transfer.uploads.upload import upload
from forbear_transfer.wire.response import WireError

pytestmark = pytest.mark.anyio


@for_each(
    [
        (lambda: EncryptionKey("c2hvcnQ="), ValueError, "`key` must be base64 of 32 bytes, such as `openssl"),
        (lambda: EncryptionKey(SECRETS[0][:-1]), ValueError, "this is no base64"),
        (lambda: EncryptionKey(SECRETS[0].replace("W", "é")), ValueError, "this is no base64"),
        (lambda: EncryptionKey(b"a" * 31), ValueError, "got 31 bytes"),
        (lambda: EncryptionKey(7), TypeError, "`key` must be a string or bytes, got int"),  # type: ignore[arg-type]
        (lambda: cp("f", "gs://b/o", encryption_key=SECRETS[0]), TypeError, "must be an EncryptionKey, got str"),  # type: ignore[arg-type]
        (lambda: cp("f", "gs://b/o", decryption_keys=SECRETS[0]), TypeError, "`decryption_keys` must be an Encr"),  # type: ignore[arg-type]
        (lambda: cp("f", "gs://b/o", decryption_keys=7), TypeError, "must be an EncryptionKey, got int"),  # type: ignore[arg-type]
        (lambda: stat("gs://b/o", decryption_keys=7), TypeError, "must be an EncryptionKey, got int"),  # type: ignore[arg-type]
        (lambda: hashes("gs://b/o", decryption_keys=7), TypeError, "must be an EncryptionKey, got int"),  # type: ignore[arg-type]
        (lambda: cat("gs://b/o", io.BytesIO(), decryption_keys=7), TypeError, "must be an EncryptionKey, got int"),  # type: ignore[arg-type]
        (lambda: check("gs://b/o", "f", decryption_keys=7), TypeError, "must be an EncryptionKey, got int"),  # type: ignore[arg-type]
        (lambda: cp("f", "gs://b/o", encryption_key=A, kms_key=KMS), ValueError, "does not go with `kms_key`"),
        (lambda: cp("f", "gs://b/o", kms_key="k"), ValueError, "`kms_key` must be projects/PROJECT/locations/LOCATION"),
        (lambda: cp("f", "gs://b/o", kms_key=b"k"), TypeError, "`kms_key` must be a string, got bytes"),  # type: ignore[arg-type]
        (lambda: cp("gs://b/o", "f", encryption_key=A), ValueError, "`encryption_key` is for targets in the cloud"),
        (lambda: cp("gs://b/o", "f", kms_key=KMS), ValueError, "`kms_key` is for targets in the cloud, got f; leave"),
    ],
    "{2}",
)
def test_wrong_keys_are_refused(act: Callable[[], object], kind: type[Exception], text: str) -> None:
    """The error names the parameter and the rule, and not the key."""
    with pytest.raises(kind) as caught:
        act()
    assert text in str(caught.value)
    assert not any(secret[:20] in str(caught.value) for secret in SECRETS)


def test_a_key_is_a_value(tmp_path: Path) -> None:
    """Keys with the same bytes are equal, come from text, bytes and files, and are hidden wherever they are printed."""
    file = tmp_path / "key"
    file.write_text(f"\n{SECRETS[0]}\n")
    same = [A, EncryptionKey(SECRETS[0]), EncryptionKey.from_file(file), pickle.loads(pickle.dumps(A))]
    assert set(same) == {A}
    assert B not in same
    assert SECRETS[0] != A
    assert check_keys(iter([A, B])) == (A, B)  # type: ignore[arg-type]
    item = plan(
        "f", "gs://bkt/o", encryption_key=A, decryption_keys=B, settings=Settings(endpoint="http://127.0.0.1:1")
    )
    for text in (repr(item), repr(asdict(item[0])), f"{A} {A!r}"):
        assert A.sha256 in text
        assert not any(secret in text for secret in SECRETS)
    assert pickle.loads(pickle.dumps(item)) == item
    file.write_text(SECRETS[0][:-4])
    with pytest.raises(ValueError, match="got 30 bytes") as caught:
        EncryptionKey.from_file(file)
    assert str(file) in str(caught.value)
    with pytest.raises(TransferError, match="cannot read"):
        EncryptionKey.from_file(tmp_path)
    with pytest.raises(TransferError, match="its name looks like a key itself") as refused:
        EncryptionKey.from_file(SECRETS[0])
    assert SECRETS[0] not in "".join(traceback.format_exception(refused.value))


@for_each(
    [
        (f"{KMS}/cryptoKeyVersions/2", True),
        (KMS.replace("/p/", "/123/") + "/cryptoKeyVersions/2", True),
        (KMS.replace("/p/", "/q/"), False),
        (f"{KMS}2/cryptoKeyVersions/1", False),
        ("k", False),
        (None, False),
    ],
    "{0}",
)
def test_the_name_of_a_kms_key_fits_its_versions(version: str | None, fits: bool) -> None:
    """A project has an id and a number; the service may state the other one than the user has written."""
    there = Object(bucket="bkt", name="o", generation=1, size=0, crc32c=None, kms_key=version)
    assert ObjectEncryption(kms_key=KMS).is_of(there) is fits


async def pieces() -> AsyncIterator[bytes]:
    """A stream of more than one chunk."""
    for start in range(0, 3 * CHUNK, CHUNK):
        yield data_of(3 * CHUNK)[start : start + CHUNK]


async def test_every_upload_sends_the_key(cloud: Cloud, tmp_path: Path) -> None:
    """Uploads of every kind send the key with each request, through faults, and make one object that has it."""
    sources: list[tuple[Any, dict[str, Any]]] = [
        (file_of(tmp_path, 1000, "small"), {}),
        (file_of(tmp_path, 3 * CHUNK, "large"), {}),
        (file_of(tmp_path, 3 * CHUNK, "zipped"), {"gzip": True}),
        (io.BytesIO(b"short"), {}),
        (pieces(), {}),
    ]
    for number, (source, options) in enumerate(sources):
        cloud.clear_faults()
        for when in ("before", "after"):
            cloud.fault(Fault.reset(when=when, operation=INSERT))
            cloud.fault(Fault.reset(when=when, operation=SEND, nth=2))
        before, target = cloud.requests.total, Url("bkt", f"o{number}")
        async with storing(cloud) as storage:
            made = await upload(storage, source, target, chunk_size=CHUNK, encryption_key=A, **options)
        assert (made.key_sha256, sha256(cloud, target.name)) == (A.sha256, A.sha256)
        assert versions(cloud, target.name) == 1
        sent = [each for each in list(cloud.requests)[before:] if each.method != "GET"]
        assert {each.headers.get("x-goog-encryption-key-sha256") for each in sent} == {A.sha256}


async def test_every_download_finds_the_key(cloud: Cloud, tmp_path: Path) -> None:
    """The key of an object is found among several by its hash; slices and continued requests send it, too."""
    for size in (1000, 3 * MIB):
        put(cloud, data_of(size))
        put(cloud, data_of(size), None, "plain")
        async with storing(cloud) as storage:
            (listed, _) = [each async for each in storage.objects("bkt")][::-1]
            assert (getattr(listed, "crc32c", ""), getattr(listed, "key_sha256", "")) == (None, A.sha256)
            for source, slices in ((TARGET, None), (listed, 3), (Url("bkt", "plain"), None)):
                cloud.fault(Fault.truncate(size // 8, operation="storage.objects.get", path="alt=media"))
                target = tmp_path / "file"
                made = await download(storage, source, target, slices=slices, decryption_keys=[B, A])
                assert target.read_bytes() == data_of(size)
                assert made.crc32c == cloud.store.object("bkt", made.name).crc32c
                target.unlink()
    put(cloud, b"secret")
    async with storing(cloud) as storage:
        stream = io.BytesIO()
        await download(storage, TARGET, stream, decryption_keys=A)
        assert stream.getvalue() == b"secret"
    assert names(tmp_path) == []


async def test_without_the_key_nothing_is_read(cloud: Cloud, tmp_path: Path) -> None:
    """The error says which key is needed, and how to name it; nothing is written."""
    put(cloud, b"secret")
    async with storing(cloud) as storage:
        (listed,) = [each async for each in storage.objects("bkt")]
        cases: list[tuple[Any, Any, type[TransferError], str]] = [
            (TARGET, None, HttpError, "encrypted by a customer-supplied encryption key"),
            (TARGET, B, NoEncryptionKey, f"by the key with the SHA-256 {A.sha256}; it is none of those"),
            (listed, None, NoEncryptionKey, "no key was named"),
        ]
        for source, keys, kind, text in cases:
            with pytest.raises(kind, match="encrypted") as caught:
                await download(storage, source, tmp_path / "file", decryption_keys=keys)
            assert text in str(caught.value)
            assert caught.value.hint == "name the key that the object was written with: `decryption_keys`"
            with pytest.raises(TransferError, match="encrypted"):
                await copy(storage, source, COPY, decryption_keys=keys)
    assert names(tmp_path) == []
    assert cloud.effects.count() == 0


async def test_an_upload_continues_with_its_key_only(cloud: Cloud, tmp_path: Path) -> None:
    """The state keeps the hash of the key. The same key continues; another one is refused, and so is none."""
    path = file_of(tmp_path, 5 * CHUNK)
    cloud.fault(Fault.reset(operation=SEND, nth=3))
    async with storing(cloud, policy=IMPATIENT) as storage:
        with pytest.raises(WireError):
            await upload(storage, path, TARGET, chunk_size=CHUNK, encryption_key=A)
    (state,) = states()
    assert json.loads(state.read_text())["values"]["key_sha256"] == A.sha256
    assert not any(secret in state.read_text() for secret in SECRETS)
    async with storing(cloud) as storage:
        for key in (B, None):
            with pytest.raises(TransferError, match="with another encryption key, whose SHA-256 is") as caught:
                await upload(storage, path, TARGET, chunk_size=CHUNK, encryption_key=key)
            assert A.sha256 in str(caught.value)
            assert caught.value.hint == f"use that key again; or delete {state} to start over"
        assert steps(cloud).count("start") == 1
        await upload(storage, path, TARGET, chunk_size=CHUNK, encryption_key=A)
    assert (steps(cloud).count("start"), sha256(cloud), versions(cloud), states()) == (1, A.sha256, 1, [])


async def test_an_upload_without_a_key_starts_over_with_one(cloud: Cloud, tmp_path: Path) -> None:
    """A session that was begun without a customer-supplied key is not continued with one."""
    path = file_of(tmp_path, 5 * CHUNK)
    cloud.fault(Fault.reset(operation=SEND, nth=3))
    async with storing(cloud, policy=IMPATIENT) as storage:
        with pytest.raises(WireError):
            await upload(storage, path, TARGET, chunk_size=CHUNK, kms_key=KMS)
    async with storing(cloud) as storage:
        await upload(storage, path, TARGET, chunk_size=CHUNK, encryption_key=A)
    assert (steps(cloud).count("start"), sha256(cloud), versions(cloud)) == (2, A.sha256, 1)


async def test_an_equal_object_without_the_key_is_not_ours(cloud: Cloud, tmp_path: Path) -> None:
    """After a lost response, an object with the same bytes and metadata counts only if it has the key."""
    path = file_of(tmp_path, 1000)
    async with storing(cloud) as storage:
        await upload(storage, path, TARGET)
        cloud.fault(Fault.reset(when="after", operation=INSERT))
        assert (await upload(storage, path, TARGET, encryption_key=A)).key_sha256 == A.sha256
    assert (sha256(cloud), versions(cloud)) == (A.sha256, 2)


async def test_tracebacks_with_variables_show_no_key(cloud: Cloud, tmp_path: Path) -> None:
    """Tools that log the variables of each frame by their repr find no key, in errors of any step."""
    small, large = file_of(tmp_path, 1000), file_of(tmp_path, 3 * CHUNK, "large")
    put(cloud, b"secret", A, "there")
    there = Url("bkt", "there")
    steps: list[tuple[str, Callable[[Storage], Any]]] = [
        (INSERT, lambda storage: upload(storage, small, TARGET, encryption_key=A)),
        (SEND, lambda storage: upload(storage, large, TARGET, chunk_size=CHUNK, encryption_key=A)),
        (REWRITE, lambda storage: copy(storage, there, COPY, encryption_key=B, decryption_keys=A)),
        ("storage.objects.get", lambda storage: download(storage, there, io.BytesIO(), decryption_keys=A)),
    ]
    async with storing(cloud, policy=IMPATIENT) as storage:
        for operation, act in steps:
            cloud.fault(Fault.reset(operation=operation))
            with pytest.raises(WireError) as caught:
                await act(storage)
            text = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
            assert "headers = {" in text
            assert not any(secret in text for secret in SECRETS), operation


async def test_rsync_compares_objects_with_keys(cloud: Cloud, tmp_path: Path) -> None:
    """The checksums that listings lack are requested with the key. Without it, equal objects are copied again."""
    file_of(tmp_path, 1000, "file")
    async with storing(cloud) as storage:
        assert (await arsync(storage, str(tmp_path), "gs://bkt/up", encryption_key=A)).done == 1
        assert (await arsync(storage, str(tmp_path), "gs://bkt/up", encryption_key=B, checksum=True)).done == 1
        assert sha256(cloud, "up/file") == B.sha256
        rows: list[tuple[dict[str, Any], int]] = [({}, 1), ({"decryption_keys": [A, B]}, 0), ({"encryption_key": B}, 0)]
        for options, done in rows:
            both: dict[str, Any] = {"checksum": True, "dry_run": True, **options}
            assert (await arsync(storage, str(tmp_path), "gs://bkt/up", **both)).skipped == done
        assert (await arsync(storage, "gs://bkt/up", "gs://bkt/other", decryption_keys=B, kms_key=KMS)).done == 1
        assert (await arsync(storage, "gs://bkt/up", "gs://bkt/other", decryption_keys=B)).done == 0
        assert (await arsync(storage, "gs://bkt/up", "gs://bkt/other")).failed == 1
        assert (await arsync(storage, "gs://bkt/up", str(tmp_path / "new"), decryption_keys=B)).done == 1
    assert (tmp_path / "new" / "file").read_bytes() == data_of(1000)


def test_commands_read_with_keys(cloud: Cloud, tmp_path: Path) -> None:
    """`cat`, `stat`, `hashes`, `check` and `mv` find the key of each object, and say what they lack without it."""
    put(cloud, b"secret", name="x/a")
    put(cloud, b"public", None, name="x/b")
    (tmp_path / "a").write_bytes(b"secret")
    (tmp_path / "b").write_bytes(b"public")
    here = Settings(endpoint=cloud.url)
    for keys in (A, None):
        has = keys is not None
        for address, byte_range, text in (("x/*", None, b"secretpublic"), ("x/a", "1-2", b"ec"), ("x/*", "0-5", b"")):
            stream = io.BytesIO()
            if has:
                cat(f"gs://bkt/{address}", stream, byte_range=byte_range, decryption_keys=keys, settings=here)
                assert stream.getvalue() == (text or b"secretpublic")
            else:
                with pytest.raises(NoEncryptionKey):
                    cat(f"gs://bkt/{address}", stream, byte_range=byte_range, settings=here)
        (one, _) = stat("gs://bkt/x/*", decryption_keys=keys, settings=here)
        assert (one.object.key_sha256, one.object.md5 is not None) == (A.sha256, has)
        (hashed, _) = hashes("gs://bkt/x/*", decryption_keys=keys, settings=here)
        assert (hashed.crc32c is not None, hashed.md5 is not None) == (has, has)
        different = [each.note for each in check(tmp_path, "gs://bkt/x", decryption_keys=keys, settings=here)]
        assert different == ([] if has else ["the service states no CRC32C without the object's key"])
        moved = mv("gs://bkt/x/a", "gs://bkt/y/a", encryption_key=keys, settings=here)
        assert (moved.done, moved.failed) == ((1, 0) if has else (0, 1))
        if has:
            assert sha256(cloud, "y/a") == A.sha256
            assert mv("gs://bkt/y/a", "gs://bkt/x/a", encryption_key=keys, settings=here).ok


async def test_kms_keys_are_for_every_write(cloud: Cloud, tmp_path: Path) -> None:
    """Uploads of both kinds and copies have the name of the key; downloads need none."""
    file_of(tmp_path, 1000, "small")
    async with storing(cloud) as storage:
        assert (await acp(storage, f"{tmp_path}/*", "gs://bkt/a/", kms_key=KMS)).done == 1
        large = file_of(tmp_path, 3 * CHUNK, "large")
        assert (await upload(storage, large, Url("bkt", "a/large"), chunk_size=CHUNK, kms_key=KMS)).kms_key
        assert (await acp(storage, "gs://bkt/a/*", "gs://bkt/b/", kms_key=KMS)).done == 2
        assert (await acp(storage, "gs://bkt/b/*", f"{tmp_path}/back/")).done == 2
    keys = {item.keys.kms_version for item in cloud.store.bucket("bkt").versions()}
    assert keys == {f"{KMS}/cryptoKeyVersions/1"}
    assert (tmp_path / "back" / "large").read_bytes() == data_of(3 * CHUNK)


async def test_a_server_that_ignores_the_key_is_found_out(tmp_path: Path) -> None:
    """The object that it made is deleted, and the upload fails."""
    path = file_of(tmp_path, 5)
    body = {"bucket": "bkt", "name": "thing", "generation": "7", "size": "5", "crc32c": crc32c_of(path.read_bytes())}
    made = reply("200 OK", json.dumps(body).encode(), "Content-Type: application/json")
    async with odd_server(made, reply("204 No Content", b"")) as url, storing(url) as storage:
        with pytest.raises(TransferError, match="was not encrypted by the key that was sent, and was deleted"):
            await upload(storage, path, TARGET, encryption_key=A)


def test_other_spellings_of_a_key_are_hidden() -> None:
    """A server may repeat it percent-encoded, URL-safe, as hexadecimals or in JSON, with padding or without."""
    raw = bytes(range(200, 232))
    key = base64.b64encode(raw).decode()
    conceal_key(EncryptionKey(raw).headers(), "https://storage.googleapis.com")
    quoted = quote(key, safe="")
    spellings = [key, quoted, quoted.replace("%2B", "%2b").replace("%2F", "%2f"), raw.hex(), raw.hex().upper()]
    spellings += [base64.urlsafe_b64encode(raw).decode(), key.replace("/", "\\/"), key.replace("+", " ")]
    assert "+" in key
    assert "/" in key
    for text in [*spellings, *(text.rstrip("=") for text in spellings)]:
        shown = redact(f"you sent {text} to us")
        assert shown.startswith("you sent [redacted]"), text
        assert len(shown) <= len("you sent [redacted]%3D to us"), text


async def test_keys_stay_secret(tmp_path: Path) -> None:
    """A key is never sent over plain http to another machine, and not shown if a server repeats it."""
    async with Storage(endpoint="http://emulator.example:80") as storage:
        with pytest.raises(TransferError, match="an encryption key must not be sent to http://emulator"):
            await upload(storage, file_of(tmp_path, 5), TARGET, encryption_key=A)
    echo = json.dumps({"error": {"code": 400, "message": f"bad: {SECRETS[0]}"}}).encode()
    async with odd_server(reply("400 Bad Request", echo)) as url, storing(url) as storage:
        with pytest.raises(HttpError, match=r"bad: \[redacted\]"):
            await upload(storage, file_of(tmp_path, 5), TARGET, encryption_key=A)
    async with odd_server(reply("200 OK", SECRETS[0].encode())) as url, storing(url) as storage:
        with pytest.raises(TransferError, match="redacted"):
            await upload(storage, file_of(tmp_path, 5), TARGET, encryption_key=A)
