"""The state of the cloud and how it changes; no HTTP, no I/O. Safe to use from any thread."""

import base64
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from forbear.testing.cloud.http.content import Content, content_of
from forbear.testing.cloud.http.errors import conflict, invalid, not_found
from forbear.testing.cloud.http.memory import Space, weigh
from forbear.testing.cloud.http.messages import Json, JsonObject
from forbear.testing.cloud.storage.iam_state import Iam
from forbear.testing.cloud.storage.memorystore_state import Memorystore
from forbear.testing.cloud.storage.model import Bucket, Folder, HmacKey, StoredObject
from forbear.testing.cloud.storage.retention import check_no_hold, check_unprotected
from forbear.testing.cloud.storage.sessions import Session, Upload

_RESERVED = ".well-known/acme-challenge/"
_GIBIBYTE = 1024**3
_MOST_TICKETS = 10_000


@dataclass(frozen=True, slots=True)
class Rewrite:
    """How far a rewrite in several calls has come: what goes where, and how many bytes of it."""

    plan: tuple[str, int, str, str]
    copied: int


class Store:
    """Buckets, objects, upload sessions, keys and what other APIs keep; hold `lock` to see several of them at once."""

    def __init__(self, clock: Callable[[], float] = time.time, *, memory_limit: int = _GIBIBYTE) -> None:
        self.lock = threading.RLock()
        self.space = Space(memory_limit, self._weigh)
        self.now = clock
        self.buckets: dict[str, Bucket] = {}
        self.deleted_buckets: list[Bucket] = []
        """Those that can be restored, oldest deletion first."""
        self.sessions: dict[str, Session] = {}
        self.rewrites: dict[str, Rewrite] = {}
        self.hmac_keys: dict[str, HmacKey] = {}
        self.multiparts: dict[str, Upload] = {}
        self._last_generation = 0
        self._last_id = 0
        self.iam = Iam(self.next_id)
        self.memorystore = Memorystore(clock, self.next_id)

    def clear(self) -> None:
        """Forget everything; generations go on rising all the same."""
        with self.lock:
            for table in (self.buckets, self.sessions, self.rewrites, self.hmac_keys, self.multiparts):
                table.clear()
            self.deleted_buckets.clear()
            self.iam.clear()
            self.memorystore.clear()
            self.space.changed()

    def next_generation(self) -> int:
        """A number larger than any before: microseconds of the clock, as at the service."""
        self._last_generation = max(self._last_generation + 1, int(self.now() * 1_000_000))
        return self._last_generation

    def next_id(self) -> int:
        """1, 2, 3 and so on, for names that the cloud gives out."""
        self._last_id += 1
        return self._last_id

    def create_bucket(self, name: str, project: str = "p", fields: Mapping[str, Json] | None = None) -> Bucket:
        """Make a bucket; 409 when the name is taken."""
        with self.lock:
            if name in self.buckets:
                raise conflict("Your previous request to create the named bucket succeeded and you already own it.")
            now = self.now()
            team = {f"project-owners-{project}": "OWNER", f"project-editors-{project}": "OWNER"}
            acl = {**team, f"project-viewers-{project}": "READER"}
            bucket = Bucket(name, project, self.next_generation(), now, now, dict(fields or {}), acl, dict(acl))
            self.buckets[name] = bucket
            return bucket

    def bucket(self, name: str) -> Bucket:
        """The bucket of that name; 404 when there is none."""
        bucket = self.buckets.get(name)
        if bucket is None:
            raise not_found(f"The specified bucket {name}")
        return bucket

    def delete_bucket(self, bucket: Bucket) -> None:
        """Delete an empty bucket; 409 while it holds any version of any object."""
        with self.lock:
            if bucket.objects:
                raise conflict("The bucket you tried to delete is not empty.")
            del self.buckets[bucket.name]
            kept = bucket.soft_delete_seconds
            if kept:
                bucket.soft_deleted = self.now(), self.now() + kept
                self.deleted_buckets.append(bucket)
            self.space.changed()

    def object(self, bucket: str, name: str, generation: int | None = None) -> StoredObject:
        """The live version of an object or the one of a generation; 404 when there is none."""
        found = self.bucket(bucket).find(name, generation)
        if found is None:
            raise not_found(f"No such object: {bucket}/{name}; it")
        return found

    def put(
        self,
        bucket: str,
        name: str,
        data: bytes | Content,
        fields: Mapping[str, Json] | None = None,
        *,
        acl: Mapping[str, str] | None = None,
        components: int | None = None,
        key_sha256: str | None = None,
    ) -> StoredObject:
        """Write an object: a new generation becomes live, the one before stays only in a versioned bucket.

        403 while a hold or a retention period protects the one before.
        """
        check_object_name(name)
        with self.lock:
            home = self.bucket(bucket)
            self._retire(home, name)
            now = self.now()
            grants = dict(home.default_acl if acl is None else acl)
            generation = self.next_generation()
            item = StoredObject(bucket, name, generation, content_of(data), now, now, dict(fields or {}), grants)
            item.components, item.key_sha256 = components, key_sha256
            if home.fields.get("defaultEventBasedHold") is True:
                item.fields.setdefault("eventBasedHold", True)
            home.objects.setdefault(name, []).append(item)
            if home.hierarchical:
                self.create_folders(home, name)
            return item

    def delete_object(self, item: StoredObject, *, for_good: bool) -> None:
        """Delete a version: for good, or (versioned bucket) by making it noncurrent.

        403 while a hold or a retention period protects it.
        """
        with self.lock:
            home = self.bucket(item.bucket)
            self.space.changed()
            if for_good:
                self._drop(home, item)
            else:
                self._retire(home, item.name)

    def claim(self, contents: Iterable[Content]) -> None:
        """Count the bytes of a copy; 413 where they do not fit. Copies share their bytes, and count all the same."""
        self.space.claim(sum(map(weigh, contents)))

    def open_session(self, session: Session) -> None:
        """Keep an upload session; of very many, the oldest that are over are forgotten."""
        _make_room(self.sessions, lambda old: old.finished is not None or old.gone is not None)
        self.sessions[session.id] = session

    def keep_rewrite(self, token: str, rewrite: Rewrite) -> None:
        """Keep how far a rewrite has come; of very many, the oldest are forgotten."""
        _make_room(self.rewrites, lambda _: True)
        self.rewrites[token] = rewrite

    def create_folders(self, bucket: Bucket, name: str) -> None:
        """Make the folders that a name leads through, as far as they are missing."""
        for parent in parents(name):
            if parent not in bucket.folders:
                bucket.folders[parent] = Folder(parent, self.now(), self.now())

    def keep_operation(self, bucket: Bucket, number: str, operation: JsonObject) -> None:
        """Keep an operation that is done; of very many, the oldest are forgotten."""
        _make_room(bucket.operations, lambda _: True)
        bucket.operations[number] = operation

    def touch(self, thing: Bucket | StoredObject | Folder) -> None:
        """Note that metadata has changed."""
        thing.metageneration += 1
        thing.updated = self.now()

    def create_hmac_key(self, project: str, email: str) -> HmacKey:
        """Make an active HMAC key."""
        with self.lock:
            number, now = self.next_id(), self.now()
            digest = hashlib.sha256(f"{project}/{email}/{number}".encode()).digest()
            access_id = "GOOG1E" + base64.b32encode(digest).decode()[:54]
            key = HmacKey(access_id, base64.b64encode(digest[:30]).decode(), project, email, now, now)
            self.hmac_keys[access_id] = key
            return key

    def _retire(self, home: Bucket, name: str) -> None:
        live = home.live(name)
        if live is None:
            return
        if home.versioned:
            check_no_hold(live)
            live.deleted = self.now()
            return
        self._drop(home, live)

    def _drop(self, home: Bucket, item: StoredObject) -> None:
        """Delete a version; it can be restored for as long as the bucket says."""
        now = self.now()
        check_unprotected(home, item, now)
        versions = home.objects[item.name]
        versions.remove(item)
        if not versions:
            del home.objects[item.name]
        kept = home.soft_delete_seconds
        if kept:
            item.soft_deleted = now, now + kept
            home.deleted_objects.append(item)

    def _weigh(self) -> int:
        """Return how much memory all of it takes."""
        with self.lock:
            buckets = [*self.buckets.values(), *self.deleted_buckets]
            items = [item for bucket in buckets for item in (*bucket.versions(), *bucket.deleted_objects)]
            metadata = [
                (bucket.name, bucket.fields, bucket.acl, bucket.default_acl, bucket.policy, bucket.notifications)
                for bucket in buckets
            ] + [(bucket.folders, bucket.managed_folders, bucket.operations) for bucket in buckets]
            uploads = [
                (session.id, session.name, session.fields, session.acl, session.data)
                for session in self.sessions.values()
            ]
            iam = (self.iam.accounts, self.iam.roles, self.iam.policies, self.iam.unseen)
            fields = [resource.fields for resource in self.memorystore.resources.values()]
            jobs = [(job.name, job.fields) for job in self.memorystore.jobs.values()]
            kept = (items, metadata, uploads, self.rewrites, self.hmac_keys, self.multiparts)
            return weigh(kept) + weigh((iam, fields, jobs))


_Ticket = TypeVar("_Ticket")


def _make_room(tickets: dict[str, _Ticket], over: Callable[[_Ticket], bool]) -> None:
    """Forget the oldest of very many tickets, if it is over."""
    if len(tickets) >= _MOST_TICKETS:
        oldest = next((name for name, ticket in islice(tickets.items(), 100) if over(ticket)), None)
        if oldest is not None:
            del tickets[oldest]


def parents(name: str) -> list[str]:
    """Return the folders that a name lies in, outermost first."""
    return [name[: place + 1] for place, char in enumerate(name) if char == "/" and place]


def check_object_name(name: str) -> None:
    """400 unless the name is 1 to 1024 bytes of UTF-8 without line ends, and none of the few that are reserved."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise invalid("Invalid object name: it must be valid UTF-8.") from None
    if not 1 <= size <= 1024 or name in {".", ".."} or "\r" in name or "\n" in name:
        raise invalid("Invalid object name: it must be 1 to 1024 bytes long, without line ends, and not '.' or '..'.")
    if name.startswith(_RESERVED):
        raise invalid(f"Invalid object name: it must not begin with '{_RESERVED}'.")
