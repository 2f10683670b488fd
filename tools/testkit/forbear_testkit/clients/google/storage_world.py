"""A bucket, its objects and all else that calls of google-cloud-storage need, on the embedded cloud."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from forbear_cloud import Cloud
from google.cloud.storage.hmac_key import HMACKeyMetadata

CHUNK = 262_144
PART = 5 * 1024 * 1024
CONTENT = bytes(range(256)) * 2100  # two whole chunks and a part of one
OLD, NEW = "old", "new"
MADE, TOPIC = "1", "//pubsub.googleapis.com/projects/project-1/topics/topic"


@dataclass
class World:
    """A bucket with three objects and one that was deleted, a key, a client, and the `retry=` of each call, if any.

    With `marks` each object that a call knows has a mark of its own in its metadata, which a write of it sends.
    """

    cloud: Cloud
    client: Any
    retry: dict[str, Any]
    folder: Path
    marks: bool = False

    def fill(self) -> None:
        """Empty the cloud, and make everything that the calls need."""
        store = self.cloud.store
        self.cloud.clear_faults()
        self.cloud.reset()
        week = {"softDeletePolicy": {"retentionDurationSeconds": "604800"}}
        store.create_bucket("bkt", fields=week)
        for name in ("gone", OLD, "source", "big"):
            store.put("bkt", name, CONTENT if name == "big" else name.encode())
        gone = store.object("bkt", "gone")
        self.gone = gone.generation
        store.delete_object(gone, for_good=False)
        lost = store.create_bucket("lost", fields=week)
        self.lost = lost.generation
        store.delete_bucket(lost)
        store.create_bucket("empty")
        store.create_bucket("locked", fields={"retentionPolicy": {"retentionPeriod": "60"}})
        self.access_id = store.create_hmac_key("p", "a@b").access_id
        bucket = store.bucket("bkt")
        self.bucket_etag, self.object_etag = bucket.policy.etag, store.object("bkt", OLD).policy.etag
        bucket.notifications[MADE] = {
            "id": MADE,
            "topic": TOPIC,
            "payload_format": "NONE",
            "etag": "1",
            "selfLink": "1",
        }
        (self.folder / "file").write_bytes(CONTENT)
        if not (self.folder / "large").exists():
            (self.folder / "large").write_bytes(bytes(PART + 1))

    @property
    def bucket(self) -> Any:
        """The bucket, of which the client knows nothing."""
        return self.client.bucket("bkt")

    def blob(self, name: str = OLD, **options: Any) -> Any:
        """An object, of which the client knows nothing."""
        blob = self.bucket.blob(name, **options)
        if self.marks:
            blob.metadata = {"write": uuid4().hex}
        return blob

    def generation(self, name: str = OLD) -> int:
        """The generation that an object has."""
        return self.cloud.store.object("bkt", name).generation

    def key(self, **fields: str) -> Any:
        """The key, of which the client knows these fields."""
        key: Any = HMACKeyMetadata(self.client, access_id=self.access_id, project_id="p")
        key._properties.update(fields)
        return key

    @property
    def inactive(self) -> Any:
        """The key, which may be deleted."""
        self.cloud.store.hmac_keys[self.access_id].state = "INACTIVE"
        return self.key()

    @property
    def locked(self) -> Any:
        """A bucket with a retention policy, of which the client knows the metageneration."""
        bucket = self.client.bucket("locked")
        bucket._properties.update(metageneration=1, retentionPolicy={"retentionPeriod": "60"})
        return bucket

    def notification(self, number: str | None = None) -> Any:
        """A notification that is not there yet, or the one that is."""
        return self.bucket.notification("topic", topic_project="project-1", notification_id=number)
