"""Which fields clients may write, of what type, and how a patch merges into them; knows no storage."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from forbear.testing.cloud.http.errors import invalid
from forbear.testing.cloud.http.messages import Json, JsonObject
from forbear.testing.cloud.storage.fields import items, text

_BUCKET: Mapping[str, type] = {
    **dict.fromkeys(("location", "storageClass", "rpo"), str),
    **dict.fromkeys(("cors",), list),
    **dict.fromkeys(("defaultEventBasedHold",), bool),
    **dict.fromkeys(
        (
            "labels",
            "versioning",
            "lifecycle",
            "iamConfiguration",
            "retentionPolicy",
            "website",
            "logging",
            "billing",
            "encryption",
            "autoclass",
            "softDeletePolicy",
            "hierarchicalNamespace",
            "customPlacementConfig",
        ),
        dict,
    ),
}
_OBJECT: Mapping[str, type] = {
    **dict.fromkeys(
        (
            "contentType",
            "contentEncoding",
            "contentDisposition",
            "contentLanguage",
            "cacheControl",
            "storageClass",
            "customTime",
        ),
        str,
    ),
    **dict.fromkeys(("temporaryHold", "eventBasedHold"), bool),
    **dict.fromkeys(("metadata", "retention"), dict),
}
_STRING_MAPS = ("labels", "metadata")
_LARGEST_METADATA = 8192
_WORDS = {str: "a string", list: "a list", bool: "true or false", dict: "an object"}


def bucket_fields(body: Mapping[str, Json]) -> JsonObject:
    """The writable fields of a bucket; others are ignored, wrong types are refused."""
    return _known(body, _BUCKET)


def object_fields(body: Mapping[str, Json]) -> JsonObject:
    """The writable fields of an object; others are ignored, wrong types are refused."""
    found = _known(body, _OBJECT)
    custom = found.get("customTime")
    if isinstance(custom, str):
        _instant(custom)
    check_metadata(found)
    return found


def check_metadata(fields: Mapping[str, Json]) -> None:
    """400 when the custom metadata of an object is larger than the 8 KiB of the service."""
    custom = fields.get("metadata")
    size = sum(len(f"{key}{value}".encode(errors="replace")) for key, value in _pairs(custom))
    if size > _LARGEST_METADATA:
        raise invalid(f"The custom metadata of an object must have at most {_LARGEST_METADATA} bytes, got {size}.")


def _pairs(custom: Json) -> Iterable[tuple[str, Json]]:
    return custom.items() if isinstance(custom, Mapping) else ()


def check_custom_time(old: Mapping[str, Json], patch: Mapping[str, Json]) -> None:
    """400 when a patch would remove an object's custom time, or move it back."""
    before, after = old.get("customTime"), patch.get("customTime", "")
    if not isinstance(before, str) or after == "":
        return
    if not isinstance(after, str) or _instant(after) < _instant(before):
        raise invalid(f"Invalid value for customTime: it is {before}, and can be neither removed nor made earlier.")


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise invalid(f"Invalid value for customTime: '{text[:80]}'. It must be a time such as 2026-01-31T12:00:00Z.")
    return found


def _known(body: Mapping[str, Json], schema: Mapping[str, type]) -> JsonObject:
    found: JsonObject = {}
    for name in schema.keys() & body.keys():
        value = body[name]
        if value is not None and not isinstance(value, schema[name]):
            raise invalid(f"Invalid value for {name}: it must be {_WORDS[schema[name]]}.")
        if name in _STRING_MAPS and isinstance(value, Mapping):
            for key, entry in value.items():
                if entry is not None and not isinstance(entry, str):
                    raise invalid(f"Invalid value for {name}.{key}: it must be a string.")
        found[name] = value
    return found


def merged(old: Mapping[str, Json], patch: Mapping[str, Json]) -> JsonObject:
    """`old` after a patch: null removes a field, objects merge, everything else replaces."""
    result = dict(old)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            before = result.get(name)
            result[name] = merged(before if isinstance(before, Mapping) else {}, value)
        else:
            result[name] = value
    return result


def acl_field(body: Mapping[str, Json], name: str) -> dict[str, str] | None:
    """An access control list as entity -> role; None when the field is absent."""
    if body.get(name) is None:
        return None
    return {text(entry, "entity"): text(entry, "role") for entry in items(body, name)}
