"""The state of the cloud and the basic changes to it, without HTTP; its lock makes it safe to use from any thread."""

import base64
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TypeVar

from forbear_cloud.http.content import Content, content_of, join_contents
from forbear_cloud.http.memory import MemoryLimit, weigh
from forbear_cloud.http.messages import ApiError, Json, JsonObject, conflict, not_found
from forbear_cloud.storage.iam_state import IamState
from forbear_cloud.storage.memorystore_state import MemorystoreState
from forbear_cloud.storage.model import DEFAULT_KEYS, Bucket, Folder, HmacKey, ObjectKeys, StoredObject
from forbear_cloud.storage.retention import check_no_hold, check_unprotected
from forbear_cloud.storage.sessions import MultipartUpload, Rewrite, UploadSession
from forbear_cloud.storage.writable import check_object_name, parent_folders

_GIBIBYTE = 1024**3
_MAX_UNFINISHED = 10_000

_Deleted = TypeVar("_Deleted", Bucket, StoredObject)
_Entry = TypeVar("_Entry")


class Store:
    """Buckets, objects, uploads, HMAC keys, and the state of IAM and Memorystore.

    Hold `lock` to read several of them in one consistent state. `clock` returns seconds since the epoch, and
    `memory_limit` is in bytes.
    """

    def __init__(self, clock: Callable[[], float] = time.time, *, memory_limit: int = _GIBIBYTE) -> None:
        self.lock = threading.RLock()
        self.space = MemoryLimit(memory_limit, self._weigh)
        self.now = clock
        self.buckets: dict[str, Bucket] = {}
        self.deleted_buckets: list[Bucket] = []
        """The soft-deleted buckets, the oldest deletion first."""
        self.sessions: dict[str, UploadSession] = {}
        self.rewrites: dict[str, Rewrite] = {}
        self.hmac_keys: dict[str, HmacKey] = {}
        self.multiparts: dict[str, MultipartUpload] = {}
        self._last_generation = 0
        self._last_id = 0
        self.iam = IamState(self.next_id)
        self.memorystore = MemorystoreState(clock, self.next_id)

    def clear(self) -> None:
        """Delete everything stored; generations and ids keep rising, and the settings stay."""
        with self.lock:
            for table in (self.buckets, self.sessions, self.rewrites, self.hmac_keys, self.multiparts):
                table.clear()
            self.deleted_buckets.clear()
            self.iam.clear()
            self.memorystore.clear()
            self.space.changed()

    def next_generation(self) -> int:
        """Return a number greater than any before; if possible it is, as at the service, the time in microseconds."""
        self._last_generation = max(self._last_generation + 1, int(self.now() * 1_000_000))
        return self._last_generation

    def next_id(self) -> int:
        """Return 1, 2, 3 and so on, for the names that the cloud chooses."""
        self._last_id += 1
        return self._last_id

    def create_bucket(self, name: str, project: str = "p", fields: Mapping[str, Json] | None = None) -> Bucket:
        """Create a bucket with the default access control lists of its project; raise 409 if the name is taken."""
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
        """Return the bucket of this name; raise 404 if it does not exist."""
        bucket = self.buckets.get(name)
        if bucket is None:
            raise not_found(f"The specified bucket {name}")
        return bucket

    def delete_bucket(self, bucket: Bucket) -> None:
        """Delete a bucket, for good or as its soft delete policy says; raise 409 if it contains any object."""
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
        """Return a version of an object, by default the live one; raise 404 if it or the bucket does not exist."""
        item = self.bucket(bucket).find(name, generation)
        if item is None:
            raise ApiError(404, f"No such object: {bucket}/{name}")
        return item

    def put(
        self,
        bucket: str,
        name: str,
        data: bytes | Content,
        fields: Mapping[str, Json] | None = None,
        *,
        acl: Mapping[str, str] | None = None,
        components: int | None = None,
        keys: ObjectKeys = DEFAULT_KEYS,
    ) -> StoredObject:
        """Write an object as a new live generation, and return it.

        The live version before becomes noncurrent in a versioned bucket, and is deleted in any other. Raise 403 if a
        hold prevents that, or, for a deletion, a retention period. `acl` None is the bucket's default. Raise 400 for a
        bad name, and 404 without the bucket.
        """
        check_object_name(name)
        with self.lock:
            home = self.bucket(bucket)
            self._retire(home, name)
            now = self.now()
            grants = dict(home.default_acl if acl is None else acl)
            generation = self.next_generation()
            item = StoredObject(bucket, name, generation, content_of(data), now, now, dict(fields or {}), grants)
            item.components, item.keys = components, keys
            if home.fields.get("defaultEventBasedHold") is True:
                item.fields.setdefault("eventBasedHold", True)
            home.objects.setdefault(name, []).append(item)
            if home.hierarchical:
                self.create_folders(home, name)
            return item

    def copy(
        self,
        source: StoredObject,
        bucket: str,
        name: str,
        fields: Mapping[str, Json],
        acl: Mapping[str, str] | None,
        keys: ObjectKeys,
    ) -> StoredObject:
        """Write a copy of `source` as the object `name` in `bucket`, as `put` does; raise 413 beyond the memory limit.

        The copy has the `fields` and the `acl` of the call, not those of the source.
        """
        self.claim([source.content])
        return self.put(bucket, name, source.content, fields, acl=acl, components=source.components, keys=keys)

    def compose(
        self,
        sources: Iterable[StoredObject],
        bucket: str,
        name: str,
        fields: Mapping[str, Json],
        acl: Mapping[str, str] | None,
        keys: ObjectKeys,
    ) -> StoredObject:
        """Write the sources joined, in order, into the object `name`, as `put` does; raise 413 beyond the memory limit.

        The object has the `fields` and the `acl` of the call, not those of a source.
        """
        sources = list(sources)
        contents = [source.content for source in sources]
        self.claim(contents)
        count = sum(source.components or 1 for source in sources)
        return self.put(bucket, name, join_contents(contents), fields, acl=acl, components=count, keys=keys)

    def delete_object(self, item: StoredObject, *, for_good: bool) -> None:
        """Delete the version `item` if `for_good`; otherwise retire the live version of the same object.

        The live version becomes noncurrent in a versioned bucket, and is deleted in any other. A deleted version can be
        restored for as long as the bucket's soft delete policy says. Raise 403 if a hold prevents that, or, for a
        deletion, a retention period.
        """
        with self.lock:
            home = self.bucket(item.bucket)
            self.space.changed()
            if for_good:
                self._drop(home, item)
            else:
                self._retire(home, item.name)

    def list_deleted_objects(self, bucket: Bucket) -> list[StoredObject]:
        """Return the soft-deleted objects of a bucket, the oldest deletion first; drop those too old to be restored."""
        return _drop_expired(bucket.deleted_objects, self.now())

    def find_deleted_object(self, bucket: Bucket, name: str, generation: int) -> StoredObject:
        """Return the soft-deleted version of this generation; raise 404 if it cannot be restored any more."""
        missing = ApiError(404, f"No such soft-deleted object: {bucket.name}/{name}#{generation}")
        return _find(self.list_deleted_objects(bucket), name, generation, missing)

    def restorable_buckets(self) -> list[Bucket]:
        """Return the soft-deleted buckets, the oldest deletion first; drop those too old to be restored."""
        return _drop_expired(self.deleted_buckets, self.now())

    def find_deleted_bucket(self, name: str, generation: int) -> Bucket:
        """Return the soft-deleted bucket of this generation; raise 404 if it cannot be restored any more."""
        missing = not_found(f"The soft-deleted bucket {name}#{generation}")
        return _find(self.restorable_buckets(), name, generation, missing)

    def claim(self, contents: Iterable[Content]) -> None:
        """Count the bytes of contents to be copied as used memory; raise 413 if they exceed the limit.

        Copies count in full although they share their bytes in memory.
        """
        self.space.claim(sum(map(weigh, contents)))

    def open_session(self, session: UploadSession) -> None:
        """Keep an upload session under its id.

        If there are 10 000, forget the first of the oldest 100 that has finished, expired or been cancelled, if there
        is one.
        """
        _make_room(self.sessions, lambda old: old.finished is not None or old.gone is not None)
        self.sessions[session.id] = session

    def keep_rewrite(self, token: str, rewrite: Rewrite) -> None:
        """Keep the progress of a rewrite under its token; if there are 10 000, forget the oldest."""
        _make_room(self.rewrites)
        self.rewrites[token] = rewrite

    def create_folders(self, bucket: Bucket, name: str) -> None:
        """Create the missing folders among those that contain the name: `a/` and `a/b/` for `a/b/c` and for `a/b/`."""
        for parent in parent_folders(name):
            if parent not in bucket.folders:
                bucket.folders[parent] = Folder(parent, self.now(), self.now())

    def keep_operation(self, bucket: Bucket, number: str, operation: JsonObject) -> None:
        """Keep a finished operation of a bucket under its id; if there are 10 000, forget the oldest."""
        _make_room(bucket.operations)
        bucket.operations[number] = operation

    def touch(self, thing: Bucket | StoredObject | Folder) -> None:
        """Record a change of metadata: raise the metageneration by 1 and set the time of the update to now."""
        thing.metageneration += 1
        thing.updated = self.now()

    def create_hmac_key(self, project: str, email: str) -> HmacKey:
        """Create and return an active HMAC key for the service account with this email."""
        with self.lock:
            number, now = self.next_id(), self.now()
            digest = hashlib.sha256(f"{project}/{email}/{number}".encode()).digest()
            access_id = "GOOG1E" + base64.b32encode(digest).decode()[:54]
            key = HmacKey(access_id, base64.b64encode(digest[:30]).decode(), project, email, now, now)
            self.hmac_keys[access_id] = key
            return key

    def _retire(self, home: Bucket, name: str) -> None:
        """Make the live version of the object `name` noncurrent, or delete it in a bucket without versioning.

        Do nothing without a live version. Raise 403 if a hold prevents that, or, for a deletion, a retention period.
        """
        live = home.live(name)
        if live is not None and home.versioned:
            check_no_hold(live)
            live.deleted = self.now()
        elif live is not None:
            self._drop(home, live)

    def _drop(self, home: Bucket, item: StoredObject) -> None:
        """Delete a version; it can be restored for as long as the bucket's soft delete policy says.

        Raise 403 while a hold or a retention period protects it.
        """
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
        """Return an estimate of the memory that everything stored takes, in bytes."""
        with self.lock:
            # A finished session has an object without its bytes, which must not count once more.
            sessions = [(session.id, session.target, session.data) for session in self.sessions.values()]
            iam = (self.iam.accounts, self.iam.roles, self.iam.policies, self.iam.unseen)
            # Resources and jobs refer to each other, so their parts are counted.
            resources = [resource.fields for resource in self.memorystore.resources.values()]
            jobs = [(job.name, job.fields) for job in self.memorystore.jobs.values()]
            storage = (self.buckets, self.deleted_buckets, self.rewrites, self.hmac_keys, self.multiparts)
            return weigh((storage, sessions, iam, resources, jobs))


def _drop_expired(things: list[_Deleted], now: float) -> list[_Deleted]:
    """Remove the things that can no longer be restored at `now` from the list, and return that same list."""
    things[:] = [thing for thing in things if thing.soft_deleted is not None and thing.soft_deleted[1] > now]
    return things


def _find(things: list[_Deleted], name: str, generation: int, missing: ApiError) -> _Deleted:
    for thing in things:
        if (thing.name, thing.generation) == (name, generation):
            return thing
    raise missing


def _make_room(entries: dict[str, _Entry], over: Callable[[_Entry], bool] = lambda _: True) -> None:
    """If there are 10 000 entries, remove one: the first of the oldest 100 for which `over` returns True, if any.

    By default `over` is true for every entry, so that the oldest is removed.
    """
    if len(entries) >= _MAX_UNFINISHED:
        oldest = next((name for name, entry in islice(entries.items(), 100) if over(entry)), None)
        if oldest is not None:
            del entries[oldest]
