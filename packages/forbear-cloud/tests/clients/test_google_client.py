"""The real google-cloud-storage works against the cloud."""

import gzip
import io
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

import pytest
from google.api_core.exceptions import BadRequest, Forbidden, PreconditionFailed
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from forbear_cloud import Cloud

DATA = bytes(range(256)) * 2734
CHUNK = 262_144
ANONYMOUS = cast("Callable[[], object]", AnonymousCredentials)()


@pytest.fixture
def client(cloud: Cloud) -> Iterator[storage.Client]:
    """Return the real client, connected to the cloud."""
    options = {"api_endpoint": cloud.url}
    client = storage.Client(project="p", credentials=ANONYMOUS, client_options=options)
    yield client
    client.close()


@pytest.fixture
def bucket(client: storage.Client) -> storage.Bucket:
    """Return a bucket that the client has created."""
    return client.create_bucket("bucket", location="EU")


def test_the_client_can_change_buckets(client: storage.Client, bucket: storage.Bucket) -> None:
    """Buckets can be created, listed, changed and deleted."""
    bucket.labels = {"a": "b"}
    bucket.versioning_enabled = True
    bucket.patch(if_metageneration_match=1)
    bucket.reload()
    assert (bucket.labels, bucket.versioning_enabled, bucket.metageneration) == ({"a": "b"}, True, 2)
    assert [each.name for each in client.list_buckets()] == ["bkt", "bucket"]
    bucket.delete()
    assert client.lookup_bucket("bucket") is None


def test_small_objects(bucket: storage.Bucket) -> None:
    """An object is uploaded with its metadata, downloaded with a checked hash, and deleted."""
    blob = bucket.blob("a/ä.txt")
    blob.metadata = {"k": "v"}
    blob.upload_from_string("hello", content_type="text/plain", if_generation_match=0)
    assert bucket.blob("a/ä.txt").download_as_bytes(checksum="crc32c") == b"hello"
    item = bucket.get_blob("a/ä.txt")
    assert item is not None
    assert item.metadata == {"k": "v"}
    blob.content_language = "en"
    blob.patch()
    assert blob.metageneration == 2
    assert bucket.blob("a/ä.txt").download_as_bytes(start=1, end=2) == b"el"
    blob.delete(if_generation_match=blob.generation)
    assert not blob.exists()


def test_resumable_uploads(cloud: Cloud, bucket: storage.Bucket) -> None:
    """Uploads in small chunks arrive complete: with a known size, an unknown one, or through a writer."""
    bucket.blob("known", chunk_size=CHUNK).upload_from_file(io.BytesIO(DATA), size=len(DATA), checksum="md5")
    bucket.blob("unknown", chunk_size=CHUNK).upload_from_file(io.BytesIO(DATA))
    bucket.blob("empty", chunk_size=CHUNK).upload_from_file(io.BytesIO())
    with cast("IO[bytes]", bucket.blob("written").open("wb", chunk_size=CHUNK)) as file:
        file.write(DATA)
    assert cloud.requests.count("storage.objects.insert.send") >= 6
    assert cloud.effects.count("storage.objects.insert") == 4
    for name in ("known", "unknown", "written"):
        assert bucket.blob(name).download_as_bytes() == DATA
    out = io.BytesIO()
    bucket.blob("known", chunk_size=CHUNK).download_to_file(out)
    assert out.getvalue() == DATA
    assert bucket.blob("empty").download_as_bytes() == b""


def test_the_client_can_list_pages_prefixes_and_versions(bucket: storage.Bucket) -> None:
    """The client can read pages, prefixes and versions."""
    for name in ("a", "b/1", "b/2", "c"):
        bucket.blob(name).upload_from_string(name)
    assert [blob.name for blob in bucket.list_blobs(page_size=2)] == ["a", "b/1", "b/2", "c"]
    folded = bucket.list_blobs(delimiter="/")
    assert ([blob.name for blob in folded], folded.prefixes) == (["a", "c"], {"b/"})
    bucket.delete(force=True)


