"""The operations served, by their ids in the API, with the methods and paths that reach them; data only.

A resumable upload is one operation in four steps: `storage.objects.insert.start`, `.send`, `.query` and `.cancel`.
"""

from forbear.testing.cloud.iam.routes import IAM_ROUTES
from forbear.testing.cloud.memorystore.routes import MEMORYSTORE_ROUTES
from forbear.testing.cloud.xml.routes import XML_GET, XML_PUT, XML_PART, XML_SESSION, XML_STATUS, XML_OPERATIONS

_STORAGE = "/storage/v1"
_BUCKET = f"{_STORAGE}/b/{{bucket}}"
_OBJECT = f"{_BUCKET}/o/{{object}}"
_TARGET = "b/{destinationBucket}/o/{destinationObject}"
_FOLDER = f"{_BUCKET}/folders/{{folder}}"
_MANAGED_FOLDER = f"{_BUCKET}/managedFolders/{{managedFolder}}"
_PROJECT = f"{_STORAGE}/projects/{{project}}"
_KEY = f"{_PROJECT}/hmacKeys/{{accessId}}"
_UPLOAD = "/upload/storage/v1/b/{bucket}/o"


def _entries(kind: str, collection: str) -> tuple[tuple[str, str, str], ...]:
    entry = f"{collection}/{{entity}}"
    return (
        (f"storage.{kind}.list", "GET", collection),
        (f"storage.{kind}.insert", "POST", collection),
        (f"storage.{kind}.get", "GET", entry),
        (f"storage.{kind}.patch", "PATCH", entry),
        (f"storage.{kind}.update", "PUT", entry),
        (f"storage.{kind}.delete", "DELETE", entry),
    )


