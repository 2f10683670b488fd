"""The part of the workload that is not about objects: buckets, HMAC keys and notifications."""

from forbear.cli.demo.ask import Ask, Operation, Proof, single
from forbear.cli.demo.site import BUCKET, Site, body
from forbear.testing.cloud.storage.store import Store

_BUCKETS = "/storage/v1/b"
_NOTIFICATIONS = f"{_BUCKETS}/{BUCKET}/notificationConfigs"


def create_bucket(_: Site, name: str) -> Operation:
    """A new bucket; there can be but one of a name."""
    labels = {"labels": {"by": name}}
    proof = Proof(f"{_BUCKETS}/{name}", labels)
    ask = Ask(name, "write", "POST", f"{_BUCKETS}?project=p", body({"name": name, **labels}), proof=proof)
    return single(ask, repeatable=True, kept=lambda store: name in store.buckets)


def delete_bucket(site: Site, name: str) -> Operation:
    """An empty bucket deleted."""
    site.store.create_bucket(name)
    path = f"{_BUCKETS}/{name}"
    ask = Ask(name, "write", "DELETE", path, proof=Proof(path, None))
    return single(ask, repeatable=True, kept=lambda store: name not in store.buckets)


def create_key(_: Site, name: str) -> Operation:
    """A new HMAC key; every call makes another one."""
    email = f"{name}@p.iam.gserviceaccount.com"
    ask = Ask(name, "write", "POST", f"/storage/v1/projects/p/hmacKeys?serviceAccountEmail={email}")
    return single(ask, repeatable=False, kept=lambda store: any(key.email == email for key in store.hmac_keys.values()))


def create_notification(_: Site, name: str) -> Operation:
    """A new notification; every call makes another one, and then each event is told twice."""
    topic = "//pubsub.googleapis.com/projects/p/topics/t"
    content = body({"topic": topic, "payload_format": "NONE", "object_name_prefix": name})

    def kept(store: Store) -> bool:
        return any(each.get("object_name_prefix") == name for each in store.bucket(BUCKET).notifications.values())

    return single(Ask(name, "write", "POST", _NOTIFICATIONS, content), repeatable=False, kept=kept)


def delete_notification(site: Site, name: str) -> Operation:
    """A notification deleted."""
    number = str(site.store.next_id())
    site.store.bucket(BUCKET).notifications[number] = {"id": number}
    path = f"{_NOTIFICATIONS}/{number}"
    ask = Ask(name, "write", "DELETE", path, proof=Proof(path, None))
    return single(ask, repeatable=True, kept=lambda store: number not in store.bucket(BUCKET).notifications)
