"""The JSON API of Cloud Storage: the operations, with the paths that reach them and their handlers."""

from forbear_cloud.api import access, buckets, copies, folders, objects, projects, uploads
from forbear_cloud.call import Handlers, Routes, resource_routes
from forbear_cloud.operations import INSERT

_STORAGE = "/storage/v1"
_BUCKETS = f"{_STORAGE}/b"
_BUCKET = f"{_BUCKETS}/{{bucket}}"
_OBJECTS = f"{_BUCKET}/o"
_OBJECT = f"{_OBJECTS}/{{object}}"
_TARGET = "b/{destinationBucket}/o/{destinationObject}"
_FOLDER = f"{_BUCKET}/folders/{{folder}}"
_MANAGED_FOLDERS = f"{_BUCKET}/managedFolders"
_MANAGED_FOLDER = f"{_MANAGED_FOLDERS}/{{managedFolder}}"
_PROJECT = f"{_STORAGE}/projects/{{project}}"
_UPLOAD = "/upload/storage/v1/b/{bucket}/o"


def _policy_routes(prefix: str, resource: str, handlers: Handlers) -> Routes:
    """Return the routes that read, replace and test the IAM policy of a resource.

    `prefix` begins their operation ids, `resource` is the path of the resource, and `handlers` are by method name.
    """
    return (
        (f"{prefix}.getIamPolicy", "GET", f"{resource}/iam", handlers["getIamPolicy"]),
        (f"{prefix}.setIamPolicy", "PUT", f"{resource}/iam", handlers["setIamPolicy"]),
        (f"{prefix}.testIamPermissions", "GET", f"{resource}/iam/testPermissions", handlers["testIamPermissions"]),
    )


STORAGE_ROUTES: Routes = (
    *resource_routes(
        "storage.buckets",
        _BUCKETS,
        "bucket",
        {
            "list": buckets.list_,
            "insert": buckets.insert,
            "get": buckets.get,
            "patch": buckets.patch,
            "update": buckets.update,
            "delete": buckets.delete,
        },
    ),
    ("storage.buckets.lockRetentionPolicy", "POST", f"{_BUCKET}/lockRetentionPolicy", buckets.lock_retention_policy),
    ("storage.buckets.getStorageLayout", "GET", f"{_BUCKET}/storageLayout", buckets.get_storage_layout),
    ("storage.buckets.restore", "POST", f"{_BUCKET}/restore", buckets.restore),
    *resource_routes(
        "storage.buckets.operations",
        f"{_BUCKET}/operations",
        "operationId",
        {"list": folders.list_operations, "get": folders.get_operation},
    ),
    *_policy_routes("storage.buckets", _BUCKET, access.BUCKET_POLICY),
    *resource_routes(
        "storage.objects",
        _OBJECTS,
        "object",
        {
            "list": objects.list_,
            "insert": uploads.insert,
            "get": objects.get,
            "patch": objects.patch,
            "update": objects.update,
            "delete": objects.delete,
        },
    ),
    *((INSERT, method, _UPLOAD, uploads.insert) for method in ("POST", "PUT", "DELETE")),
    (INSERT, "POST", f"/resumable{_UPLOAD}", uploads.insert),
    ("storage.objects.get", "GET", "/download" + _OBJECT, objects.get),
    ("storage.objects.compose", "POST", f"{_OBJECT}/compose", copies.compose),
    ("storage.objects.copy", "POST", f"{_OBJECT}/copyTo/{_TARGET}", copies.copy),
    ("storage.objects.rewrite", "POST", f"{_OBJECT}/rewriteTo/{_TARGET}", copies.rewrite),
    ("storage.objects.move", "POST", f"{_OBJECT}/moveTo/o/{{destinationObject}}", copies.move),
    ("storage.objects.restore", "POST", f"{_OBJECT}/restore", objects.restore),
    ("storage.objects.bulkRestore", "POST", f"{_OBJECTS}/bulkRestore", objects.refuse_bulk_restore),
    *_policy_routes("storage.objects", _OBJECT, access.OBJECT_POLICY),
    *resource_routes(
        "storage.folders",
        f"{_BUCKET}/folders",
        "folder",
        {"list": folders.list_, "insert": folders.insert, "get": folders.get, "delete": folders.delete},
    ),
    ("storage.folders.deleteRecursive", "POST", f"{_FOLDER}/deleteRecursive", folders.delete_recursive),
    ("storage.folders.rename", "POST", f"{_FOLDER}/renameTo/folders/{{destinationFolder}}", folders.rename),
    *resource_routes(
        "storage.managedFolders",
        _MANAGED_FOLDERS,
        "managedFolder",
        {
            "list": folders.list_managed,
            "insert": folders.insert_managed,
            "get": folders.get_managed,
            "delete": folders.delete_managed,
        },
    ),
    ("storage.managedFolders.update", "PATCH", _MANAGED_FOLDER, folders.update_managed),
    *_policy_routes("storage.managedFolders", _MANAGED_FOLDER, access.MANAGED_FOLDER_POLICY),
    *resource_routes("storage.bucketAccessControls", f"{_BUCKET}/acl", "entity", access.BUCKET_ACL),
    *resource_routes(
        "storage.defaultObjectAccessControls", f"{_BUCKET}/defaultObjectAcl", "entity", access.DEFAULT_OBJECT_ACL
    ),
    *resource_routes("storage.objectAccessControls", f"{_OBJECT}/acl", "entity", access.OBJECT_ACL),
    *resource_routes(
        "storage.notifications",
        f"{_BUCKET}/notificationConfigs",
        "notification",
        {
            "list": buckets.list_notifications,
            "insert": buckets.insert_notification,
            "get": buckets.get_notification,
            "delete": buckets.delete_notification,
        },
    ),
    *resource_routes(
        "storage.projects.hmacKeys",
        f"{_PROJECT}/hmacKeys",
        "accessId",
        {
            "list": projects.list_keys,
            "create": projects.create_key,
            "get": projects.get_key,
            "update": projects.update_key,
            "delete": projects.delete_key,
        },
    ),
    ("storage.projects.serviceAccount.get", "GET", f"{_PROJECT}/serviceAccount", projects.service_account),
)
