"""The JSON API of Cloud Storage: the handler of each operation."""

from collections.abc import Mapping

from forbear.testing.cloud.api import access, buckets, copies, folders, objects, projects, uploads
from forbear.testing.cloud.call import Handler, prefixed

HANDLERS: Mapping[str, Handler] = {
    "storage.buckets.list": buckets.list_,
    "storage.buckets.insert": buckets.insert,
    "storage.buckets.get": buckets.get,
    "storage.buckets.patch": buckets.patch,
    "storage.buckets.update": buckets.update,
    "storage.buckets.delete": buckets.delete,
    "storage.buckets.lockRetentionPolicy": buckets.lock_retention_policy,
    "storage.buckets.getStorageLayout": buckets.get_storage_layout,
    "storage.buckets.restore": buckets.restore,
    **prefixed("storage.buckets.operations", folders.OPERATIONS),
    **prefixed("storage.buckets", access.BUCKET_POLICY),
    **prefixed("storage.folders", folders.FOLDERS),
    **prefixed("storage.managedFolders", folders.MANAGED_FOLDERS),
    **prefixed("storage.managedFolders", access.MANAGED_FOLDER_POLICY),
    "storage.objects.list": objects.list_,
    "storage.objects.insert": uploads.insert,
    "storage.objects.get": objects.get,
    "storage.objects.patch": objects.patch,
    "storage.objects.update": objects.update,
    "storage.objects.delete": objects.delete,
    "storage.objects.compose": copies.compose,
    "storage.objects.copy": copies.copy,
    "storage.objects.rewrite": copies.rewrite,
    "storage.objects.move": copies.move,
    "storage.objects.restore": objects.restore,
    "storage.objects.bulkRestore": objects.refuse_bulk_restore,
    **prefixed("storage.objects", access.OBJECT_POLICY),
    **prefixed("storage.bucketAccessControls", access.BUCKET_ACL),
    **prefixed("storage.defaultObjectAccessControls", access.DEFAULT_OBJECT_ACL),
    **prefixed("storage.objectAccessControls", access.OBJECT_ACL),
    "storage.notifications.list": buckets.list_notifications,
    "storage.notifications.insert": buckets.insert_notification,
    "storage.notifications.get": buckets.get_notification,
    "storage.notifications.delete": buckets.delete_notification,
    "storage.projects.hmacKeys.list": projects.list_keys,
    "storage.projects.hmacKeys.create": projects.create_key,
    "storage.projects.hmacKeys.get": projects.get_key,
    "storage.projects.hmacKeys.update": projects.update_key,
    "storage.projects.hmacKeys.delete": projects.delete_key,
    "storage.projects.serviceAccount.get": projects.service_account,
}
