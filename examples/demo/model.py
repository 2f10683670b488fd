"""The building blocks of the Cloud Storage workload: requests, operations and the bucket they act on."""

import json
import random
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import httpx

from forbear_cloud.storage.model import StoredObject, crc32c_of
from forbear_cloud.storage.store import Store

KEY = "x-demo-request"
"""The request header that carries `DemoRequest.key`, so that the server's log shows which request it saw."""

BUCKET = "demo"
OBJECTS = f"/storage/v1/b/{BUCKET}/o"
UPLOAD = f"/upload/storage/v1/b/{BUCKET}/o"
IF_ABSENT = "ifGenerationMatch=0"


@dataclass(frozen=True, slots=True)
class Proof:
    """A GET that shows whether a write has happened.

    The response for `path` must be a JSON object with the fields and values in `holds`. If `holds` is None, it must be
    a 404.
    """

    path: str
    holds: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """One request: the step `step` of the operation called `operation`.

    `sink` receives the body of a download chunk by chunk. `proof` says how to look for the write after an ambiguous
    failure. `meanwhile` runs after the first attempt, and stands for what other clients do.
    """

    operation: str
    step: str
    method: str
    path: str
    content: bytes | AsyncIterable[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    sink: bytearray | None = None
    proof: Proof | None = None
    meanwhile: "Callable[[Send], Awaitable[None]] | None" = None

    @property
    def key(self) -> str:
        """The value of the header `KEY`, "/OPERATION/STEP/". No key is a part of another one."""
        return f"/{self.operation}/{self.step}/"


Send: TypeAlias = Callable[[DemoRequest], Awaitable[httpx.Response]]
"""Sends a request in one contender's way. Returns a successful response with its body read, or raises."""


@dataclass(frozen=True, slots=True)
class DemoOperation:
    """One thing that the client wants done once.

    `perform` does it with the function that it gets for sending a request. It returns the bytes that a read got, and
    None for a write. `expected` is the data that must be read or written, None if there is none. `is_applied` looks up
    in the server's state whether a write is there; it is None for a read. `repeatable` is True if a second execution is
    harmless.
    """

    name: str
    repeatable: bool
    perform: Callable[[Send], Awaitable[bytes | None]]
    expected: bytes | None = None
    is_applied: Callable[[Store], bool] | None = None


class DemoBucket:
    """The bucket of the workload; the constructor creates it. It keeps all versions of its objects, for the checker."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self._seed = seed
        store.create_bucket(BUCKET, fields={"versioning": {"enabled": True}})

    def data(self, name: str, size: int) -> bytes:
        """Return `size` random bytes that depend on the seed and `name` only."""
        return random.Random(f"{self._seed} {name}").randbytes(size)

    def put(self, name: str, size: int = 2_000) -> StoredObject:
        """Store `data(name, size)` as the object `name`, without a request; return the stored object."""
        return self.store.put(BUCKET, name, self.data(name, size))


def single(
    request: DemoRequest, *, repeatable: bool, is_applied: Callable[[Store], bool], expected: bytes | None = None
) -> DemoOperation:
    """Return the operation that consists of one write request; its name is `request.operation`."""

    async def perform(send: Send) -> None:
        await send(request)

    return DemoOperation(request.operation, repeatable, perform, expected, is_applied)


def writes(request: DemoRequest, data: bytes, *, repeatable: bool, target: str | None = None) -> DemoOperation:
    """Return an operation of one request that writes `data` as the object `target`, by default the operation's name.

    It counts as applied if the object has a current version, whatever its bytes are.
    """
    name = target or request.operation
    return single(request, repeatable=repeatable, is_applied=lambda store: exists(store, name), expected=data)


def live(store: Store, name: str) -> StoredObject | None:
    """Return the current version of the object `name` in the bucket of the demo, None if there is none."""
    return store.bucket(BUCKET).live(name)


def exists(store: Store, name: str) -> bool:
    """Return whether the object `name` in the bucket of the demo has a current version."""
    return live(store, name) is not None


def has_bytes(name: str, data: bytes) -> Proof:
    """Return the proof that the object `name` has the CRC32C of `data`."""
    return Proof(f"{OBJECTS}/{name}", {"crc32c": crc32c_of(data)})


def body(value: Mapping[str, object]) -> bytes:
    """Return `value` as JSON, for the body of a request."""
    return json.dumps(value).encode()
