"""Folders of buckets with a hierarchical namespace, managed folders, and long-running operations.

The cloud finishes a long-running operation before it responds.
"""

from collections.abc import Iterator, Mapping

from forbear_cloud.call import ApiCall
from forbear_cloud.http.messages import (
    NO_CONTENT,
    ApiError,
    HttpResponse,
    JsonObject,
    conflict,
    invalid,
    json_response,
    not_found,
)
from forbear_cloud.storage.conditions import read_conditions
from forbear_cloud.storage.fields import query_flag, text
from forbear_cloud.storage.model import Bucket, Folder, StoredObject
from forbear_cloud.storage.resources import folder_resource, storage_page
from forbear_cloud.storage.retention import check_unprotected
from forbear_cloud.storage.writable import check_object_name, parent_folders

_FOLDER, _MANAGED = "folder", "managedFolder"


def insert(call: ApiCall) -> HttpResponse:
    """Create the folder that the body names, and respond with its resource; 409 if it exists.

    With recursive=true create its missing parents too; otherwise respond 404 if one is missing.
    """
    bucket = _hierarchical(call)
    missing = [name for name in parent_folders(_new_name(call)[:-1]) if name not in bucket.folders]
    if missing and not query_flag(call.query, "recursive"):
        raise not_found(f"The parent folder {missing[0]}")
    folder = _new_folder(call, bucket.folders)
    call.store.create_folders(bucket, folder.name)
    return _commit_folder(call, _FOLDER, folder)


def get(call: ApiCall) -> HttpResponse:
    """Read the folder of the path.

    Respond 404 if it does not exist, 412 or 304 if it does not meet the preconditions.
    """
    folder = _folder(call, _hierarchical(call))
    call.conditions().check_read(folder)
    return _response(call, _FOLDER, folder)


def list_(call: ApiCall) -> HttpResponse:
    """List a page of folders by name: all that begin with the prefix, with a delimiter only those one level below it.

    The names are from startOffset on and before endOffset. Respond 400 for a delimiter other than "/".
    """
    bucket, query = _hierarchical(call), call.query
    prefix, start, end = (query.get(name, "") for name in ("prefix", "startOffset", "endOffset"))
    if query.get("delimiter", "/") != "/":
        raise invalid("Invalid value for delimiter: for folders it must be '/'.")
    level = prefix.count("/") + 1 if query.get("delimiter") else None
    folders = {
        name: folder
        for name, folder in bucket.folders.items()
        if name.startswith(prefix) and name >= start and not (end and name >= end)
        and level in {None, name.count("/")}
    }  # fmt: skip
    return _page(call, _FOLDER, folders)


def delete(call: ApiCall) -> HttpResponse:
    """Delete an empty folder and respond 204; 409 if it contains a folder or any version of an object."""
    bucket = _hierarchical(call)
    folder = _folder(call, bucket)
    call.conditions().check_write(folder)
    inner = any(name.startswith(folder.name) and name != folder.name for name in bucket.folders)
    if inner or next(_contents(bucket, folder.name), None) is not None:
        raise conflict(f"The folder {folder.name} is not empty.")
    del bucket.folders[folder.name]
    _commit(call, _FOLDER, folder.name)
    return NO_CONTENT


def delete_recursive(call: ApiCall) -> HttpResponse:
    """Delete a folder with all folders and objects in it, and respond with a finished long-running operation.

    If a hold or a retention protects any of the objects, delete nothing and respond 403.
    """
    bucket = _hierarchical(call)
    folder = _folder(call, bucket)
    call.conditions().check_write(folder)
    for item in _check_contents(call, bucket, folder.name):
        call.store.delete_object(item, for_good=True)
    for name in [name for name in bucket.folders if name.startswith(folder.name)]:
        del bucket.folders[name]
    _commit(call, _FOLDER, folder.name)
    return _finish_operation(call, bucket, {})


def rename(call: ApiCall) -> HttpResponse:
    """Rename a folder and everything in it, in one change that keeps the generations of objects.

    Missing parents of the new name are created. Respond with a finished long-running operation, 409 if the new name is
    taken, and 403 if a hold or a retention protects an object in it.
    """
    bucket = _hierarchical(call)
    folder = _folder(call, bucket)
    old, target = folder.name, _add_slash(call.names["destinationFolder"])
    check_object_name(target)
    read_conditions(call.query, "ifSource").check_write(folder)
    if target in bucket.folders:
        raise conflict(f"The folder {target} already exists.")
    if target.startswith(old):
        raise invalid("A folder cannot be moved into itself.")
    items = _check_contents(call, bucket, old)
    for item in items:
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
    _commit(call, _FOLDER, target)
    return _finish_operation(call, bucket, folder_resource(_FOLDER, bucket.name, folder, call.base))


def insert_managed(call: ApiCall) -> HttpResponse:
    """Create the managed folder that the body names, and respond with its resource; 409 if it exists."""
    return _commit_folder(call, _MANAGED, _new_folder(call, call.bucket().managed_folders))


def get_managed(call: ApiCall) -> HttpResponse:
    """Read the managed folder of the path.

    Respond 404 if it does not exist, 412 or 304 if it does not meet the preconditions.
    """
    folder = find_managed_folder(call)
    call.conditions().check_read(folder)
    return _response(call, _MANAGED, folder)


