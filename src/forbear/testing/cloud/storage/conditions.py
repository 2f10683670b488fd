"""Preconditions: what a request demands of the resource before it may act; pure, and knows neither HTTP nor storage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from forbear.testing.cloud.http.errors import ApiError, condition_not_met
from forbear.testing.cloud.storage.fields import query_integer


class Versioned(Protocol):
    """Anything with a generation and a metageneration."""

    @property
    def generation(self) -> int: ...
    @property
    def metageneration(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Conditions:
    """The four numeric preconditions; None means not given, and 0 is a value: generation 0 is "no live object"."""

    generation_match: int | None = None
    generation_not_match: int | None = None
    metageneration_match: int | None = None
    metageneration_not_match: int | None = None

    def check_write(self, current: Versioned | None) -> None:
        """Raise 412 unless every condition holds for `current` (None: there is no live object)."""
        failed = self._failed_match(current) or self._failed_not_match(current)
        if failed:
            raise condition_not_met(failed)

    def check_read(self, current: Versioned) -> None:
        """Raise 412 for a failed Match and 304 for a failed NotMatch: the reader already has this version."""
        if failed := self._failed_match(current):
            raise condition_not_met(failed)
        if self._failed_not_match(current):
            raise ApiError(304, "Not Modified")

    def _failed_match(self, current: Versioned | None) -> str | None:
        generation, metageneration = _numbers(current)
        if self.generation_match is not None and self.generation_match != generation:
            return "ifGenerationMatch"
        if self.metageneration_match is not None and self.metageneration_match != metageneration:
            return "ifMetagenerationMatch"
        return None

    def _failed_not_match(self, current: Versioned | None) -> str | None:
        # Without a live object a NotMatch fails too: the service documents it so, and 0 is then the current generation.
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
    """The conditions of a query: prefix "if" for the target, "ifSource" for the source of a copy."""
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
    """Enforce If-Match (412) and If-None-Match (304) on a read."""
    wanted = headers.get("if-match")
    if wanted is not None and not _lists(wanted, etag):
        raise condition_not_met("If-Match")
    unwanted = headers.get("if-none-match")
    if unwanted is not None and _lists(unwanted, etag):
        raise ApiError(304, "Not Modified", headers=(("ETag", etag),))


def check_match(headers: Mapping[str, str], etag: str) -> None:
    """Enforce If-Match on a write to a resource that exists: 412 unless it lists the current tag or is `*`.

    So says RFC 9110 (§13.1.1), which compares strongly: a weak tag never matches. Whether the real service heeds the
    header on writes is not documented.
    """
    wanted = headers.get("if-match")
    if wanted is None:
        return
    strong = ",".join(tag for tag in wanted.split(",") if not tag.strip().startswith("W/"))
    if not _lists(strong, etag):
        raise condition_not_met("If-Match")


def same_etag(text: str, etag: str) -> bool:
    """Whether two spellings mean one tag: with quotes or without, weak mark or none."""
    return text.strip().removeprefix("W/").strip('"') == etag


def _lists(header: str, etag: str) -> bool:
    return any(part.strip() == "*" or same_etag(part, etag) for part in header.split(","))
