"""How stored things look as JSON resources; reads the model, changes nothing."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote

from forbear.testing.cloud.http.messages import Json, JsonObject
from forbear.testing.cloud.storage.model import Bucket, Folder, HmacKey, StoredObject, etag_of


@lru_cache(1024)
def moment(seconds: float) -> str:
    """A time as RFC 3339 with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def bucket_resource(bucket: Bucket, base: str, *, full: bool) -> JsonObject:
    """A bucket; access controls only when `full`."""
    resource: JsonObject = {
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
    }
    if bucket.soft_deleted is not None:
        resource["softDeleteTime"], resource["hardDeleteTime"] = map(moment, bucket.soft_deleted)
    if full:
        resource["acl"] = acl_resources("bucketAccessControl", bucket.acl, bucket.metageneration, bucket.name)
        resource["defaultObjectAcl"] = acl_resources(
            "objectAccessControl", bucket.default_acl, bucket.metageneration, bucket.name
        )
    return resource


def object_resource(item: StoredObject, base: str, *, full: bool = False, hashes: bool = True) -> JsonObject:
    """One version of an object; access controls only when `full`, and hashes unless somebody else has the key."""
    name = quote(item.name, safe="")
    link = f"storage/v1/b/{item.bucket}/o/{name}"
    resource: JsonObject = {
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
    }
    if hashes:
        resource["crc32c"] = item.crc32c
        if item.md5 is not None:
            resource["md5Hash"] = item.md5
    if item.key_sha256 is not None:
        resource["customerEncryption"] = {"encryptionAlgorithm": "AES256", "keySha256": item.key_sha256}
    if item.soft_deleted is not None:
        resource["softDeleteTime"], resource["hardDeleteTime"] = map(moment, item.soft_deleted)
    if item.components is not None:
        resource["componentCount"] = item.components
    if item.deleted is not None:
        resource["timeDeleted"] = moment(item.deleted)
    if full:
        resource["acl"] = acl_resources(
            "objectAccessControl", item.acl, item.metageneration, item.bucket, item.name, item.generation
        )
    return resource


def folder_resource(kind: str, bucket: str, folder: Folder, base: str) -> JsonObject:
    """A folder or a managed folder."""
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


def acl_resource(
    kind: str,
    entity: str,
    role: str,
    revision: int,
    bucket: str,
    name: str | None = None,
    generation: int | None = None,
) -> JsonObject:
    """One access control entry."""
    place = "/".join(part for part in (bucket, name, generation and str(generation)) if part)
    entry: JsonObject = {
        "kind": f"storage#{kind}",
        "id": f"{place}/{entity}",
        "entity": entity,
        "role": role,
        "bucket": bucket,
        "etag": etag_of(revision),
    }
    if name is not None:
        entry["object"] = name
    if generation is not None:
        entry["generation"] = str(generation)
    return entry


def acl_resources(
    kind: str,
    acl: Mapping[str, str],
    revision: int,
    bucket: str,
    name: str | None = None,
    generation: int | None = None,
) -> list[JsonObject]:
    """A whole access control list."""
    return [acl_resource(kind, entity, role, revision, bucket, name, generation) for entity, role in acl.items()]


def hmac_resource(key: HmacKey, base: str) -> JsonObject:
    """The metadata of a key, without its secret."""
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
    """A page of results; empty lists are left out, as the service does."""
    page: JsonObject = {"kind": f"storage#{kind}", **{name: value for name, value in more.items() if value}}
    if items:
        page["items"] = items
    if token is not None:
        page["nextPageToken"] = token
    return page
