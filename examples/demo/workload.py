"""The Cloud Storage workload: uploads, reads, changes, copies and deletions, with and without preconditions."""

import random
from collections.abc import AsyncIterable, Callable
from functools import partial

from examples.demo.model import (
    BUCKET,
    IF_ABSENT,
    OBJECTS,
    UPLOAD,
    DemoBucket,
    DemoOperation,
    DemoRequest,
    Proof,
    Send,
    body,
    exists,
    has_bytes,
    live,
    single,
    writes,
)
from forbear_cloud.storage.store import Store

_CHUNK = 262_144
_PIECE = 16_384
_PAGE = 4
_BUCKETS = "/storage/v1/b"
_NOTIFICATIONS = f"{_BUCKETS}/{BUCKET}/notificationConfigs"


def workload(bucket: DemoBucket, seed: int, each: int) -> list[tuple[DemoOperation, ...]]:
    """Return `each` groups of operations of every kind, in a random order, and store the objects that they need.

    A group is a tuple: one operation, or two that must be performed in their order. Groups are independent of each
    other. The order of the list depends on the seed only.
    """
    made = [make(bucket, f"{kind}-{number:03}") for kind, make in KINDS.items() for number in range(each)]
    groups = [group if isinstance(group, tuple) else (group,) for group in made]
    random.Random(seed).shuffle(groups)
    return groups


def media(bucket: DemoBucket, name: str, condition: str = "") -> DemoOperation:
    """Return the operation that uploads random bytes as the object `name` in one request.

    `condition` is appended to the query. With one, the operation is repeatable and has a proof; without one, neither.
    """
    data = bucket.data(name, 8_000)
    return _media(name, data, data, condition)


def stream(bucket: DemoBucket, name: str, condition: str = "") -> DemoOperation:
    """Return the operation that uploads the object `name` in one request from a source that can be read only once.

    `condition` is appended to the query. With one, the operation is repeatable and has a proof; without one, neither.
    """
    data = bucket.data(name, 100_000)
    return _media(name, data, _one_shot(data), condition)


def multipart(bucket: DemoBucket, name: str, condition: str = "") -> DemoOperation:
    """Return the operation that uploads the object `name`, with metadata and data in one multipart request.

    `condition` is appended to the query. With one, the operation is repeatable and has a proof; without one, neither.
    """
    data, line = bucket.data(name, 8_000), b"\r\n--demo"
    head = b"--demo\r\nContent-Type: application/json\r\n\r\n" + body({"name": name, "metadata": {"by": name}})
    content = b"".join((head, line, b"\r\nContent-Type: application/octet-stream\r\n\r\n", data, line, b"--\r\n"))
    path = f"{UPLOAD}?uploadType=multipart{condition}"
    headers = {"Content-Type": "multipart/related; boundary=demo"}
    proof = has_bytes(name, data) if condition else None
    request = DemoRequest(name, "write", "POST", path, content, headers, proof=proof)
    return writes(request, data, repeatable=bool(condition))


def resumable(bucket: DemoBucket, name: str) -> DemoOperation:
    """Return the operation that uploads the object `name` in three chunks or more, on condition that it is absent.

    Each chunk starts at the offset that the upload session reports. A chunk that was stored in part adds a further
    chunk.
    """
    data = bucket.data(name, 2 * _CHUNK + 75_000)
    start = DemoRequest(name, "start", "POST", f"{UPLOAD}?uploadType=resumable&name={name}&{IF_ABSENT}")

    async def perform(send: Send) -> None:
        session = (await send(start)).headers["location"]
        offset = number = 0
        while True:
            number += 1
            end = min(offset + _CHUNK, len(data))
            span = {"Content-Range": f"bytes {offset}-{end - 1}/{len(data)}"}
            response = await send(DemoRequest(name, f"chunk-{number}", "PUT", session, data[offset:end], span))
            if response.status_code != 308:
                return
            offset = int(response.headers["range"].rpartition("-")[2]) + 1 if "range" in response.headers else 0

    return DemoOperation(name, True, perform, data, lambda store: exists(store, name))


def rivals(bucket: DemoBucket, name: str) -> tuple[DemoOperation, DemoOperation]:
    """Return two operations of two clients that overwrite the object "NAME-shared", which exists, without a condition.

    The second client writes right after the first attempt of the first client, as a part of the first operation. The
    second operation only raises RuntimeError if that write got no success. Neither is repeatable.
    """
    target, rival = f"{name}-shared", f"{name}-rival"
    bucket.put(target)
    data, newer = bucket.data(name, 8_000), bucket.data(rival, 8_000)
    responses: list[object] = []

    async def meanwhile(send: Send) -> None:
        responses.append(await send(DemoRequest(rival, "write", "POST", _media_path(target), newer)))

    async def overwrite(_: Send) -> None:
        if not responses:
            raise RuntimeError("the other writer, whom no fault meets, failed: this is a bug of the demo")

    request = DemoRequest(name, "write", "POST", _media_path(target), data, meanwhile=meanwhile)
    second = DemoOperation(rival, False, overwrite, newer, lambda store: exists(store, target))
    return writes(request, data, repeatable=False, target=target), second


