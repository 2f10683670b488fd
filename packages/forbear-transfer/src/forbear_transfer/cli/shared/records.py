"""Objects, folders and sums as lines of text, and as JSON objects whose keys stay as they are."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from forbear.adapters import printable
from forbear_transfer.cli.shared.reporter import Record, format_bytes
from forbear_transfer.commands.comparison import CheckResult, CheckStatus
from forbear_transfer.commands.hashing import FileHashes
from forbear_transfer.commands.listing import Usage
from forbear_transfer.commands.metadata import ObjectDetails
from forbear_transfer.objects import Object, Url, is_cloud, quote_for_shell


def object_record(entry: Object | Url) -> Record:
    """Return an entry of a listing as a JSON object; a folder has only `url` and `type`."""
    if isinstance(entry, Url):
        return {"url": str(entry), "type": "folder"}
    return {
        "url": str(Url(entry.bucket, entry.name)),
        "type": "object",
        "size": entry.size,
        "updated": _format_optional_time(entry.updated),
        "generation": entry.generation,
        "metageneration": entry.metageneration,
        "crc32c": entry.crc32c,
        "md5": entry.md5,
        "content_type": entry.content_type,
        "content_encoding": entry.content_encoding,
        "cache_control": entry.cache_control,
        "content_disposition": entry.content_disposition,
        "content_language": entry.content_language,
        "storage_class": entry.storage_class,
        "custom_time": entry.custom_time,
        "key_sha256": entry.key_sha256,
        "kms_key": entry.kms_key,
        "metadata": dict(entry.metadata),
    }


def object_line(entry: Object | Url, *, human: bool, version: bool = False) -> str:
    """Return a line with size, time and address, with `version` also its generation; of a folder the address."""
    if isinstance(entry, Url):
        return f"{'':12}  {'':20}  {entry}"
    updated = "" if entry.updated is None else format_time(entry.updated)
    url = entry.url if version else Url(entry.bucket, entry.name)
    return f"{size(entry.size, human=human):>12}  {updated:20}  {url}"


def show_address(text: str, written: Sequence[str] = ()) -> str:
    """Return an address or path so that it can be pasted back; those that the user has `written` stay patterns."""
    if is_cloud(text) and text not in written:
        return f"{Url.parse(text, versions=False)}"
    return quote_for_shell(text)


def size(count: int, *, human: bool) -> str:
    """Return a number of bytes in digits, or with `human` in words such as "1.2 GiB"."""
    return format_bytes(count) if human else str(count)


def format_time(seconds: float) -> str:
    """Return epoch seconds as a time in UTC, such as "2026-01-31T12:00:00Z"; fractions are cut off."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


def details_record(details: ObjectDetails) -> Record:
    """Return the details of an object as a JSON object: the keys of `object_record` and further ones."""
    return object_record(details.object) | {
        "created": _format_optional_time(details.created),
        "noncurrent_since": _format_optional_time(details.noncurrent_since),
        "components": details.components,
        "temporary_hold": details.temporary_hold,
        "event_based_hold": details.event_based_hold,
        "retention_expires": _format_optional_time(details.retention_expires),
    }


def details_lines(details: ObjectDetails) -> Iterator[str]:
    """Yield lines: the address, and below it each value that is stated and no default."""
    record = details_record(details)
    record.pop("url")
    yield f"{Url(details.object.bucket, details.object.name)}"
    record.pop("type")
    record.pop("metadata")
    for name, value in record.items():
        if value is not None and value is not False:
            yield f"  {name.replace('_', ' '):16}  {printable(str(value))}"
    for key, text in details.object.metadata.items():
        yield f"  {'metadata':16}  {printable(f'{key}: {text}')}"


def _format_optional_time(seconds: float | None) -> str | None:
    return None if seconds is None else format_time(seconds)


def usage_record(usage: Usage) -> Record:
    """Return a usage as a JSON object."""
    return {"url": usage.address, "objects": usage.objects, "bytes": usage.bytes}


def hashes_record(hashes: FileHashes) -> Record:
    """Return the hashes of a file or object as a JSON object; `generation` is null for a file."""
    return {
        "name": hashes.name,
        "size": hashes.size,
        "generation": hashes.generation,
        "crc32c": hashes.crc32c,
        "md5": hashes.md5,
    }


def check_record(comparison: CheckResult) -> Record:
    """Return a comparison as a JSON object."""
    return {
        "name": comparison.name,
        "status": comparison.status.value,
        "left_size": comparison.left_size,
        "right_size": comparison.right_size,
        "note": comparison.note or None,
    }


def check_line(comparison: CheckResult, left: str, right: str) -> str:
    """Return a comparison of two names as a line; `left` and `right` are the folders."""
    name = quote_for_shell(comparison.name)
    match comparison.status:
        case CheckStatus.ONLY_LEFT:
            return f"only in {left}: {name}"
        case CheckStatus.ONLY_RIGHT:
            return f"only in {right}: {name}"
        case CheckStatus.DIFFERENT:
            return f"different: {name}: {comparison.note}"
        case CheckStatus.UNREADABLE:
            return f"not compared: {name}: {printable(comparison.note)}"
        case CheckStatus.SAME:
            return f"same: {name}"
