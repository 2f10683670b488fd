"""The operations that the cloud serves: their ids, and the methods and paths that reach them.

The ids are those of the APIs. The XML API has none, so its ids are our own. A resumable upload is one operation in four
steps: `storage.objects.insert.start`, `.send`, `.query` and `.cancel`.
"""

from typing import TypeAlias

Routes: TypeAlias = "tuple[tuple[str, str, str], ...]"
"""Operation ids, each with an HTTP method and a path that reaches it."""

_METHODS = {
    "list": "GET",
    "insert": "POST",
    "create": "POST",
    "get": "GET",
    "patch": "PATCH",
    "update": "PUT",
    "delete": "DELETE",
}


def _resource(prefix: str, collection: str, variable: str, *names: str) -> Routes:
    """Return the routes of a kind of resource: the operations named on its collection and on each of its members."""
    member = f"{collection}/{{{variable}}}"
    return tuple(
        (f"{prefix}.{name}", _METHODS[name], collection if name in {"list", "insert", "create"} else member)
        for name in names
    )


_STORAGE = "/storage/v1"
_BUCKET = f"{_STORAGE}/b/{{bucket}}"
_OBJECT = f"{_BUCKET}/o/{{object}}"
_TARGET = "b/{destinationBucket}/o/{destinationObject}"
_FOLDER = f"{_BUCKET}/folders/{{folder}}"
_MANAGED_FOLDER = f"{_BUCKET}/managedFolders/{{managedFolder}}"
_PROJECT = f"{_STORAGE}/projects/{{project}}"
_KEY = f"{_PROJECT}/hmacKeys/{{accessId}}"
_UPLOAD = "/upload/storage/v1/b/{bucket}/o"
_ACL_OPERATIONS = ("list", "insert", "get", "patch", "update", "delete")

