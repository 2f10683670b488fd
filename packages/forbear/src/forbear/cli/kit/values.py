"""Parse the values of options: durations, counts and exit codes. Other texts raise click.BadParameter.

Files that options name are read here, too.
"""

import re
import sys
from enum import Enum
from pathlib import Path
from typing import Final, NoReturn

import click

from forbear.cli.kit.output import BadInput
from forbear.text.duration import parse_duration

_RATE = r"(\d{1,12}(?:\.\d{1,6})?)([KMG]?)"
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_CODES = r"\s*(\d{1,3})(?:\s*-\s*(\d{1,3}))?\s*"

MAX_BODY = 64 * 1024 * 1024
"""The most bytes of a file, or of stdin, that is kept in memory as a body or a part of one."""


def file_content(
    name: str, most: int, hint: str, *, failure: str = "cannot read", cure: str = "name another file"
) -> bytes:
    """Return the content of a file, or of stdin for "-"; BadInput if it cannot be read or has more than `most` bytes.

    `hint` says what to do about a large file, `cure` about one that cannot be read; `failure` stands before its name.
    """
    try:
        if name == "-":
            content = b"" if sys.stdin is None else sys.stdin.buffer.read(most + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"{failure} {name}: {reason}", cure) from None
    if len(content) > most:
        raise BadInput(f"{'stdin' if name == '-' else name} is larger than {most >> 20} MiB", hint)
    return content


def body_content(name: str) -> bytes:
    """Return a body from a file, or from stdin for "-"; BadInput if it cannot be read or is larger than `MAX_BODY`."""
    hint, cure = "send a large file with curl's -X METHOD -T FILE", "name a file after @, or leave the @ out"
    return file_content(name, MAX_BODY, hint, failure="cannot read the body from", cure=cure)


class NoLimit(Enum):
    """The value of an option set to "none"; Python's None means that the option was not used."""

    NO_LIMIT = "none"


NO_LIMIT: Final = NoLimit.NO_LIMIT


def duration(text: str) -> float:
    """Parse a duration of more than zero, plain (`90`, `0.5`) or with units (`1m30s`, `500ms`); return seconds."""
    seconds = parse_duration(text, plain=True)
    return seconds or _refuse("a duration must be more than zero, such as 90, 1m30s or 500ms", text)


def duration_from_zero(text: str) -> float:
    """Parse a duration of zero or more, such as `90` or `1m30s`; return seconds."""
    seconds = parse_duration(text, plain=True)
    if seconds is None:
        _refuse("a duration must be zero or more, such as 90, 1m30s or 500ms", text)
    return seconds


def duration_or_none(text: str) -> float | NoLimit:
    """Parse a duration of more than zero and return seconds, or NO_LIMIT for the text `none`."""
    if text.strip().lower() == NO_LIMIT.value:
        return NO_LIMIT
    seconds = parse_duration(text, plain=True)
    return seconds or _refuse("a duration must be more than zero, such as 90 or 1m30s, or none for no limit", text)


def count_or_none(text: str) -> int | NoLimit:
    """Parse a whole number from 1, of at most 12 digits, and return it, or NO_LIMIT for the text `none`."""
    text = text.strip().lower()
    if text == NO_LIMIT.value:
        return NO_LIMIT
    if not re.fullmatch(r"0*[1-9]\d{0,11}", text, re.ASCII):
        _refuse("a count must be a whole number from 1, or none for no limit", text)
    return int(text)


def rate(text: str) -> float:
    """Parse a number of bytes per second, plain or with K, M or G (times 1024), such as `500K` or `1.5M`."""
    match = re.fullmatch(_RATE, text.strip(), re.ASCII | re.IGNORECASE)
    count = 0.0 if match is None else float(match[1]) * _UNITS[match[2].upper()]
    return count or _refuse("a rate must be a number of bytes per second, such as 500K or 1.5M", text)


def exit_codes(text: str) -> frozenset[int]:
    """Parse exit codes from 1 to 255 and ranges of them, such as `1,75,100-110`; return all of them."""
    codes: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(_CODES, part, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last <= 255:
            _refuse("exit codes must be from 1 to 255, such as 1,75,100-110", text)
        codes.update(range(first, last + 1))
    return frozenset(codes)


def pattern(text: str) -> str:
    """Return a regular expression of Python unchanged."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        _refuse(f"a pattern must be a regular expression of Python ({error})", text)
    return text


def _refuse(rule: str, text: str) -> NoReturn:
    raise click.BadParameter(f"{rule}, got {text!r}")
