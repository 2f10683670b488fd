"""Preconditions: check the generation, metageneration and entity tag that a request demands of a resource."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from forbear_cloud.http.messages import ApiError, condition_not_met
from forbear_cloud.storage.fields import query_integer


class Versioned(Protocol):
    """Anything with a generation and a metageneration."""

    @property
    def generation(self) -> int: ...
    @property
    def metageneration(self) -> int: ...


class Tagged(Versioned, Protocol):
    """Anything versioned that also has an entity tag."""

    @property
    def etag(self) -> str: ...


class Conditions(NamedTuple):
    """The four numeric preconditions of a request; None means absent.

    0 is a value: `generation_match=0` demands that no live object exists.
    """

    generation_match: int | None = None
    generation_not_match: int | None = None
    metageneration_match: int | None = None
    metageneration_not_match: int | None = None

    def check_write(self, current: Versioned | None) -> None:
        """Raise 412 unless `current` meets every condition.

        None means that there is no live object: it counts as generation 0 and metageneration 0, and fails every
        NotMatch.
        """
        failed = self._fails_match(current) or self._fails_not_match(current)
        if failed:
            raise condition_not_met(failed)

    def check_read(self, current: Versioned) -> None:
        """Raise 412 if a Match fails; otherwise raise 304 if a NotMatch fails, because the reader has this version."""
        if failed := self._fails_match(current):
            raise condition_not_met(failed)
        if self._fails_not_match(current):
            raise ApiError(304, "Not Modified")

    def _fails_match(self, current: Versioned | None) -> str | None:
        generation, metageneration = _numbers(current)
        if self.generation_match is not None and self.generation_match != generation:
            return "ifGenerationMatch"
        if self.metageneration_match is not None and self.metageneration_match != metageneration:
            return "ifMetagenerationMatch"
        return None

    def _fails_not_match(self, current: Versioned | None) -> str | None:
        # As documented, a NotMatch fails without a live object, whose generation counts as 0.
        generation, metageneration = _numbers(current)
        if self.generation_not_match is not None and (current is None or self.generation_not_match == generation):
            return "ifGenerationNotMatch"
        if self.metageneration_not_match is not None and (
            current is None or self.metageneration_not_match == metageneration
        ):
            return "ifMetagenerationNotMatch"
        return None


def _numbers(current: Versioned | None) -> tuple[int, int]:
    return (0, 0) if current is None else (current.generation, current.metageneration)


def read_conditions(query: Mapping[str, str], prefix: str = "if") -> Conditions:
    """Return the numeric preconditions in a query, None for each that is absent; raise 400 if one is not an integer.

    `prefix` begins their names: "if" for those of the resource itself, "ifSource" for those of the source of a copy.
    """
    if not any(name.startswith("if") for name in query):
        return _NONE
    return Conditions(
        query_integer(query, prefix + "GenerationMatch"),
        query_integer(query, prefix + "GenerationNotMatch"),
        query_integer(query, prefix + "MetagenerationMatch"),
        query_integer(query, prefix + "MetagenerationNotMatch"),
    )


_NONE = Conditions()


def check_etag(headers: Mapping[str, str], etag: str) -> None:
    """Check the entity tag `etag` of a resource for a read, against the headers If-Match and If-None-Match.

    Raise 412 if If-Match is present, but neither lists the tag nor is `*`. Raise 304 if If-None-Match lists it or is
    `*`.
    """
    wanted = headers.get("if-match")
    if wanted is not None and not _lists(wanted, etag):
        raise condition_not_met("If-Match")
    unwanted = headers.get("if-none-match")
    if unwanted is not None and _lists(unwanted, etag):
        raise ApiError(304, "Not Modified", headers=(("ETag", etag),))


def check_match(headers: Mapping[str, str], etag: str) -> None:
    """Check the entity tag for a write: raise 412 unless If-Match is absent, is `*` or lists the current tag.

    RFC 9110, section 13.1.1, demands a strong comparison: a weak tag never matches. It is not documented whether the
    real service checks the header on writes.
    """
    wanted = headers.get("if-match")
    if wanted is None:
        return
    strong = ",".join(tag for tag in wanted.split(",") if not tag.strip().startswith("W/"))
    if not _lists(strong, etag):
        raise condition_not_met("If-Match")


def is_same_etag(text: str, etag: str) -> bool:
    """Return whether `text` is the tag `etag`, with or without quotes and the weak mark `W/`."""
    return text.strip().removeprefix("W/").strip('"') == etag


def _lists(header: str, etag: str) -> bool:
    return any(part.strip() == "*" or is_same_etag(part, etag) for part in header.split(","))
