"""The meaning of `retry=` for a client that `install` made safe: every method of the real client that takes it."""

import inspect
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import requests
import urllib3
from google.api_core import exceptions
from google.api_core import retry as api_retry
from google.api_core.iam import Policy
from google.cloud import storage
from google.cloud.storage import acl, blob, bucket, client, hmac_key, notification, transfer_manager
from google.cloud.storage import exceptions as storage_exceptions
from google.cloud.storage import retry as stock

import forbear
from forbear.clients.google_storage import adapter, install
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault

CHUNK = 262_144
UNMET = stock.ConditionalRetryPolicy(stock.DEFAULT_RETRY, lambda: False, [])
MET = stock.ConditionalRetryPolicy(stock.DEFAULT_RETRY, lambda: True, [])
QUICK = stock.DEFAULT_RETRY.with_delay(initial=0.001, maximum=0.001)
EVERYTHING = api_retry.Retry(predicate=lambda _: True, initial=0.001, maximum=0.001, timeout=0.05)

ARGUMENTS: dict[str, tuple[object, ...]] = {
    "create_bucket": ("new",),
    "create_hmac_key": ("a@b",),
    "get_bucket": ("bkt",),
    "lookup_bucket": ("bkt",),
    "restore_bucket": ("bkt", 1),
    "delete_blob": ("a",),
    "get_blob": ("a",),
    "get_notification": ("1",),
    "restore_blob": ("a",),
    "set_iam_policy": (cast("Callable[[], object]", Policy)(),),
    "test_iam_permissions": (["storage.objects.get"],),
    "update_storage_class": ("NEARLINE",),
    "upload_from_string": ("x",),
    "save_predefined": ("private",),
}
"""The arguments of calls besides `retry`, by the name of the method; those made anew for each call are made below."""

KINDS: dict[str, Any] = {
    "Client": storage.Client,
    "Bucket": storage.Bucket,
    "Blob": storage.Blob,
    "BucketACL": acl.BucketACL,
    "DefaultObjectACL": acl.DefaultObjectACL,
    "ObjectACL": acl.ObjectACL,
    "HMACKeyMetadata": hmac_key.HMACKeyMetadata,
    "BucketNotification": notification.BucketNotification,
}
METHODS = [
    f"{kind}.{name}"
    for kind, known in KINDS.items()
    for name, method in inspect.getmembers(known, inspect.isfunction)
    if not name.startswith("_") and "retry" in inspect.signature(method).parameters
]


def call(client: Any, path: Path, method: str, retry: object) -> None:
    """Call a method of the client with this `retry`; of what it lists, read everything."""
    kind, _, name = method.partition(".")
    bucket = client.bucket("bkt")
    blob = bucket.blob("a", chunk_size=CHUNK if name == "create_resumable_upload_session" else None)
    owners = {
        "Client": lambda: client,
        "Bucket": lambda: bucket,
        "Blob": lambda: blob,
        "BucketACL": lambda: bucket.acl,
        "DefaultObjectACL": lambda: bucket.default_object_acl,
        "ObjectACL": lambda: blob.acl,
        "HMACKeyMetadata": lambda: hmac_key.HMACKeyMetadata(client, access_id="k", project_id="p"),
        "BucketNotification": lambda: bucket.notification("topic", notification_id="1"),
    }
    made: dict[str, Callable[[], tuple[object, ...]]] = {
        "copy_blob": lambda: (blob, bucket),
        "move_blob": lambda: (blob, "b"),
        "rename_blob": lambda: (blob, "b"),
        "delete_blobs": lambda: ([blob],),
        "compose": lambda: ([blob],),
        "rewrite": lambda: (blob,),
        "download_to_file": lambda: (io.BytesIO(),),
        "download_to_filename": lambda: (str(path / "out"),),
        "upload_from_file": lambda: (io.BytesIO(b"x"),),
        "upload_from_filename": lambda: (str(path / "in"),),
        "download_blob_to_file": lambda: (blob, io.BytesIO()),
        "list_blobs": lambda: ("bkt",) if kind == "Client" else (),
    }
    (path / "in").write_bytes(b"x")
    for known in (bucket.acl, bucket.default_object_acl, blob.acl):
        known.loaded = True  # else they are read first, by whatever default
    target = owners[kind]()
    if method == "BucketNotification.create":
        target._properties.pop("id", None)
    if method == "Bucket.lock_retention_policy":
        target._properties |= {"metageneration": 1, "retentionPolicy": {"retentionPeriod": "1"}}
    arguments = made[name]() if name in made else ARGUMENTS.get(name, ())
    found = getattr(target, name)(*arguments, retry=retry)
    if name.startswith("list_"):
        list(found)


