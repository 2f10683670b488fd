"""folders, of buckets with a hierarchical namespace, managedFolders, and the operations that change many objects."""

from collections.abc import Iterator, Mapping

from forbear.testing.cloud.call import Call, Handler
from forbear.testing.cloud.http.errors import ApiError, conflict, invalid, not_found
from forbear.testing.cloud.http.messages import NO_CONTENT, JsonObject, Reply, json_reply
from forbear.testing.cloud.storage.conditions import read_conditions
from forbear.testing.cloud.storage.fields import page, query_flag, text
from forbear.testing.cloud.storage.model import Bucket, Folder, StoredObject
from forbear.testing.cloud.storage.resources import folder_resource, listing
from forbear.testing.cloud.storage.retention import check_unprotected
from forbear.testing.cloud.storage.store import check_object_name, parents


def find_folder(call: Call, folders: Mapping[str, Folder], kind: str) -> Folder:
    """Return the folder of the path; 404 when there is none."""
    name = _slashed(call.names[kind])
    if name not in folders:
        raise not_found(f"The folder {name}")
    return folders[name]


def _slashed(name: str) -> str:
    return name if name.endswith("/") else f"{name}/"


def _new_folder(call: Call, folders: dict[str, Folder]) -> Folder:
    name = _slashed(text(call.body(), "name"))
    check_object_name(name)
    if name in folders:
        raise conflict(f"The folder {name} already exists.")
    folders[name] = Folder(name, call.store.now(), call.store.now())
    return folders[name]


def _hierarchical(call: Call) -> Bucket:
    bucket = call.bucket()
    if not bucket.hierarchical:
        raise ApiError(409, f"The bucket {bucket.name} has no hierarchical namespace, and so no folders.")
    return bucket


def _contents(bucket: Bucket, folder: str) -> Iterator[StoredObject]:
    return (item for item in bucket.versions() if item.name.startswith(folder))


def _reply(call: Call, kind: str, folder: Folder) -> Reply:
    resource = folder_resource(kind, call.names["bucket"], folder, call.base)
    return json_reply(resource, headers=(("ETag", folder.etag),))


def _listed(call: Call, kind: str, folders: Mapping[str, Folder], names: list[str]) -> Reply:
    shown, token = page(names, call.query, "pageSize")
    resources = [folder_resource(kind, call.names["bucket"], folders[name], call.base) for name in shown]
    return json_reply(listing(f"{kind}s", resources, token))


def insert(call: Call) -> Reply:
    """Create a folder, with its parents where the query says so; 404 where they are missing otherwise."""
    bucket = _hierarchical(call)
    missing = [each for each in parents(_slashed(text(call.body(), "name"))[:-1]) if each not in bucket.folders]
    if missing and not query_flag(call.query, "recursive"):
        raise not_found(f"The parent folder {missing[0]}")
    folder = _new_folder(call, bucket.folders)
    call.store.create_folders(bucket, folder.name)
    call.committed(f"{bucket.name}/folders/{folder.name}")
    return _reply(call, "folder", folder)


def get(call: Call) -> Reply:
    """Read a folder."""
    folder = find_folder(call, _hierarchical(call).folders, "folder")
    call.conditions().check_read(folder)
    return _reply(call, "folder", folder)


def list_(call: Call) -> Reply:
    """List folders by name: those below a prefix, with a delimiter only the next level."""
    bucket, query = _hierarchical(call), call.query
    prefix, start, end = (query.get(name, "") for name in ("prefix", "startOffset", "endOffset"))
    if query.get("delimiter", "/") != "/":
        raise invalid("Invalid value for delimiter: of folders it must be '/'.")
    level = prefix.count("/") + 1 if query.get("delimiter") else None
    names = [
        name
        for name in sorted(bucket.folders)
        if name.startswith(prefix) and name >= start and not (end and name >= end)
        and level in {None, name.count("/")}
    ]  # fmt: skip
    return _listed(call, "folder", bucket.folders, names)


def delete(call: Call) -> Reply:
    """Delete an empty folder; 409 where anything is in it."""
    bucket = _hierarchical(call)
    folder = find_folder(call, bucket.folders, "folder")
    call.conditions().check_write(folder)
    inner = any(name.startswith(folder.name) and name != folder.name for name in bucket.folders)
    if inner or next(_contents(bucket, folder.name), None) is not None:
        raise conflict(f"The folder {folder.name} is not empty.")
    del bucket.folders[folder.name]
    call.committed(f"{bucket.name}/folders/{folder.name}")
    return NO_CONTENT


def delete_recursive(call: Call) -> Reply:
    """Delete a folder with all that is in it: everything, or where something is protected nothing."""
    bucket = _hierarchical(call)
    folder = find_folder(call, bucket.folders, "folder")
    call.conditions().check_write(folder)
    items = list(_contents(bucket, folder.name))
    for item in items:
        check_unprotected(bucket, item, call.store.now())
    for item in items:
        call.store.delete_object(item, for_good=True)
    for name in [name for name in bucket.folders if name.startswith(folder.name)]:
        del bucket.folders[name]
    call.committed(f"{bucket.name}/folders/{folder.name}")
    return _done(call, bucket, {})