def download(bucket: DemoBucket, name: str) -> DemoOperation:
    """Store the object `name`, and return the operation that reads all its bytes into memory by one request."""
    data = bucket.put(name, 30_000).data

    async def perform(send: Send) -> bytes:
        return (await send(DemoRequest(name, "read", "GET", f"{OBJECTS}/{name}?alt=media"))).content

    return DemoOperation(name, True, perform, data)


def download_to_sink(bucket: DemoBucket, name: str) -> DemoOperation:
    """Store the object `name`, and return the operation that reads it chunk by chunk into a sink, a bytearray."""
    data = bucket.put(name, 200_000).data

    async def perform(send: Send) -> bytes:
        sink = bytearray()
        await send(DemoRequest(name, "read", "GET", f"/download{OBJECTS}/{name}?alt=media", sink=sink))
        return bytes(sink)

    return DemoOperation(name, True, perform, data)


def listing(bucket: DemoBucket, name: str) -> DemoOperation:
    """Store nine objects, and return the operation that lists their names ("NAME-0" to "NAME-8") in pages of four."""
    names = [bucket.put(f"{name}-{number}", 10).name for number in range(2 * _PAGE + 1)]

    async def perform(send: Send) -> bytes:
        listed = list[str]()
        token: str | None = ""
        number = 0
        while token is not None:
            number += 1
            path = f"{OBJECTS}?prefix={name}-&maxResults={_PAGE}&pageToken={token}"
            page = (await send(DemoRequest(name, f"page-{number}", "GET", path))).json()
            listed += [item["name"] for item in page["items"]]
            token = page.get("nextPageToken")
        return "\n".join(listed).encode()

    return DemoOperation(name, True, perform, "\n".join(names).encode())


def metadata(bucket: DemoBucket, name: str, condition: str = "") -> DemoOperation:
    """Store the object `name`, and return the operation that changes its custom metadata.

    `condition` is the query of the request. With one, the operation is repeatable and has a proof; without one,
    neither.
    """
    bucket.put(name)
    change, path = {"metadata": {"by": name}}, f"{OBJECTS}/{name}"
    proof = Proof(path, change) if condition else None
    request = DemoRequest(name, "write", "PATCH", f"{path}{condition}", body(change), proof=proof)

    def is_applied(store: Store) -> bool:
        item = live(store, name)
        return item is not None and item.fields.get("metadata") == change["metadata"]

    return single(request, repeatable=bool(condition), is_applied=is_applied)


def grant(bucket: DemoBucket, name: str) -> DemoOperation:
    """Store the object `name`, and return the operation that adds an entry for allUsers to its access control list.

    The request takes no condition, so the operation is not repeatable.
    """
    bucket.put(name)
    content = body({"entity": "allUsers", "role": "READER"})

    def is_applied(store: Store) -> bool:
        item = live(store, name)
        return item is not None and "allUsers" in item.acl

    request = DemoRequest(name, "write", "POST", f"{OBJECTS}/{name}/acl", content)
    return single(request, repeatable=False, is_applied=is_applied)


def compose(bucket: DemoBucket, name: str) -> DemoOperation:
    """Store "NAME-0" and "NAME-1", and return the operation that joins them into the object `name` if it is absent."""
    parts = [bucket.put(f"{name}-{number}") for number in range(2)]
    content = body({"sourceObjects": [{"name": part.name} for part in parts]})
    data = b"".join(part.data for part in parts)
    path = f"{OBJECTS}/{name}/compose?{IF_ABSENT}"
    return writes(DemoRequest(name, "write", "POST", path, content, proof=has_bytes(name, data)), data, repeatable=True)


def append(bucket: DemoBucket, name: str) -> DemoOperation:
    """Store `name` and "NAME-more", and return the operation that appends the second object to the first.

    It has no condition, and `name` is both a source and the destination: so it is not repeatable.
    """
    whole, part = bucket.put(name), bucket.put(f"{name}-more")
    content = body({"sourceObjects": [{"name": whole.name}, {"name": part.name}]})
    request = DemoRequest(name, "write", "POST", f"{OBJECTS}/{name}/compose", content)
    return writes(request, whole.data + part.data, repeatable=False)


def copy(bucket: DemoBucket, name: str) -> DemoOperation:
    """Store "NAME-source", and return the operation that copies it to the object `name` if that is absent."""
    source = bucket.put(f"{name}-source")
    path = f"{OBJECTS}/{source.name}/copyTo/b/{BUCKET}/o/{name}?{IF_ABSENT}"
    request = DemoRequest(name, "write", "POST", path, proof=has_bytes(name, source.data))
    return writes(request, source.data, repeatable=True)


def rewrite(bucket: DemoBucket, name: str) -> DemoOperation:
    """Store "NAME-source", and return the operation that copies it to `name` by rewriteTo, without a condition."""
    source = bucket.put(f"{name}-source")
    path = f"{OBJECTS}/{source.name}/rewriteTo/b/{BUCKET}/o/{name}"
    return writes(DemoRequest(name, "write", "POST", path), source.data, repeatable=False)


