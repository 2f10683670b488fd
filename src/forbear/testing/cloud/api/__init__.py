"""The JSON API of Cloud Storage: the handler of each operation."""

from collections.abc import Mapping

from forbear.testing.cloud.api import acls, buckets, copies, folders, objects, permissions, projects, uploads
from forbear.testing.cloud.call import Handler


def _under(prefix: str, handlers: Mapping[str, Handler]) -> Mapping[str, Handler]:
    return {f"{prefix}.{name}": handler for name, handler in handlers.items()}


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
    **_under("storage.buckets.operations", folders.OPERATIONS),
    **_under("storage.buckets", permissions.BUCKET),
    **_under("storage.folders", folders.FOLDERS),
    **_under("storage.managedFolders", folders.MANAGED_FOLDERS),
    **_under("storage.managedFolders", permissions.MANAGED_FOLDER),
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
    **_under("storage.objects", permissions.OBJECT),
    **_under("storage.bucketAccessControls", acls.BUCKET),
    **_under("storage.defaultObjectAccessControls", acls.DEFAULT_OBJECT),
    **_under("storage.objectAccessControls", acls.OBJECT),
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