STORAGE_ROUTES: tuple[tuple[str, str, str], ...] = (
    ("storage.buckets.list", "GET", f"{_STORAGE}/b"),
    ("storage.buckets.insert", "POST", f"{_STORAGE}/b"),
    ("storage.buckets.get", "GET", _BUCKET),
    ("storage.buckets.patch", "PATCH", _BUCKET),
    ("storage.buckets.update", "PUT", _BUCKET),
    ("storage.buckets.delete", "DELETE", _BUCKET),
    ("storage.buckets.lockRetentionPolicy", "POST", f"{_BUCKET}/lockRetentionPolicy"),
    ("storage.buckets.getStorageLayout", "GET", f"{_BUCKET}/storageLayout"),
    ("storage.buckets.restore", "POST", f"{_BUCKET}/restore"),
    ("storage.buckets.operations.list", "GET", f"{_BUCKET}/operations"),
    ("storage.buckets.operations.get", "GET", f"{_BUCKET}/operations/{{operationId}}"),
    ("storage.buckets.getIamPolicy", "GET", f"{_BUCKET}/iam"),
    ("storage.buckets.setIamPolicy", "PUT", f"{_BUCKET}/iam"),
    ("storage.buckets.testIamPermissions", "GET", f"{_BUCKET}/iam/testPermissions"),
    ("storage.objects.list", "GET", f"{_BUCKET}/o"),
    ("storage.objects.insert", "POST", f"{_BUCKET}/o"),
    ("storage.objects.insert", "POST", _UPLOAD),
    ("storage.objects.insert", "PUT", _UPLOAD),
    ("storage.objects.insert", "DELETE", _UPLOAD),
    ("storage.objects.insert", "POST", f"/resumable{_UPLOAD}"),
    ("storage.objects.get", "GET", _OBJECT),
    ("storage.objects.get", "GET", "/download" + _OBJECT),
    ("storage.objects.patch", "PATCH", _OBJECT),
    ("storage.objects.update", "PUT", _OBJECT),
    ("storage.objects.delete", "DELETE", _OBJECT),
    ("storage.objects.compose", "POST", f"{_OBJECT}/compose"),
    ("storage.objects.copy", "POST", f"{_OBJECT}/copyTo/{_TARGET}"),
    ("storage.objects.rewrite", "POST", f"{_OBJECT}/rewriteTo/{_TARGET}"),
    ("storage.objects.move", "POST", f"{_OBJECT}/moveTo/o/{{destinationObject}}"),
    ("storage.objects.restore", "POST", f"{_OBJECT}/restore"),
    ("storage.objects.bulkRestore", "POST", f"{_BUCKET}/o/bulkRestore"),
    ("storage.objects.getIamPolicy", "GET", f"{_OBJECT}/iam"),
    ("storage.objects.setIamPolicy", "PUT", f"{_OBJECT}/iam"),
    ("storage.objects.testIamPermissions", "GET", f"{_OBJECT}/iam/testPermissions"),
    ("storage.folders.list", "GET", f"{_BUCKET}/folders"),
    ("storage.folders.insert", "POST", f"{_BUCKET}/folders"),
    ("storage.folders.get", "GET", _FOLDER),
    ("storage.folders.delete", "DELETE", _FOLDER),
    ("storage.folders.deleteRecursive", "POST", f"{_FOLDER}/deleteRecursive"),
    ("storage.folders.rename", "POST", f"{_FOLDER}/renameTo/folders/{{destinationFolder}}"),
    ("storage.managedFolders.list", "GET", f"{_BUCKET}/managedFolders"),
    ("storage.managedFolders.insert", "POST", f"{_BUCKET}/managedFolders"),
    ("storage.managedFolders.get", "GET", _MANAGED_FOLDER),
    ("storage.managedFolders.update", "PATCH", _MANAGED_FOLDER),
    ("storage.managedFolders.delete", "DELETE", _MANAGED_FOLDER),
    ("storage.managedFolders.getIamPolicy", "GET", f"{_MANAGED_FOLDER}/iam"),
    ("storage.managedFolders.setIamPolicy", "PUT", f"{_MANAGED_FOLDER}/iam"),
    ("storage.managedFolders.testIamPermissions", "GET", f"{_MANAGED_FOLDER}/iam/testPermissions"),
    *_entries("bucketAccessControls", f"{_BUCKET}/acl"),
    *_entries("defaultObjectAccessControls", f"{_BUCKET}/defaultObjectAcl"),
    *_entries("objectAccessControls", f"{_OBJECT}/acl"),
    ("storage.notifications.list", "GET", f"{_BUCKET}/notificationConfigs"),
    ("storage.notifications.insert", "POST", f"{_BUCKET}/notificationConfigs"),
    ("storage.notifications.get", "GET", f"{_BUCKET}/notificationConfigs/{{notification}}"),
    ("storage.notifications.delete", "DELETE", f"{_BUCKET}/notificationConfigs/{{notification}}"),
    ("storage.projects.hmacKeys.list", "GET", f"{_PROJECT}/hmacKeys"),
    ("storage.projects.hmacKeys.create", "POST", f"{_PROJECT}/hmacKeys"),
    ("storage.projects.hmacKeys.get", "GET", _KEY),
    ("storage.projects.hmacKeys.update", "PUT", _KEY),
    ("storage.projects.hmacKeys.delete", "DELETE", _KEY),
    ("storage.projects.serviceAccount.get", "GET", f"{_PROJECT}/serviceAccount"),
    ("storage.batch", "POST", "/batch"),
    ("storage.batch", "POST", "/batch/storage/v1"),
)

INSERT, GET, BATCH = "storage.objects.insert", "storage.objects.get", "storage.batch"
START, SEND, QUERY, CANCEL = (f"{INSERT}.{step}" for step in ("start", "send", "query", "cancel"))
SENDS, QUERIES = (SEND, XML_SESSION), (QUERY, XML_STATUS)
"""The steps of a resumable upload that bring bytes, and those that ask, in either API."""

WRITES, READS = (INSERT, XML_PUT, XML_PART, *SENDS), ("storage.objects.get", XML_GET)
"""The requests that bring bytes to be stored, and those that may fetch them, in either API."""

_ROUTES = (*STORAGE_ROUTES, *IAM_ROUTES, *MEMORYSTORE_ROUTES)
OPERATIONS = frozenset((*(route[0] for route in _ROUTES), START, SEND, QUERY, CANCEL, *XML_OPERATIONS))
ON_OBJECTS = tuple(
    sorted(
        name
        for name in OPERATIONS
        if name.startswith(("storage.objects.", "xml.object.")) and name != "storage.objects.list"
    )
)
"""The requests about one object."""


def steps_of(operation: str) -> tuple[str, ...]:
    """The operation with its steps, which only an insert has."""
    return (operation, START, SEND, QUERY, CANCEL) if operation == INSERT else (operation,)