def rename(call: Call) -> Reply:
    """Give a folder and all that is in it another name, in one change; generations stay."""
    bucket = _hierarchical(call)
    folder = find_folder(call, bucket.folders, "folder")
    old, target = folder.name, _slashed(call.names["destinationFolder"])
    check_object_name(target)
    read_conditions(call.query, "ifSource").check_write(folder)
    if target in bucket.folders:
        raise conflict(f"The folder {target} already exists.")
    if target.startswith(old):
        raise invalid("A folder cannot be moved into itself.")
    items = list(_contents(bucket, old))
    for item in items:
        check_unprotected(bucket, item, call.store.now())
        check_object_name(target + item.name.removeprefix(old))
    for name in dict.fromkeys(item.name for item in items):
        new = target + name.removeprefix(old)
        bucket.objects[new] = bucket.objects.pop(name)
        for item in bucket.objects[new]:
            item.name = new
    for name in [name for name in bucket.folders if name.startswith(old)]:
        moved = bucket.folders.pop(name)
        moved.name = target + name.removeprefix(old)
        bucket.folders[moved.name] = moved
        call.store.touch(moved)
    call.store.create_folders(bucket, target)
    call.committed(f"{bucket.name}/folders/{target}")
    return _done(call, bucket, folder_resource("folder", bucket.name, folder, call.base))


def _done(call: Call, bucket: Bucket, response: JsonObject) -> Reply:
    number = str(call.store.next_id())
    place = f"projects/_/buckets/{bucket.name}/operations/{number}"
    operation: JsonObject = {
        "kind": "storage#operation",
        "name": place,
        "selfLink": f"{call.base}/storage/v1/b/{bucket.name}/operations/{number}",
        "done": True,
        "response": response,
    }
    call.store.keep_operation(bucket, number, operation)
    return json_reply(operation)


def get_operation(call: Call) -> Reply:
    """Read an operation, which is done."""
    operation = call.bucket().operations.get(call.names["operationId"])
    if operation is None:
        raise not_found("The operation")
    return json_reply(operation)


def list_operations(call: Call) -> Reply:
    """List the operations of a bucket, in one page."""
    operations = list(call.bucket().operations.values())
    return json_reply({"kind": "storage#operations", **({"operations": operations} if operations else {})})


def insert_managed(call: Call) -> Reply:
    """Create a managed folder."""
    bucket = call.bucket()
    folder = _new_folder(call, bucket.managed_folders)
    call.committed(f"{bucket.name}/managedFolders/{folder.name}")
    return _reply(call, "managedFolder", folder)


def get_managed(call: Call) -> Reply:
    """Read a managed folder."""
    folder = find_folder(call, call.bucket().managed_folders, "managedFolder")
    call.conditions().check_read(folder)
    return _reply(call, "managedFolder", folder)


def list_managed(call: Call) -> Reply:
    """List managed folders by name."""
    folders, prefix = call.bucket().managed_folders, call.query.get("prefix", "")
    return _listed(call, "managedFolder", folders, [name for name in sorted(folders) if name.startswith(prefix)])


def update_managed(call: Call) -> Reply:
    """Write a managed folder, of which nothing can be changed but its policy: its metageneration rises."""
    bucket = call.bucket()
    folder = find_folder(call, bucket.managed_folders, "managedFolder")
    call.body()
    call.conditions().check_write(folder)
    call.store.touch(folder)
    call.committed(f"{bucket.name}/managedFolders/{folder.name}")
    return _reply(call, "managedFolder", folder)


def delete_managed(call: Call) -> Reply:
    """Delete a managed folder; 409 where objects are in it, unless the query allows that."""
    bucket = call.bucket()
    folder = find_folder(call, bucket.managed_folders, "managedFolder")
    call.conditions().check_write(folder)
    if next(_contents(bucket, folder.name), None) is not None and not query_flag(call.query, "allowNonEmpty"):
        raise conflict(f"The managed folder {folder.name} is not empty.")
    del bucket.managed_folders[folder.name]
    call.committed(f"{bucket.name}/managedFolders/{folder.name}")
    return NO_CONTENT


FOLDERS: Mapping[str, Handler] = {
    "insert": insert,
    "get": get,
    "list": list_,
    "delete": delete,
    "deleteRecursive": delete_recursive,
    "rename": rename,
}
MANAGED: Mapping[str, Handler] = {
    "insert": insert_managed,
    "get": get_managed,
    "list": list_managed,
    "update": update_managed,
    "delete": delete_managed,
}
OPERATIONS: Mapping[str, Handler] = {"get": get_operation, "list": list_operations}
