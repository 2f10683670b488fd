"""Check what clients write: names, metadata fields and access control lists; and merge patches."""

import re
from collections.abc import Mapping

from forbear_cloud.http.messages import Json, JsonObject, invalid
from forbear_cloud.storage.fields import instant, items, text, texts
from forbear_cloud.storage.model import get_object

_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_RESERVED_PREFIX = ".well-known/acme-challenge/"
_MAX_METADATA = 8192

_BUCKET_FIELDS: Mapping[str, type] = {
    **dict.fromkeys(("location", "storageClass", "rpo"), str),
    "cors": list,
    "defaultEventBasedHold": bool,
    **dict.fromkeys(
        (
            "labels", "versioning", "lifecycle", "iamConfiguration", "retentionPolicy", "website", "logging",
            "billing", "encryption", "autoclass", "softDeletePolicy", "hierarchicalNamespace", "customPlacementConfig",
        ),
        dict,
    ),
}  # fmt: skip
_OBJECT_FIELDS: Mapping[str, type] = {
    **dict.fromkeys(
        (
            "contentType", "contentEncoding", "contentDisposition", "contentLanguage", "cacheControl", "storageClass",
            "customTime",
        ),
        str,
    ),
    **dict.fromkeys(("temporaryHold", "eventBasedHold"), bool),
    **dict.fromkeys(("metadata", "retention"), dict),
}  # fmt: skip
_CLASSES = {
    "STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE", "MULTI_REGIONAL", "REGIONAL", "DURABLE_REDUCED_AVAILABILITY",
}  # fmt: skip
_STRING_MAPS = ("labels", "metadata")
_TYPE_NAMES = {str: "a string", list: "a list", bool: "true or false", dict: "an object"}

_PREDEFINED_ACLS: Mapping[str, Mapping[str, str]] = {
    "private": {},
    "publicRead": {"allUsers": "READER"},
    "publicReadWrite": {"allUsers": "WRITER"},
    "authenticatedRead": {"allAuthenticatedUsers": "READER"},
    "bucketOwnerRead": {"project-owners-{project}": "READER"},
    "bucketOwnerFullControl": {"project-owners-{project}": "OWNER"},
    "projectPrivate": {"project-editors-{project}": "OWNER", "project-viewers-{project}": "READER"},
}


def check_bucket_name(name: str) -> None:
    """Raise 400 unless the name is 3 to 222 lower-case letters, digits, dots, dashes and underscores.

    It must begin and end with a letter or a digit.
    """
    if not _BUCKET_NAME.fullmatch(name):
        raise invalid(f"Invalid bucket name: '{name[:80]}'.")


def check_object_name(name: str) -> None:
    """Raise 400 unless the name is 1 to 1024 bytes of UTF-8, without line ends, and not reserved.

    Reserved are ".", ".." and names that begin with ".well-known/acme-challenge/".
    """
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise invalid("Invalid object name: it must be valid UTF-8.") from None
    if not 1 <= size <= 1024 or name in {".", ".."} or "\r" in name or "\n" in name:
        raise invalid("Invalid object name: it must be 1 to 1024 bytes long, without line ends, and not '.' or '..'.")
    if name.startswith(_RESERVED_PREFIX):
        raise invalid(f"Invalid object name: it must not begin with '{_RESERVED_PREFIX}'.")


def parent_folders(name: str) -> list[str]:
    """Return the folders that contain the name, outermost first: `a/` and `a/b/` for `a/b/c`, and also for `a/b/`."""
    return [name[: index + 1] for index, char in enumerate(name) if char == "/" and index]


def bucket_fields(body: Mapping[str, Json]) -> JsonObject:
    """Return the fields of the body that a client may write to a bucket; ignore others.

    A field that is null stays, and means that it is to be removed. Raise 400 for a value of the wrong type.
    """
    return _check(body, _BUCKET_FIELDS)


def object_fields(body: Mapping[str, Json]) -> JsonObject:
    """Return the fields of the body that a client may write to an object; ignore others.

    A field that is null stays, and means that it is to be removed. Raise 400 for a wrong type, for a wrong
    `customTime`, and for custom metadata of more than 8 KiB.
    """
    fields = _check(body, _OBJECT_FIELDS)
    custom = fields.get("customTime")
    if isinstance(custom, str):
        instant(custom, "customTime")
    check_metadata(fields)
    return fields