def failing(cloud: Cloud, client: Any, path: Path, method: str, retry: object) -> tuple[Exception, int]:
    """Return how a call ends while every response is a 503, and how many requests it took."""
    cloud.clear_faults()
    cloud.fault(Fault.status(503, times=None))
    before = cloud.requests.total
    with virtual_time(), pytest.raises(exceptions.GoogleAPIError) as caught:
        call(client, path, method, retry)
    return caught.value, cloud.requests.total - before


@pytest.mark.filterwarnings("ignore:Blob.download_as_string")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_switched_off_stays_off(cloud: Cloud, client: Any, tmp_path: Path, kind: str) -> None:
    """`retry=None` sends one request, and its error is no RetryError; the report says what a repeat would have done."""
    install(client)
    for method in METHODS:
        if method.startswith(f"{kind}."):
            error, sent = failing(cloud, client, tmp_path, method, None)
            assert (isinstance(error, exceptions.ServiceUnavailable), sent) == (True, 1), method
            assert forbear.report(error) is not None, method


SAMPLE = METHODS[::9]


@pytest.mark.filterwarnings("ignore:Blob.download_as_string")
@pytest.mark.parametrize(
    "method",
    [*SAMPLE, *(pytest.param(method, marks=pytest.mark.soak) for method in METHODS if method not in SAMPLE)],
)
def test_what_other_objects_say(cloud: Cloud, client: Any, tmp_path: Path, method: str) -> None:
    """A condition that does not hold is as None; otherwise forbear decides, and attempts do not multiply."""
    plain, sent = failing(cloud, client, tmp_path, method, None)
    assert sent == 1
    install(client, cloud_storage.policy.with_attempts(3))
    for retry in (None, UNMET):
        error, sent = failing(cloud, client, tmp_path, method, retry)
        assert (type(error), str(error), sent) == (type(plain), str(plain), 1)
    for retry in (stock.DEFAULT_RETRY, MET):
        error, sent = failing(cloud, client, tmp_path, method, retry)
        report = forbear.report(error)
        assert report is not None
        assert isinstance(error, exceptions.RetryError)
        assert sent == (1 if report.reason is forbear.events.Reason.UNSAFE else 3)


def test_every_kind_of_object_is_known() -> None:
    """The table above has every class of the client whose methods take `retry`."""
    modules = (blob, bucket, client, acl, hmac_key, notification)
    found = {
        name
        for module in modules
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if kind.__module__ == module.__name__
        and any(
            "retry" in inspect.signature(method).parameters
            for method_name, method in inspect.getmembers(kind, inspect.isfunction)
            if not method_name.startswith("_")
        )
    }
    assert found - {"ACL"} == set(KINDS)


MEDIA: dict[str, Callable[[Any, Any], object]] = {
    "multipart": lambda bucket, retry: bucket.blob("m").upload_from_string(b"x", retry=retry),
    "session": lambda bucket, retry: bucket.blob("s", chunk_size=CHUNK).upload_from_file(io.BytesIO(b"x"), retry=retry),
    "writer": lambda bucket, retry: _write(bucket.blob("w"), retry),
    "reader": lambda bucket, retry: bucket.blob("there").open("rb", retry=retry).read(),
    "download": lambda bucket, retry: bucket.blob("there").download_as_bytes(retry=retry),
    "raw": lambda bucket, retry: bucket.blob("there").download_as_bytes(raw_download=True, retry=retry),
    "many": lambda bucket, retry: _many(transfer_manager.upload_many, bucket, "u", upload_kwargs={"retry": retry}),
    "parts": lambda bucket, retry: transfer_manager.upload_chunks_concurrently(
        __file__, bucket.blob("p"), worker_type=transfer_manager.THREAD, retry=retry
    ),
    "download many": lambda bucket, retry: _many(
        transfer_manager.download_many, bucket, "there", download_kwargs={"retry": retry}
    ),
}


def _many(call: Callable[..., object], bucket: Any, name: str, **options: object) -> object:
    """Move one object by the transfer manager, in a thread."""
    file = io.BytesIO(b"x")
    pair = (file, bucket.blob(name)) if name == "u" else (bucket.blob(name), file)
    return call([pair], worker_type=transfer_manager.THREAD, raise_exception=True, **options)


def _write(blob: Any, retry: object) -> None:
    with blob.open("wb", chunk_size=CHUNK, retry=retry) as file:
        file.write(b"x" * (CHUNK + 1))