def delete(bucket: DemoBucket, name: str) -> DemoOperation:
    """Store the object `name`, and return the operation that deletes it if its generation is still the stored one."""
    path, generation = f"{OBJECTS}/{name}", bucket.put(name).generation
    return _deletion(name, path, f"?ifGenerationMatch={generation}", lambda store: not exists(store, name))


def create_bucket(_: DemoBucket, name: str) -> DemoOperation:
    """Return the operation that creates the bucket `name`: safe to repeat, as a name belongs to one bucket only."""
    labels = {"labels": {"by": name}}
    content, proof = body({"name": name, **labels}), Proof(f"{_BUCKETS}/{name}", labels)
    request = DemoRequest(name, "write", "POST", f"{_BUCKETS}?project=p", content, proof=proof)
    return single(request, repeatable=True, is_applied=lambda store: name in store.buckets)


def delete_bucket(bucket: DemoBucket, name: str) -> DemoOperation:
    """Create the empty bucket `name` in the store, and return the operation that deletes it."""
    bucket.store.create_bucket(name)
    return _deletion(name, f"{_BUCKETS}/{name}", "", lambda store: name not in store.buckets)


def create_key(_: DemoBucket, name: str) -> DemoOperation:
    """Return the operation that creates an HMAC key for a service account called `name`.

    Every execution creates another key, so it is not repeatable.
    """
    email = f"{name}@p.iam.gserviceaccount.com"
    path = f"/storage/v1/projects/p/hmacKeys?serviceAccountEmail={email}"

    def is_applied(store: Store) -> bool:
        return any(key.email == email for key in store.hmac_keys.values())

    return single(DemoRequest(name, "write", "POST", path), repeatable=False, is_applied=is_applied)


def create_notification(_: DemoBucket, name: str) -> DemoOperation:
    """Return the operation that creates a notification for the demo's bucket, for object names that begin with `name`.

    Every execution creates another notification, so that each event is delivered once more: it is not repeatable.
    """
    topic = "//pubsub.googleapis.com/projects/p/topics/t"
    content = body({"topic": topic, "payload_format": "NONE", "object_name_prefix": name})

    def is_applied(store: Store) -> bool:
        return any(each.get("object_name_prefix") == name for each in store.bucket(BUCKET).notifications.values())

    request = DemoRequest(name, "write", "POST", _NOTIFICATIONS, content)
    return single(request, repeatable=False, is_applied=is_applied)


def delete_notification(bucket: DemoBucket, name: str) -> DemoOperation:
    """Store a notification with a new id, and return the operation that deletes it; `name` names only the operation."""
    number = str(bucket.store.next_id())
    bucket.store.bucket(BUCKET).notifications[number] = {"id": number}
    path = f"{_NOTIFICATIONS}/{number}"
    return _deletion(name, path, "", lambda store: number not in store.bucket(BUCKET).notifications)


KINDS: dict[str, Callable[[DemoBucket, str], DemoOperation | tuple[DemoOperation, ...]]] = {
    "media": partial(media, condition=f"&{IF_ABSENT}"),
    "media-unconditional": media,
    "stream": partial(stream, condition=f"&{IF_ABSENT}"),
    "stream-unconditional": stream,
    "multipart": partial(multipart, condition=f"&{IF_ABSENT}"),
    "multipart-unconditional": multipart,
    "resumable": resumable,
    "rivals": rivals,
    "download": download,
    "download-to-sink": download_to_sink,
    "listing": listing,
    "metadata": partial(metadata, condition="?ifMetagenerationMatch=1"),
    "metadata-unconditional": metadata,
    "grant": grant,
    "compose": compose,
    "append": append,
    "copy": copy,
    "rewrite-unconditional": rewrite,
    "delete": delete,
    "create-bucket": create_bucket,
    "delete-bucket": delete_bucket,
    "create-key": create_key,
    "create-notification": create_notification,
    "delete-notification": delete_notification,
}
"""The kinds of operations: for each, the function that makes one from the bucket and its name.

A kind that involves two clients makes a tuple of operations.
"""


def _media(name: str, data: bytes, content: bytes | AsyncIterable[bytes], condition: str) -> DemoOperation:
    proof = has_bytes(name, data) if condition else None
    request = DemoRequest(name, "write", "POST", _media_path(name, condition), content, proof=proof)
    return writes(request, data, repeatable=bool(condition))


def _media_path(name: str, condition: str = "") -> str:
    return f"{UPLOAD}?uploadType=media&name={name}{condition}"


def _deletion(name: str, path: str, condition: str, is_applied: Callable[[Store], bool]) -> DemoOperation:
    request = DemoRequest(name, "write", "DELETE", f"{path}{condition}", proof=Proof(path, None))
    return single(request, repeatable=True, is_applied=is_applied)


async def _one_shot(data: bytes) -> "AsyncIterable[bytes]":
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]
