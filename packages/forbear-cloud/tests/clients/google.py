"""Run the operations of google-cloud-storage, each by its name, and print what each returned as JSON.

Arguments: the URL of the cloud and a folder.
"""

import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

URL, FOLDER = sys.argv[1], Path(sys.argv[2])
DATA = bytes(range(256)) * 40_000
KEY, OTHER = b"k" * 32, b"o" * 32
# Its folder, which has a file of its name, comes first otherwise.
sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]
storage: Any = import_module("google.cloud.storage")
manager: Any = import_module("google.cloud.storage.transfer_manager")
anonymous: Any = import_module("google.auth.credentials").AnonymousCredentials
client: Any = storage.Client(project="p", credentials=anonymous(), client_options={"api_endpoint": URL})
bucket: Any = client.bucket("google")


def blob(name: str, **options: object) -> Any:
    """An object."""
    return bucket.blob(name, **options)


def failure(call: Callable[[], object]) -> str:
    """Return the name of the error."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "none"


def in_chunks() -> bool:
    """Upload and download in chunks."""
    blob("chunks", chunk_size=262_144).upload_from_file(io.BytesIO(DATA))
    out = io.BytesIO()
    blob("chunks", chunk_size=1_048_576).download_to_file(out)
    return out.getvalue() == DATA


def as_file() -> bool:
    """Write and read through files."""
    with blob("file").open("wb", chunk_size=262_144) as file:
        file.write(DATA)
    with blob("file").open("rb") as file:
        file.seek(-3, 2)
        return bool(file.read() == DATA[-3:])


def in_parallel() -> bool:
    """Upload in parts and download in slices, several at a time."""
    (FOLDER / "a").write_bytes(DATA)
    options = {"chunk_size": 5 * 1024 * 1024, "worker_type": manager.THREAD, "max_workers": 4}
    manager.upload_chunks_concurrently(str(FOLDER / "a"), blob("parallel"), **options)
    manager.download_chunks_concurrently(blob("parallel"), str(FOLDER / "b"), **options)
    return (FOLDER / "b").read_bytes() == DATA


def rewritten() -> list[object]:
    """Copy in several calls."""
    target, token, calls = blob("rewritten"), None, 0
    while True:
        token, _, _ = target.rewrite(blob("chunks"), token=token)
        calls += 1
        if token is None:
            return [calls, target.download_as_bytes() == DATA]


def batch() -> list[str]:
    """Change three objects in one request."""
    for name in "xyz":
        blob(f"batch/{name}").upload_from_string(name)
    with client.batch():
        for name in "xy":
            blob(f"batch/{name}").delete()
    return [each.name for each in client.list_blobs("google", prefix="batch/")]


def hold() -> list[str]:
    """Hold an object, try to delete it, release it."""
    item = blob("held")
    item.upload_from_string("x")
    item.temporary_hold = True
    item.patch()
    refused = failure(item.delete)
    item.temporary_hold = False
    item.patch()
    return [refused, failure(item.delete)]


def retention() -> list[object]:
    """Keep all objects for an hour, and try to overwrite one."""
    item = blob("retained")
    item.upload_from_string("x")
    bucket.reload()
    bucket.retention_period = 3600
    bucket.patch()
    refused = failure(lambda: item.upload_from_string("y"))
    item.reload()
    later = item.retention_expiration_time > datetime.now(UTC) + timedelta(minutes=50)
    bucket.retention_period = None
    bucket.patch()
    return [refused, later, failure(item.delete)]


def restored() -> list[object]:
    """Delete an object under a soft delete policy, and restore it."""
    bucket.reload()
    bucket.soft_delete_policy.retention_duration_seconds = 7 * 86_400
    bucket.patch()
    item = blob("soft")
    item.upload_from_string("soft")
    generation = item.generation
    item.delete()
    gone = [each.name for each in client.list_blobs("google", soft_deleted=True)]
    bucket.restore_blob("soft", generation=generation)
    bucket.soft_delete_policy.retention_duration_seconds = 0
    bucket.patch()
    return [gone, blob("soft").download_as_text()]


def metadata() -> int:
    """Change the metadata of an object."""
    item = bucket.get_blob("small")
    item.metadata = {"k": "v"}
    item.patch()
    return int(item.metageneration)


def granted() -> int:
    """Grant a role."""
    policy = bucket.get_iam_policy(requested_policy_version=3)
    policy.bindings.append({"role": "roles/storage.objectViewer", "members": {"allUsers"}})
    bucket.set_iam_policy(policy)
    return len(bucket.get_iam_policy(requested_policy_version=3).bindings)


def hmac_key() -> list[str]:
    """Make a key, and delete it."""
    key, secret = client.create_hmac_key("a@p.iam.gserviceaccount.com")
    key.state = "INACTIVE"
    key.update()
    key.delete()
    return [key.state, type(secret).__name__]


def versions() -> int:
    """Keep versions, write twice, and count them."""
    bucket.reload()
    bucket.versioning_enabled = True
    bucket.patch()
    for text in "ab":
        blob("versioned").upload_from_string(text)
    return len(list(client.list_blobs("google", prefix="versioned", versions=True)))


OPERATIONS: dict[str, Callable[[], object]] = {
    "create a bucket": lambda: client.create_bucket("google", location="EU").location,
    "upload a string": lambda: [blob("small").upload_from_string("hello"), blob("small").download_as_text()],
    "upload empty": lambda: [blob("empty").upload_from_string(b""), blob("empty").download_as_text()],
    "upload under a condition": lambda: failure(lambda: blob("small").upload_from_string("no", if_generation_match=0)),
    "upload in chunks": in_chunks,
    "write a file": as_file,
    "upload in parallel": in_parallel,
    "download a range": lambda: blob("small").download_as_bytes(start=1, end=3).decode(),
    "not found": lambda: failure(lambda: blob("nope").download_as_bytes()),
    "metadata": metadata,
    "copy": lambda: bucket.copy_blob(blob("small"), bucket, "dir/copy").name,
    "rewrite": rewritten,
    "compose": lambda: [blob("both").compose([blob("small"), blob("dir/copy")]), blob("both").download_as_text()],
    "rename": lambda: [bucket.rename_blob(blob("dir/copy"), "dir/renamed").name, blob("dir/copy").exists()],
    "move": lambda: bucket.move_blob(blob("dir/renamed"), "dir/moved").name,
    "list": lambda: sorted(each.name for each in client.list_blobs("google", max_results=3)),
    "list one level": lambda: [
        len(list(page := client.list_blobs("google", delimiter="/"))) > 3,
        sorted(page.prefixes),
    ],
    "list by glob": lambda: [each.name for each in client.list_blobs("google", match_glob="d*/m*")],
    "batch": batch,
    "a key": lambda: [
        blob("secret", encryption_key=KEY).upload_from_string("secret"),
        blob("secret", encryption_key=KEY).download_as_text(),
        failure(lambda: blob("secret").download_as_text()),
        failure(lambda: blob("secret", encryption_key=OTHER).download_as_text()),
    ],
    "another key": lambda: [
        blob("secret2", encryption_key=OTHER).rewrite(blob("secret", encryption_key=KEY))[0],
        blob("secret2", encryption_key=OTHER).download_as_text(),
    ],
    "a hold": hold,
    "a retention policy": retention,
    "soft delete": restored,
    "grant": granted,
    "an HMAC key": hmac_key,
    "a notification": lambda: [
        (item := bucket.notification("t", topic_project="p")).create(),
        item.exists(),
        item.delete(),
    ],
    "versions": versions,
    "delete under a condition": lambda: failure(lambda: blob("small").delete(if_generation_match=1)),
    "delete all": lambda: [
        [each.delete() for each in client.list_blobs("google", versions=True)] and None,
        bucket.delete(),
        client.lookup_bucket("google"),
    ],
}

if __name__ == "__main__":
    results: dict[str, object] = {}
    for name, operation in OPERATIONS.items():
        try:
            results[name] = operation()
        except Exception as error:
            results[name] = f"failed: {error!r}"
    json.dump(results, sys.stdout)