def _check(body: Mapping[str, Json], types: Mapping[str, type]) -> JsonObject:
    fields: JsonObject = {}
    for name, value in body.items():
        kind = types.get(name)
        if kind is None:
            continue
        if value is not None and not isinstance(value, kind):
            raise invalid(f"Invalid value for {name}: it must be {_TYPE_NAMES[kind]}.")
        if name == "storageClass" and value is not None and str(value).upper() not in _CLASSES:
            raise invalid(f"Invalid value for storageClass: '{str(value)[:80]}' is no storage class.")
        if name in _STRING_MAPS:
            for key, entry in get_object(body, name).items():
                if entry is not None and not isinstance(entry, str):
                    raise invalid(f"Invalid value for {name}.{key}: it must be a string.")
        fields[name] = value
    return fields


def check_metadata(fields: Mapping[str, Json]) -> None:
    """Raise 400 if the names and values of an object's custom metadata have more than 8 KiB together."""
    custom = get_object(fields, "metadata")
    size = sum(len(f"{key}{value}".encode(errors="replace")) for key, value in custom.items())
    if size > _MAX_METADATA:
        raise invalid(f"The custom metadata of an object must have at most {_MAX_METADATA} bytes, got {size}.")


def check_custom_time(old: Mapping[str, Json], patch: Mapping[str, Json]) -> None:
    """Raise 400 if a patch removes an object's `customTime` or moves it to an earlier time."""
    before, after = old.get("customTime"), patch.get("customTime", "")
    if not isinstance(before, str) or after == "":
        return
    if not isinstance(after, str) or instant(after, "customTime") < instant(before, "customTime"):
        raise invalid(f"Invalid value for customTime: it is {before}, and can be neither removed nor made earlier.")


def merge_patch(old: Mapping[str, Json], patch: Mapping[str, Json]) -> JsonObject:
    """Return a copy of `old` with a patch applied: null removes a field, objects are merged, others are replaced."""
    result = dict(old)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            result[name] = merge_patch(get_object(result, name), value)
        else:
            result[name] = value
    return result


def acl_field(body: Mapping[str, Json], name: str) -> dict[str, str] | None:
    """Return the access control list in the field `name` as a map from entity to role, or None if it is absent or null.

    Raise 400 unless it is a list of objects that have both an entity and a role.
    """
    if body.get(name) is None:
        return None
    return {text(entry, "entity"): text(entry, "role") for entry in items(body, name)}


def find_predefined_acl(query: Mapping[str, str], name: str, project: str) -> dict[str, str] | None:
    """Return the access control list that a query parameter such as `predefinedAcl=publicRead` stands for.

    `name` is the parameter. Return None if it is absent, and raise 400 if its value is not a predefined list.
    """
    value = query.get(name)
    if value is None:
        return None
    if value not in _PREDEFINED_ACLS:
        raise invalid(f"Invalid value for {name}: '{value}'. It must be one of {', '.join(_PREDEFINED_ACLS)}.")
    acl = {f"project-owners-{project}": "OWNER"}
    for entity, role in _PREDEFINED_ACLS[value].items():
        acl.setdefault(entity.format(project=project), role)
    return acl


def find_acl(
    body: Mapping[str, Json], name: str, query: Mapping[str, str], parameter: str, project: str
) -> dict[str, str] | None:
    """Return the access control list that a request sets: in the field `name`, or the predefined one in the query.

    It is None if the request sets neither, and empty if it only clears the list.
    """
    acl = acl_field(body, name)
    return acl or find_predefined_acl(query, parameter, project) or acl


def policy_fields(body: Mapping[str, Json]) -> JsonObject:
    """Return the version (1 if absent) and the bindings of the IAM policy in a body; raise 400 if they are malformed.

    Each binding must have a role, and its members, if it has any, must be a list of strings.
    """
    bindings = items(body, "bindings")
    for binding in bindings:
        text(binding, "role")
        texts(binding, "members")
    return {"version": body.get("version", 1), "bindings": bindings}