def test_compose_and_rewrite(bucket: storage.Bucket) -> None:
    """Objects can be joined, rewritten, copied, renamed and moved."""
    one, two = bucket.blob("one"), bucket.blob("two")
    one.upload_from_string(b"1" * 700_000)
    two.upload_from_string(b"2" * 700_000)
    joined = bucket.blob("joined")
    joined.compose([one, two], if_generation_match=0)
    assert (joined.component_count, joined.size) == (2, 1_400_000)
    rewritten = bucket.blob("rewritten")
    assert rewritten.rewrite(joined) == (None, 1_400_000, 1_400_000)
    bucket.copy_blob(one, bucket, "copy")
    bucket.rename_blob(bucket.blob("copy"), "renamed")
    moved = bucket.move_blob(bucket.blob("renamed"), "moved")
    assert moved.download_as_bytes() == one.download_as_bytes()
    assert {blob.name for blob in bucket.list_blobs()} == {"one", "two", "joined", "rewritten", "moved"}


def test_the_client_can_read_stored_gzip(bucket: storage.Bucket) -> None:
    """Stored gzip is decompressed, or downloaded as stored with raw_download."""
    blob = bucket.blob("z")
    blob.content_encoding = "gzip"
    packed = gzip.compress(b"plain" * 100)
    blob.upload_from_string(packed)
    assert blob.download_as_bytes() == b"plain" * 100
    assert blob.download_as_bytes(raw_download=True) == packed


def test_the_client_can_change_access(bucket: storage.Bucket) -> None:
    """Access control lists and policies can be read and written."""
    blob = bucket.blob("o")
    blob.upload_from_string("x")
    blob.make_public()
    blob.acl.reload()
    assert {"entity": "allUsers", "role": "READER"} in list(blob.acl)
    policy = bucket.get_iam_policy()
    policy.bindings.append({"role": "roles/viewer", "members": {"user:a@example.com"}})
    bucket.set_iam_policy(policy)
    assert bucket.get_iam_policy().bindings[0]["role"] == "roles/viewer"
    assert bucket.test_iam_permissions(["storage.objects.get"]) == ["storage.objects.get"]


def test_keys_and_notifications(client: storage.Client, bucket: storage.Bucket) -> None:
    """All operations on HMAC keys and notifications work."""
    key, secret = client.create_hmac_key("robot@example.com")
    assert secret
    key.state = "INACTIVE"
    key.update()
    assert [each.access_id for each in client.list_hmac_keys()] == [key.access_id]
    key.delete()
    notification = bucket.notification("topic", topic_project="project-one")
    notification.create()
    assert [each.notification_id for each in bucket.list_notifications()] == [notification.notification_id]
    notification.delete()
    assert "@" in client.get_service_account_email()


def test_the_client_can_send_batches(cloud: Cloud, client: storage.Client, bucket: storage.Bucket) -> None:
    """Several requests go in one batch, each with its own effect and precondition."""
    blobs = [cast("Any", bucket.blob(name)) for name in "abc"]
    for blob in blobs:
        blob.upload_from_string("x")
    with client.batch():
        blobs[0].delete(if_generation_match=blobs[0].generation)
        blobs[1].metadata = {"k": "v"}
        blobs[1].patch()
    assert blobs[1].metageneration == 2
    assert cloud.effects.count("storage.objects.delete", "bucket/a") == 1
    with pytest.raises(PreconditionFailed), client.batch():
        blobs[2].delete(if_generation_match=1)
    assert blobs[2].exists()


def test_what_protects_objects(bucket: storage.Bucket) -> None:
    """Customer-supplied keys, holds and soft delete work as at the service."""
    secret = cast("Any", bucket.blob("secret", encryption_key=b"k" * 32))
    secret.upload_from_string("secret")
    assert secret.download_as_text() == "secret"
    with pytest.raises(BadRequest):
        bucket.blob("secret").download_as_text()
    secret.temporary_hold = True
    secret.patch()
    with pytest.raises(Forbidden):
        secret.delete()
    secret.temporary_hold = False
    secret.patch()
    cast("Any", bucket.soft_delete_policy).retention_duration_seconds = 7 * 86_400
    bucket.patch()
    secret.delete()
    restored = cast("Any", bucket).restore_blob("secret", generation=secret.generation)
    assert restored.generation > secret.generation