def list_managed(call: ApiCall) -> HttpResponse:
    """List a page of the managed folders whose names begin with the prefix in the query, by name."""
    folders, prefix = call.bucket().managed_folders, call.query.get("prefix", "")
    return _page(call, _MANAGED, {name: folder for name, folder in folders.items() if name.startswith(prefix)})


def update_managed(call: ApiCall) -> HttpResponse:
    """Raise the metageneration of a managed folder, and respond with its resource; no field of it can be changed."""
    folder = find_managed_folder(call)
    call.body()
    call.conditions().check_write(folder)
    call.store.touch(folder)
    return _commit_folder(call, _MANAGED, folder)


def delete_managed(call: ApiCall) -> HttpResponse:
    """Delete a managed folder, but none of its objects, and respond 204.

    Unless allowNonEmpty=true, respond 409 if it contains any version of an object.
    """
    bucket, folder = call.bucket(), find_managed_folder(call)
    call.conditions().check_write(folder)
    if next(_contents(bucket, folder.name), None) is not None and not query_flag(call.query, "allowNonEmpty"):
        raise conflict(f"The managed folder {folder.name} is not empty.")
    del bucket.managed_folders[folder.name]
    _commit(call, _MANAGED, folder.name)
    return NO_CONTENT


def find_managed_folder(call: ApiCall) -> Folder:
    """Return the managed folder of the path, which may lack the last slash; raise 404 if it does not exist."""
    return _find(call.bucket().managed_folders, call.names[_MANAGED])


def get_operation(call: ApiCall) -> HttpResponse:
    """Read the long-running operation of the path, which is always done; respond 404 if it does not exist."""
    operation = call.bucket().operations.get(call.names["operationId"])
    if operation is None:
        raise not_found("The operation")
    return json_response(operation)


def list_operations(call: ApiCall) -> HttpResponse:
    """List all long-running operations of a bucket that the cloud has kept, in one page; every one is done."""
    operations = list(call.bucket().operations.values())
    return json_response({"kind": "storage#operations", **({"operations": operations} if operations else {})})


def _hierarchical(call: ApiCall) -> Bucket:
    """Return the bucket of the path; raise 404 if it does not exist, and 409 if it has no hierarchical namespace."""
    bucket = call.bucket()
    if not bucket.hierarchical:
        raise ApiError(409, f"The bucket {bucket.name} has no hierarchical namespace, and so no folders.")
    return bucket


def _add_slash(name: str) -> str:
    return name if name.endswith("/") else f"{name}/"


def _folder(call: ApiCall, bucket: Bucket) -> Folder:
    """Return the folder of the path, which may lack the last slash; raise 404 if it does not exist."""
    return _find(bucket.folders, call.names[_FOLDER])


def _find(folders: Mapping[str, Folder], name: str) -> Folder:
    name = _add_slash(name)
    if name not in folders:
        raise not_found(f"The folder {name}")
    return folders[name]


def _new_name(call: ApiCall) -> str:
    return _add_slash(text(call.body(), "name"))


def _new_folder(call: ApiCall, folders: dict[str, Folder]) -> Folder:
    """Create the folder that the body names among `folders`, and return it.

    Raise 409 if it exists, 400 for a bad name.
    """
    name = _new_name(call)
    check_object_name(name)
    if name in folders:
        raise conflict(f"The folder {name} already exists.")
    folders[name] = Folder(name, call.store.now(), call.store.now())
    return folders[name]


def _contents(bucket: Bucket, folder: str) -> Iterator[StoredObject]:
    return (item for item in bucket.versions() if item.name.startswith(folder))


def _check_contents(call: ApiCall, bucket: Bucket, folder: str) -> list[StoredObject]:
    """Return all versions of all objects below a folder; raise 403 if a hold or a retention protects one of them."""
    items = list(_contents(bucket, folder))
    for item in items:
        check_unprotected(bucket, item, call.store.now())
    return items


def _response(call: ApiCall, kind: str, folder: Folder) -> HttpResponse:
    resource = folder_resource(kind, call.names["bucket"], folder, call.base)
    return json_response(resource, headers=(("ETag", folder.etag),))


def _commit(call: ApiCall, kind: str, name: str) -> None:
    call.commit(f"{call.names['bucket']}/{kind}s/{name}")


def _commit_folder(call: ApiCall, kind: str, folder: Folder) -> HttpResponse:
    """Record in the journal that the call has written the folder, and respond with its resource."""
    _commit(call, kind, folder.name)
    return _response(call, kind, folder)


def _page(call: ApiCall, kind: str, folders: Mapping[str, Folder]) -> HttpResponse:
    bucket, base = call.names["bucket"], call.base
    return storage_page(
        f"{kind}s", folders, lambda folder: folder_resource(kind, bucket, folder, base), call.query, "pageSize"
    )


def _finish_operation(call: ApiCall, bucket: Bucket, response: JsonObject) -> HttpResponse:
    """Store a long-running operation that is done, with `response` as its result, and respond with the operation."""
    number = str(call.store.next_id())
    operation: JsonObject = {
        "kind": "storage#operation",
        "name": f"projects/_/buckets/{bucket.name}/operations/{number}",
        "selfLink": f"{call.base}/storage/v1/b/{bucket.name}/operations/{number}",
        "done": True,
        "response": response,
    }
    call.store.keep_operation(bucket, number, operation)
    return json_response(operation)
