"""Write stored things as the JSON resources of the Cloud Storage API, and pages of them as responses."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar
from urllib.parse import quote

from forbear_cloud.http.messages import HttpResponse, Json, JsonObject, json_response
from forbear_cloud.storage.fields import page
from forbear_cloud.storage.model import Bucket, Folder, HmacKey, StoredObject, etag_of

_Item = TypeVar("_Item")


def moment(seconds: float) -> str:
    """Return seconds since the epoch as RFC 3339 text in UTC with milliseconds, such as 2026-01-31T12:00:00.000Z."""
    whole, thousandths = divmod(round(seconds * 1e6) // 1000, 1000)
    return f"{_whole_second(whole)}.{thousandths:03}Z"


@lru_cache(1024)
def _whole_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def present(fields: JsonObject) -> JsonObject:
    """Return a copy of the fields without those that are None."""
    return {name: value for name, value in fields.items() if value is not None}


def bucket_resource(bucket: Bucket, base: str, *, full: bool) -> JsonObject:
    """Return the JSON resource of a bucket, with access control lists if `full`; `base` is the URL of the cloud."""
    return present({
        "location": "US",
        "storageClass": "STANDARD",
        **bucket.fields,
        "kind": "storage#bucket",
        "id": bucket.name,
        "name": bucket.name,
        "selfLink": f"{base}/storage/v1/b/{bucket.name}",
        "projectNumber": "123456789012",
        "metageneration": str(bucket.metageneration),
        "generation": str(bucket.generation),
        "timeCreated": moment(bucket.created),
        "updated": moment(bucket.updated),
        "etag": bucket.etag,
        **_soft_delete_times(bucket),
        "owner": {"entity": f"project-owners-{bucket.project}"} if full else None,
        "acl": acl_resources("bucketAccessControl", bucket, bucket.acl) if full else None,
        "defaultObjectAcl": acl_resources("objectAccessControl", bucket, bucket.default_acl) if full else None,
    })  # fmt: skip


def object_resource(item: StoredObject, base: str, *, full: bool = False, hashes: bool = True) -> JsonObject:
    """Return the JSON resource of an object version, with its access control list if `full`.

    `base` is the URL of the cloud. `hashes=False` leaves out the hashes, as for a reader without the object's
    encryption key.
    """
    name, key = quote(item.name, safe=""), item.keys.sha256
    link = f"storage/v1/b/{item.bucket}/o/{name}"
    return present({
        "storageClass": "STANDARD",
        **item.fields,
        "kind": "storage#object",
        "id": f"{item.bucket}/{item.name}/{item.generation}",
        "selfLink": f"{base}/{link}",
        "mediaLink": f"{base}/download/{link}?generation={item.generation}&alt=media",
        "name": item.name,
        "bucket": item.bucket,
        "generation": str(item.generation),
        "metageneration": str(item.metageneration),
        "size": str(len(item.content)),
        "etag": item.etag,
        "timeCreated": moment(item.created),
        "updated": moment(item.updated),
        "timeDeleted": None if item.deleted is None else moment(item.deleted),
        **_soft_delete_times(item),
        "crc32c": item.crc32c if hashes else None,
        "md5Hash": item.md5 if hashes else None,
        "customerEncryption": None if key is None else {"encryptionAlgorithm": "AES256", "keySha256": key},
        "kmsKeyName": item.keys.kms_version,
        "componentCount": item.components,
        "acl": acl_resources("objectAccessControl", item, item.acl) if full else None,
    })  # fmt: skip


def _soft_delete_times(thing: Bucket | StoredObject) -> JsonObject:
    """Return the fields softDeleteTime and hardDeleteTime of a soft-deleted thing; no field for any other.

    They say when it was deleted, and until when it can be restored.
    """
    if thing.soft_deleted is None:
        return {}
    deleted, gone = map(moment, thing.soft_deleted)
    return {"softDeleteTime": deleted, "hardDeleteTime": gone}


def folder_resource(kind: str, bucket: str, folder: Folder, base: str) -> JsonObject:
    """Return the JSON resource of a folder of the bucket named `bucket`; `kind` is "folder" or "managedFolder".

    `base` is the URL of the cloud.
    """
    return {
        "kind": f"storage#{kind}",
        "id": f"{bucket}/{folder.name}",
        "selfLink": f"{base}/storage/v1/b/{bucket}/{kind}s/{quote(folder.name, safe='')}",
        "name": folder.name,
        "bucket": bucket,
        "metageneration": str(folder.metageneration),
        "createTime": moment(folder.created),
        "updateTime": moment(folder.updated),
    }


def acl_resource(kind: str, owner: Bucket | StoredObject, entity: str, role: str) -> JsonObject:
    """Return the JSON resource of one access control entry: the `role` that an `entity` has on its owner.

    `kind` is "bucketAccessControl" or "objectAccessControl". For an object the entry also names the object and its
    generation.
    """
    entry: JsonObject = {"kind": f"storage#{kind}", "entity": entity, "role": role}
    if isinstance(owner, StoredObject):
        place = f"{owner.resource}/{owner.generation}"
        entry |= {"bucket": owner.bucket, "object": owner.name, "generation": str(owner.generation)}
    else:
        place = entry["bucket"] = owner.name
    return {**entry, "id": f"{place}/{entity}", "etag": etag_of(owner.metageneration)}


def acl_resources(kind: str, owner: Bucket | StoredObject, acl: Mapping[str, str]) -> list[JsonObject]:
    """Return the JSON resources of all entries of an access control list, which maps entities to roles."""
    return [acl_resource(kind, owner, entity, role) for entity, role in acl.items()]


def hmac_resource(key: HmacKey, base: str) -> JsonObject:
    """Return the metadata of an HMAC key as a JSON resource, without its secret; `base` is the URL of the cloud."""
    return {
        "kind": "storage#hmacKeyMetadata",
        "id": f"{key.project}/{key.access_id}",
        "selfLink": f"{base}/storage/v1/projects/{quote(key.project, safe='')}/hmacKeys/{key.access_id}",
        "accessId": key.access_id,
        "projectId": key.project,
        "serviceAccountEmail": key.email,
        "state": key.state,
        "timeCreated": moment(key.created),
        "updated": moment(key.updated),
        "etag": key.etag,
    }


def listing(kind: str, items: list[JsonObject], token: str | None = None, **more: Json) -> JsonObject:
    """Return one page of a Cloud Storage listing; like the service, leave out the lists that are empty.

    `kind` is without "storage#", and `token` is that of the next page (None: this is the last one). `more` has other
    lists by name.
    """
    lists: JsonObject = {**more, "items": items}
    shown = {name: value for name, value in lists.items() if value}
    return present({"kind": f"storage#{kind}", **shown, "nextPageToken": token})


def storage_page(
    kind: str,
    items: Mapping[str, _Item],
    resource: Callable[[_Item], JsonObject],
    query: Mapping[str, str],
    size_name: str = "maxResults",
) -> HttpResponse:
    """Respond with one page of the items in Cloud Storage's form, sorted by their keys; the query selects the page.

    `kind` is without "storage#", `resource` returns the JSON of an item, and `size_name` is the query parameter with
    the size of a page.
    """
    keys, token = page(items, query, size_name)
    return json_response(listing(kind, [resource(items[key]) for key in keys], token))


def google_page(
    collection: str,
    items: Mapping[str, _Item],
    resource: Callable[[_Item], JsonObject],
    query: Mapping[str, str],
    *,
    default: int = 1000,
    maximum: int = 1000,
) -> HttpResponse:
    """Respond with one page of the items in the form of Google's newer APIs, sorted by their keys.

    `collection` is the field that lists them, and `resource` returns the JSON of an item. The query's `pageToken` and
    `pageSize` select the page; its size is `default` without one, and at most `maximum`.
    """
    keys, token = page(items, query, "pageSize", default=default, maximum=maximum)
    return json_response(present({collection: [resource(items[key]) for key in keys], "nextPageToken": token}))