STORAGE_ROUTES: Routes = (
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
    *_resource("storage.bucketAccessControls", f"{_BUCKET}/acl", "entity", *_ACL_OPERATIONS),
    *_resource("storage.defaultObjectAccessControls", f"{_BUCKET}/defaultObjectAcl", "entity", *_ACL_OPERATIONS),
    *_resource("storage.objectAccessControls", f"{_OBJECT}/acl", "entity", *_ACL_OPERATIONS),
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

_IAM_PROJECT = "/v1/projects/{project}"
_ACCOUNTS = f"{_IAM_PROJECT}/serviceAccounts"
_ACCOUNT = f"{_ACCOUNTS}/{{account}}"
_ACCOUNT_KEYS = f"{_ACCOUNT}/keys"
_ACCOUNT_KEY = f"{_ACCOUNT_KEYS}/{{key}}"
_ROLES = f"{_IAM_PROJECT}/roles"
_ROLE = f"{_ROLES}/{{role}}"

_POLICY_VERBS = ("getIamPolicy", "setIamPolicy", "testIamPermissions")

IAM_ROUTES: Routes = (
    ("iam.projects.serviceAccounts.create", "POST", _ACCOUNTS),
    ("iam.projects.serviceAccounts.list", "GET", _ACCOUNTS),
    ("iam.projects.serviceAccounts.get", "GET", _ACCOUNT),
    ("iam.projects.serviceAccounts.patch", "PATCH", _ACCOUNT),
    ("iam.projects.serviceAccounts.update", "PUT", _ACCOUNT),
    ("iam.projects.serviceAccounts.delete", "DELETE", _ACCOUNT),
    *((f"iam.projects.serviceAccounts.{verb}", "POST", f"{_ACCOUNT}:{verb}")
      for verb in ("undelete", "enable", "disable", *_POLICY_VERBS)),
    ("iam.projects.serviceAccounts.keys.create", "POST", _ACCOUNT_KEYS),
    ("iam.projects.serviceAccounts.keys.list", "GET", _ACCOUNT_KEYS),
    ("iam.projects.serviceAccounts.keys.get", "GET", _ACCOUNT_KEY),
    ("iam.projects.serviceAccounts.keys.delete", "DELETE", _ACCOUNT_KEY),
    ("iam.projects.serviceAccounts.keys.enable", "POST", f"{_ACCOUNT_KEY}:enable"),
    ("iam.projects.serviceAccounts.keys.disable", "POST", f"{_ACCOUNT_KEY}:disable"),
    ("iam.projects.serviceAccounts.keys.upload", "POST", f"{_ACCOUNT_KEYS}:upload"),
    ("iam.projects.roles.create", "POST", _ROLES),
    ("iam.projects.roles.list", "GET", _ROLES),
    ("iam.projects.roles.get", "GET", _ROLE),
    ("iam.projects.roles.patch", "PATCH", _ROLE),
    ("iam.projects.roles.delete", "DELETE", _ROLE),
    ("iam.projects.roles.undelete", "POST", f"{_ROLE}:undelete"),
    *((f"cloudresourcemanager.projects.{verb}", "POST", f"/{version}/projects/{{project}}:{verb}")
      for version in ("v1", "v3") for verb in _POLICY_VERBS),
)  # fmt: skip

_LOCATION = "/v1/projects/{project}/locations/{location}"
_REDIS_OPERATIONS = ("create", "list", "get", "patch", "delete")
_OPERATIONS = f"{_LOCATION}/operations"
_INSTANCE = f"{_LOCATION}/instances/{{resource}}"

MEMORYSTORE_ROUTES: Routes = (
    *_resource("redis.projects.locations.instances", f"{_LOCATION}/instances", "resource", *_REDIS_OPERATIONS),
    *_resource("redis.projects.locations.clusters", f"{_LOCATION}/clusters", "resource", *_REDIS_OPERATIONS),
    ("redis.projects.locations.instances.failover", "POST", f"{_INSTANCE}:failover"),
    ("redis.projects.locations.instances.upgrade", "POST", f"{_INSTANCE}:upgrade"),
    ("redis.projects.locations.operations.list", "GET", _OPERATIONS),
    ("redis.projects.locations.operations.get", "GET", f"{_OPERATIONS}/{{operation}}"),
    ("redis.projects.locations.operations.cancel", "POST", f"{_OPERATIONS}/{{operation}}:cancel"),
    ("redis.projects.locations.operations.delete", "DELETE", f"{_OPERATIONS}/{{operation}}"),
)

JOBS = tuple(
    operation
    for operation, _, _ in MEMORYSTORE_ROUTES
    if operation.endswith((".create", ".patch", "instances.delete", "clusters.delete", ".failover", ".upgrade"))
)
"""The operations of Memorystore that start a long-running operation."""

XML_GET, XML_PUT, XML_PART = "xml.object.get", "xml.object.put", "xml.object.put.part"
XML_SESSION, XML_STATUS, XML_CANCEL = (
    "xml.object.put.session",
    "xml.object.put.session.status",
    "xml.object.delete.session",
)

XML_OPERATIONS = (
    "xml.service.get",
    "xml.bucket.get",
    "xml.bucket.get.uploads",
    "xml.bucket.head",
    "xml.bucket.put",
    "xml.bucket.delete",
    XML_GET,
    "xml.object.get.uploadId",
    "xml.object.head",
    XML_PUT,
    "xml.object.put.copy",
    "xml.object.put.metadata",
    "xml.object.put.compose",
    XML_PART,
    "xml.object.put.part.copy",
    XML_SESSION,
    XML_STATUS,
    "xml.object.post.resumable",
    "xml.object.post.uploads",
    "xml.object.post.uploadId",
    "xml.object.delete",
    "xml.object.delete.uploadId",
    XML_CANCEL,
)

INSERT, GET, BATCH = "storage.objects.insert", "storage.objects.get", "storage.batch"
START, SEND, QUERY, CANCEL = (f"{INSERT}.{step}" for step in ("start", "send", "query", "cancel"))
SENDS, QUERIES = (SEND, XML_SESSION), (QUERY, XML_STATUS)
"""The steps of a resumable upload that send bytes, and those that query its state, in both APIs of Cloud Storage."""

WRITES, READS = (INSERT, XML_PUT, XML_PART, *SENDS), ("storage.objects.get", XML_GET)
"""The operations that send bytes to be stored, and those that can read them, in both APIs of Cloud Storage."""

_ROUTES = (*STORAGE_ROUTES, *IAM_ROUTES, *MEMORYSTORE_ROUTES)
OPERATIONS = frozenset((*(route[0] for route in _ROUTES), START, SEND, QUERY, CANCEL, *XML_OPERATIONS))
ON_OBJECTS = tuple(
    sorted(
        name
        for name in OPERATIONS
        if name.startswith(("storage.objects.", "xml.object.")) and name != "storage.objects.list"
    )
)
"""The operations on one object."""


def steps_of(operation: str) -> tuple[str, ...]:
    """Return the operation and its steps; only an insert has steps."""
    return (operation, START, SEND, QUERY, CANCEL) if operation == INSERT else (operation,)
