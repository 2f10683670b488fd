"""The place where the workload happens, as each contender finds it: a fresh cloud, filled from the seed."""

import json
import random
from collections.abc import Mapping

from forbear.cli.demo.ask import Ask, Operation, Proof, single
from forbear.testing.cloud.storage.model import StoredObject, crc32c_of
from forbear.testing.cloud.storage.store import Store

BUCKET = "demo"
OBJECTS = f"/storage/v1/b/{BUCKET}/o"
UPLOAD = f"/upload/storage/v1/b/{BUCKET}/o"
IF_ABSENT = "ifGenerationMatch=0"


class Site:
    """The bucket of the workload. It is versioned, so that nothing that was ever written escapes the referee."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self._seed = seed
        store.create_bucket(BUCKET, fields={"versioning": {"enabled": True}})

    def data(self, name: str, size: int) -> bytes:
        """Bytes that are the same for every contender, and for no other name."""
        return random.Random(f"{self._seed} {name}").randbytes(size)

    def put(self, name: str, size: int = 2_000) -> StoredObject:
        """An object that is there before the workload begins."""
        return self.store.put(BUCKET, name, self.data(name, size))


def live(store: Store, name: str) -> StoredObject | None:
    """The object of that name as it is now."""
    return store.bucket(BUCKET).live(name)


def is_there(name: str, data: bytes) -> Proof:
    """Look whether the object `name` holds these bytes, by their checksum."""
    return Proof(f"{OBJECTS}/{name}", {"crc32c": crc32c_of(data)})


def body(value: Mapping[str, object]) -> bytes:
    """A JSON body."""
    return json.dumps(value).encode()


def writes(ask: Ask, data: bytes, *, repeatable: bool, target: str | None = None) -> Operation:
    """An operation of one request that writes these bytes as the object `target`, by default of its own name."""
    name = target or ask.operation
    return single(ask, repeatable=repeatable, kept=lambda store: live(store, name) is not None, wanted=data)
