"""Every call of google-cloud-storage that sends requests, with and without what makes it safe to repeat.

Each row has the name of a method, a remark where there are several, and the call. A call takes a `World`.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from forbear_testkit.clients.google.storage_world import CHUNK, CONTENT, MADE, NEW, OLD, PART, World
from google.api_core.iam import Policy
from google.cloud.storage import transfer_manager

ETAG = "with etag"
_THREAD: dict[str, Any] = {"worker_type": transfer_manager.THREAD, "max_workers": 1}


@dataclass(frozen=True)
class Row:
    """One call; `remark` is `ETAG` where the body carries an etag.

    With `own_loop` the library sends a request of the call with its own default and not with the call's `retry=`.
    """

    method: str
    remark: str
    call: Callable[[World], object]
    own_loop: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.remark}".strip()


class Call(Protocol):
    """A call that hands its keyword arguments on to the library."""

    def __call__(self, w: World, **kw: Any) -> object:
        """Make it."""
        ...


def rows_of(method: str, call: Call, **conditions: Any) -> list[Row]:
    """A call as it is, and with each of these arguments; one that is a function is called with the world."""
    return [
        Row(method, "", lambda w: call(w, **w.retry)),
        *(Row(method, f"with {name}", _conditional(call, name, value)) for name, value in conditions.items()),
    ]


def _conditional(call: Call, name: str, value: Any) -> Callable[[World], object]:
    return lambda w: call(w, **{name: value(w) if callable(value) else value}, **w.retry)


def _current(w: World) -> int:
    return w.generation()


def _both(w: World) -> list[int]:
    return [w.generation(OLD), w.generation("source")]


def _labelled(thing: Any) -> Any:
    """A bucket with a change to save."""
    thing.labels = {"a": "b"}
    return thing


def _titled(thing: Any) -> Any:
    """An object with a change to save."""
    thing.content_language = "en"
    return thing


def _unread(thing: Any) -> Any:
    """An access control list, or what has one, which the client need not read before it changes it."""
    getattr(thing, "acl", thing).loaded = True
    return thing


def _granted(acl: Any) -> Any:
    """An access control list with one entry more, which the client need not read before."""
    acl.loaded = True
    acl.all().grant_read()
    return acl


def _names(things: Any) -> list[str]:
    return [getattr(thing, "name", None) or getattr(thing, "access_id", None) or thing.topic_name for thing in things]


def _policy(etag: str | None) -> Any:
    made: Any = Policy
    policy = made(etag=etag, version=1)
    policy["roles/storage.objectViewer"] = {"allUsers"}
    return policy


def _into(download: Callable[[io.BytesIO], object]) -> bytes:
    """Return what a method writes to a file."""
    target = io.BytesIO()
    download(target)
    return target.getvalue()


def _read_file(w: World, **kwargs: Any) -> bytes:
    with w.blob("big").open("rb", chunk_size=CHUNK, **kwargs) as file:
        content: bytes = file.read()
    return content


def _write_file(w: World, **kwargs: Any) -> None:
    file = w.blob(NEW).open("wb", chunk_size=CHUNK, **kwargs)
    try:
        file.write(CONTENT)
        file.close()
    except BaseException:
        file.terminate()  # else its finalizer tries to close it again
        raise


def _filename(w: World, **kwargs: Any) -> bytes:
    path = w.folder / "copy"
    w.blob("big").download_to_filename(path, **kwargs)
    return path.read_bytes()


def _many_down(w: World, **kwargs: Any) -> bytes:
    target = io.BytesIO()
    pairs = [(w.blob("big"), target)]
    transfer_manager.download_many(pairs, download_kwargs=kwargs, raise_exception=True, **_THREAD)
    return target.getvalue()


def _slices_down(w: World, **kwargs: Any) -> bytes:
    path, blob = w.folder / "slices", w.bucket.get_blob("big", **kwargs)
    transfer_manager.download_chunks_concurrently(blob, path, chunk_size=CHUNK, download_kwargs=kwargs, **_THREAD)
    return path.read_bytes()


def _parts_up(w: World, **kwargs: Any) -> None:
    transfer_manager.upload_chunks_concurrently(
        str(w.folder / "large"), w.blob(NEW), chunk_size=PART, **kwargs, **_THREAD
    )


def _many_up(w: World, *, skip_if_exists: bool = False, **kwargs: Any) -> None:
    pairs = [(io.BytesIO(b"x"), w.blob(name)) for name in (NEW, "newer")]
    transfer_manager.upload_many(
        pairs, upload_kwargs=kwargs, skip_if_exists=skip_if_exists, raise_exception=True, **_THREAD
    )


def _batch(w: World, **_: Any) -> None:
    with w.client.batch():
        _titled(w.blob()).patch()
        w.blob("source").delete()


ABSENT, PRESENT, VERSION = (
    {"if_generation_match": 0},
    {"if_generation_match": _current},
    {"if_metageneration_match": 1},
)


def _acl_rows(kind: str, of: Callable[[World], Any]) -> list[Row]:
    """The calls of one kind of access control lists."""
    return [
        *rows_of(f"{kind}.reload", lambda w, **kw: of(w).reload(**kw)),
        *rows_of(f"{kind}.save", lambda w, **kw: _granted(of(w)).save(**kw), **VERSION),
        *rows_of(f"{kind}.save_predefined", lambda w, **kw: _unread(of(w)).save_predefined("private", **kw), **VERSION),
        *rows_of(f"{kind}.clear", lambda w, **kw: _unread(of(w)).clear(**kw), **VERSION),
    ]


ROWS: tuple[Row, ...] = (
    # The client
    *rows_of("Client.create_bucket", lambda w, **kw: w.client.create_bucket("fresh", **kw)),
    *rows_of("Client.get_bucket", lambda w, **kw: w.client.get_bucket("bkt", **kw).name),
    *rows_of("Client.lookup_bucket", lambda w, **kw: w.client.lookup_bucket("bkt", **kw).name),
    *rows_of("Client.list_buckets", lambda w, **kw: _names(w.client.list_buckets(page_size=1, **kw))),
    *rows_of("Client.list_blobs", lambda w, **kw: _names(w.client.list_blobs("bkt", page_size=2, **kw))),
    *rows_of("Client.restore_bucket", lambda w, **kw: w.client.restore_bucket("lost", w.lost, **kw).name),
    *rows_of("Client.get_service_account_email", lambda w, **kw: w.client.get_service_account_email(**kw)),
    *rows_of("Client.create_hmac_key", lambda w, **kw: w.client.create_hmac_key("a@b", project_id="p", **kw)),
    *rows_of("Client.list_hmac_keys", lambda w, **kw: len(_names(w.client.list_hmac_keys(project_id="p", **kw)))),
    *rows_of(
        "Client.download_blob_to_file",
        lambda w, **kw: _into(lambda file: w.client.download_blob_to_file(w.blob("big"), file, **kw)),
    ),
    *rows_of("Client.batch", _batch),
    # Buckets
    *rows_of("Bucket.create", lambda w, **kw: w.client.bucket("fresh").create(**kw)),
    *rows_of("Bucket.delete", lambda w, **kw: w.client.bucket("empty").delete(**kw)),
    Row("Bucket.delete", "with force", lambda w: w.bucket.delete(force=True, **w.retry)),
    *rows_of("Bucket.exists", lambda w, **kw: w.bucket.exists(**kw)),
    *rows_of("Bucket.reload", lambda w, **kw: w.bucket.reload(**kw)),
    *rows_of("Bucket.patch", lambda w, **kw: _labelled(w.bucket).patch(**kw), **VERSION),
    *rows_of("Bucket.update", lambda w, **kw: _labelled(w.bucket).update(**kw), **VERSION),
    *rows_of("Bucket.copy_blob", lambda w, **kw: w.bucket.copy_blob(w.blob(), w.bucket, NEW, **kw), **ABSENT),
    Row(
        "Bucket.copy_blob",
        "without its ACL",
        lambda w: w.bucket.copy_blob(w.blob(), w.bucket, NEW, preserve_acl=False, if_generation_match=0, **w.retry),
        own_loop=True,
    ),
    *rows_of("Bucket.rename_blob", lambda w, **kw: w.bucket.rename_blob(w.blob(), NEW, **kw), **ABSENT),
    *rows_of("Bucket.move_blob", lambda w, **kw: w.bucket.move_blob(w.blob(), NEW, **kw), **ABSENT),
    *rows_of("Bucket.delete_blob", lambda w, **kw: w.bucket.delete_blob(OLD, **kw), **PRESENT),
    *rows_of(
        "Bucket.delete_blobs",
        lambda w, **kw: w.bucket.delete_blobs([OLD, "source"], **kw),
        if_generation_match=_both,
    ),
    *rows_of("Bucket.get_blob", lambda w, **kw: w.bucket.get_blob(OLD, **kw).name),
    *rows_of("Bucket.list_blobs", lambda w, **kw: _names(w.bucket.list_blobs(**kw))),
    *rows_of(
        "Bucket.restore_blob",
        lambda w, **kw: w.bucket.restore_blob("gone", generation=w.gone, **kw),
        **ABSENT,
    ),
    *rows_of("Bucket.get_iam_policy", lambda w, **kw: w.bucket.get_iam_policy(**kw).etag),
    *rows_of("Bucket.set_iam_policy", lambda w, **kw: w.bucket.set_iam_policy(_policy(None), **kw)),
    Row(
        "Bucket.set_iam_policy",
        ETAG,
        lambda w: w.bucket.set_iam_policy(_policy(w.bucket_etag), **w.retry),
    ),
    *rows_of("Bucket.test_iam_permissions", lambda w, **kw: w.bucket.test_iam_permissions("storage.objects.get", **kw)),
    *rows_of("Bucket.make_public", lambda w, **kw: _unread(w.bucket).make_public(**kw), **VERSION),
    *rows_of("Bucket.make_private", lambda w, **kw: _unread(w.bucket).make_private(**kw), **VERSION),
    *rows_of("Bucket.list_notifications", lambda w, **kw: _names(w.bucket.list_notifications(**kw))),
    *rows_of("Bucket.get_notification", lambda w, **kw: w.bucket.get_notification(MADE, **kw).topic_name),
    *rows_of("Bucket.lock_retention_policy", lambda w, **kw: w.locked.lock_retention_policy(**kw)),
    # Objects: uploads and downloads
    *rows_of("Blob.upload_from_string", lambda w, **kw: w.blob(NEW).upload_from_string(b"x", **kw), **ABSENT),
    Row(
        "Blob.upload_from_string",
        "over an object",
        lambda w: w.blob().upload_from_string(b"x", if_generation_match=w.generation(), **w.retry),
    ),
    *rows_of(
        "Blob.upload_from_file",
        lambda w, **kw: w.blob(NEW, chunk_size=CHUNK).upload_from_file(io.BytesIO(CONTENT), **kw),
        **ABSENT,
    ),
    *rows_of(
        "Blob.upload_from_filename", lambda w, **kw: w.blob(NEW).upload_from_filename(w.folder / "file", **kw), **ABSENT
    ),
    *rows_of("Blob.open for writing", _write_file, **ABSENT),
    *rows_of(
        "Blob.create_resumable_upload_session",
        lambda w, **kw: "upload_id=" in w.blob(NEW).create_resumable_upload_session(**kw),
        **ABSENT,
    ),
    *rows_of("Blob.open for reading", _read_file),
    *rows_of("Blob.download_as_bytes", lambda w, **kw: w.blob("big").download_as_bytes(**kw)),
    Row(
        "Blob.download_as_bytes",
        "in chunks",
        lambda w: w.blob("big", chunk_size=CHUNK).download_as_bytes(**w.retry),
    ),
    Row("Blob.download_as_bytes", "raw", lambda w: w.blob("big").download_as_bytes(raw_download=True, **w.retry)),
    *rows_of("Blob.download_as_text", lambda w, **kw: w.blob().download_as_text(**kw)),
    *rows_of(
        "Blob.download_to_file",
        lambda w, **kw: _into(lambda file: w.blob("big").download_to_file(file, **kw)),
    ),
    *rows_of("Blob.download_to_filename", _filename),
    # Objects: the rest
    *rows_of("Blob.exists", lambda w, **kw: w.blob().exists(**kw)),
    *rows_of("Blob.reload", lambda w, **kw: w.blob().reload(**kw)),
    *rows_of("Blob.patch", lambda w, **kw: _titled(w.blob()).patch(**kw), **VERSION),
    *rows_of("Blob.update", lambda w, **kw: _titled(w.blob()).update(**kw), **VERSION),
    *rows_of("Blob.delete", lambda w, **kw: w.blob().delete(**kw), **PRESENT),
    Row("Blob.delete", "of a generation", lambda w: w.blob(generation=w.generation()).delete(**w.retry)),
    *rows_of("Blob.compose", lambda w, **kw: w.blob(NEW).compose([w.blob(), w.blob("source")], **kw), **ABSENT),
    *rows_of("Blob.rewrite", lambda w, **kw: w.blob(NEW).rewrite(w.blob(), **kw), **ABSENT),
    *rows_of("Blob.update_storage_class", lambda w, **kw: w.blob().update_storage_class("NEARLINE", **kw), **PRESENT),
    *rows_of("Blob.get_iam_policy", lambda w, **kw: w.blob().get_iam_policy(**kw).etag),
    *rows_of("Blob.set_iam_policy", lambda w, **kw: w.blob().set_iam_policy(_policy(None), **kw)),
    Row(
        "Blob.set_iam_policy",
        ETAG,
        lambda w: w.blob().set_iam_policy(_policy(w.object_etag), **w.retry),
    ),
    *rows_of("Blob.test_iam_permissions", lambda w, **kw: w.blob().test_iam_permissions("storage.objects.get", **kw)),
    *rows_of("Blob.make_public", lambda w, **kw: _unread(w.blob()).make_public(**kw), **VERSION),
    *rows_of("Blob.make_private", lambda w, **kw: _unread(w.blob()).make_private(**kw), **VERSION),
    # Access control lists, of buckets, of their future objects, and of objects
    *_acl_rows("BucketACL", lambda w: w.bucket.acl),
    *_acl_rows("DefaultObjectACL", lambda w: w.bucket.default_object_acl),
    *_acl_rows("ObjectACL", lambda w: w.blob().acl),
    # Keys and notifications
    *rows_of("HMACKeyMetadata.exists", lambda w, **kw: w.key().exists(**kw)),
    *rows_of("HMACKeyMetadata.reload", lambda w, **kw: w.key().reload(**kw)),
    *rows_of("HMACKeyMetadata.update", lambda w, **kw: w.key(state="INACTIVE").update(**kw)),
    *rows_of("HMACKeyMetadata.delete", lambda w, **kw: w.inactive.delete(**kw)),
    *rows_of("BucketNotification.create", lambda w, **kw: w.notification().create(**kw)),
    *rows_of("BucketNotification.exists", lambda w, **kw: w.notification(MADE).exists(**kw)),
    *rows_of("BucketNotification.reload", lambda w, **kw: w.notification(MADE).reload(**kw)),
    *rows_of("BucketNotification.delete", lambda w, **kw: w.notification(MADE).delete(**kw)),
    # Many at once
    *rows_of("transfer_manager.upload_many", _many_up, skip_if_exists=True),
    *rows_of("transfer_manager.download_many", _many_down),
    *rows_of("transfer_manager.download_chunks_concurrently", _slices_down),
    *rows_of("transfer_manager.upload_chunks_concurrently", _parts_up),
)
