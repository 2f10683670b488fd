"""Which function serves which operation; data only."""

from collections.abc import Mapping

from forbear.testing.cloud.api import buckets, objects, uploads
from forbear.testing.cloud.call import Handler

HANDLERS: Mapping[str, Handler] = {
    "storage.buckets.list": buckets.list_,
    "storage.buckets.insert": buckets.insert,
    "storage.buckets.get": buckets.get,
    "storage.buckets.patch": buckets.patch,
    "storage.buckets.update": buckets.update,
    "storage.buckets.delete": buckets.delete,
    "storage.buckets.lockRetentionPolicy": buckets.lock_retention_policy,
    "storage.objects.list": objects.list_,
    "storage.objects.insert": uploads.insert,
    "storage.objects.get": objects.get,
    "storage.objects.patch": objects.patch,
    "storage.objects.update": objects.update,
    "storage.objects.delete": objects.delete,
}