FAULTS = {"503": Fault.status(503), "before": Fault.reset(), "after": Fault.reset(when="after")}
BODY = Fault.truncate(1)
BROKEN = (exceptions.GoogleAPIError, storage_exceptions.InvalidResponse, OSError, urllib3.exceptions.HTTPError)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        *((name, fault) for name in MEDIA for fault in FAULTS.values()),
        *(
            (name, BODY) for name in MEDIA if name not in ("session", "writer", "many", "parts")
        ),  # their first has no body
    ],
    ids=lambda value: value if isinstance(value, str) else value.name.replace(" ", "-"),
)
def test_media_without_retries(cloud: Cloud, client: Any, name: str, fault: Fault) -> None:
    """No kind of upload or download sends a second request after a failure, and none asks its session."""
    cloud.store.put("bkt", "there", b"x" * 100)
    bucket = install(client).bucket("bkt")
    cloud.fault(fault)
    with virtual_time() as time, pytest.raises(BROKEN):
        MEDIA[name](bucket, None)
    assert not time.slept
    assert cloud.requests.total == 1


def test_a_chunk_without_retries(cloud: Cloud, client: Any) -> None:
    """A later request of an upload, too."""
    bucket = install(client).bucket("bkt")
    cloud.fault(Fault.status(503, operation="storage.objects.insert.send"))
    with virtual_time(), pytest.raises(exceptions.ServiceUnavailable):
        bucket.blob("s", chunk_size=CHUNK).upload_from_file(io.BytesIO(b"x" * 2 * CHUNK), retry=None)
    assert cloud.requests.total == 2


def test_a_batch(cloud: Cloud, client: Any) -> None:
    """It takes no `retry`, and cannot be judged: it is sent once."""
    install(client)
    cloud.fault(Fault.status(503))
    with virtual_time() as time, pytest.raises(exceptions.RetryError) as caught, client.batch():
        client.bucket("bkt").blob("a").delete()
    assert (cloud.requests.total, time.slept) == (1, [])
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.UNSAFE


def test_a_refused_connection_without_retries(client: Any) -> None:
    """A call that was certainly not executed is not repeated either."""
    install(client)
    client._connection.API_BASE_URL = "http://127.0.0.1:1"
    with virtual_time() as time, pytest.raises(requests.ConnectionError):
        client.bucket("bkt").reload(retry=None)
    assert time.slept == []


@pytest.mark.parametrize("name", ["multipart", "session", "download"])
def test_a_loop_that_repeats_every_error(cloud: Cloud, client: Any, name: str) -> None:
    """A call that forbear gave up on is not sent again, even where the predicate of the call accepts a RetryError."""
    cloud.store.put("bkt", "there", b"x")
    bucket = install(client, cloud_storage.policy.with_attempts(2)).bucket("bkt")
    cloud.fault(Fault.status(503, times=None, when="after"))
    with virtual_time(), pytest.raises(exceptions.RetryError):
        MEDIA[name](bucket, EVERYTHING)
    assert cloud.requests.total == (1 if name == "multipart" else 2)
    cloud.clear_faults()
    MEDIA[name](bucket, EVERYTHING)


def test_metadata_under_a_loop_that_repeats_every_error(cloud: Cloud, client: Any) -> None:
    """The same for calls that are no uploads or downloads."""
    bucket = install(client).bucket("bkt")
    cloud.fault(Fault.reset(when="after"))
    bucket.labels = {"a": "b"}
    with virtual_time(), pytest.raises(exceptions.RetryError):
        bucket.patch(retry=EVERYTHING)
    assert (cloud.requests.total, cloud.effects.total) == (1, 1)


def test_a_version_that_keeps_retry_elsewhere_is_refused() -> None:
    """`install` fails in a version of the client where it cannot learn of `retry=`, and names the cure."""
    for function, variable in (("retry_target", "errors"), ("retry_endlessly", "error_list")):
        with pytest.raises(
            ImportError, match=rf"reads the variable {variable} of .*{function}, .* install google-cloud"
        ):
            adapter._variable("google.api_core.retry.retry_unary", function, variable)


def test_a_loop_of_the_callers_own_sends_again(cloud: Cloud, client: Any) -> None:
    """Around the session itself, or around a whole call, each of its rounds is a request of its own."""
    install(client, cloud_storage.policy.with_attempts(1))
    own = api_retry.Retry(predicate=lambda _: True, initial=0.001, maximum=0.001, timeout=5)
    cloud.fault(Fault.status(503, times=2))
    assert own(client._http.get)(f"{cloud.url}/storage/v1/b/bkt").status_code == 200
    cloud.fault(Fault.status(503, times=2))
    assert own(client.get_bucket)("bkt").name == "bkt"
    assert cloud.requests.total == 6
