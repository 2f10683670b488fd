"""What a value must look like to count as a condition, by the name it goes by. It knows no operation and no wire.

The rule: only what the server must understand and enforce counts. 0 is a value; an empty text is none.
"""

from collections.abc import Callable

from forbear.http import preconditions

Rule = Callable[[object], bool]


def is_integer(value: object) -> bool:
    """A condition on a version: a decimal integer, 0 ("must not exist") included."""
    if isinstance(value, int):
        return value >= 0 and not isinstance(value, bool)
    return isinstance(value, str) and preconditions.is_integer(value)


def is_positive(value: object) -> bool:
    """The name of a version: an integer above 0."""
    if isinstance(value, int):
        return value > 0 and not isinstance(value, bool)
    return isinstance(value, str) and preconditions.is_positive(value)


def is_uuid(value: object) -> bool:
    """A request id: a UUID other than that of zeros only."""
    return isinstance(value, str) and preconditions.is_uuid(value)


def is_given(value: object) -> bool:
    """A text or bytes that are not empty."""
    return isinstance(value, str | bytes) and len(value) > 0


RULES: dict[str, Rule] = {
    **dict.fromkeys(("ifGenerationMatch", "ifMetagenerationMatch"), is_integer),
    **dict.fromkeys(("x-goog-if-generation-match", "x-goog-if-metageneration-match"), is_integer),
    **dict.fromkeys(("if_generation_match", "if_metageneration_match", "if_source_generation_match"), is_integer),
    **dict.fromkeys(("generation", "VersionId"), is_positive),
    **dict.fromkeys(("requestId", "request_id"), is_uuid),
    **dict.fromkeys(("etag", "backup_id", "upload_id"), is_given),
}
"""The rules by name: a query parameter, a header, the last part of a field's path, an element of XML."""
