"""Make a policy of the settings for retries in the user's .boto files, which gsutil reads."""

import os
from configparser import MissingSectionHeaderError, ParsingError, RawConfigParser
from pathlib import Path

from forbear.policy import Policy
from forbear.services.cloud_storage import profiles

_SECTION = "Boto"
_LONGEST = 1024 * 1024  # characters of a file
_DEFAULTS = ["/etc/boto.cfg", "~/.boto"]


def gsutil_policy() -> Policy:
    """Return gsutil's policy with the user's `num_retries` and `max_retry_delay` (whole seconds) of section [Boto].

    n retries are n + 1 attempts. Files are those that gsutil reads: the one that BOTO_CONFIG names, else those in the
    list BOTO_PATH, else /etc/boto.cfg and ~/.boto. Later files override earlier ones, and missing files are skipped.
    Without settings this is the policy `gsutil`. Raises ValueError for a path, a file or a value that cannot be read.
    The error quotes only the value in question, because such files hold credentials.

    >>> gsutil_policy().limits
    Limits(attempts=24, timeout=None)
    """
    policy = profiles.gsutil()
    retries = maximum = None
    for path in _paths():
        settings = _read(path)
        retries = _whole(path, settings, "num_retries", 0, retries)
        maximum = _whole(path, settings, "max_retry_delay", 1, maximum)
    if retries is not None:
        policy = policy.with_attempts(retries + 1)
    if maximum is not None:
        policy = policy.with_backoff(profiles.gsutil_waits(maximum))
    return policy


def _paths() -> list[Path]:
    for variable in ("BOTO_CONFIG", "BOTO_PATH"):
        if variable in os.environ:
            value = os.environ[variable]
            listed = value.split(os.pathsep) if variable == "BOTO_PATH" else [value]
            return [_read_name(variable, path) for path in listed if path]
    return [path for path in map(_expand, _DEFAULTS) if path]  # a user without a home folder has no file there


def _read_name(variable: str, name: str) -> Path:
    path = _expand(name)
    if path is None:
        raise ValueError(f"{variable} must name a file; a `~` in it, the home of a user that exists; got {name!r}")
    return path


def _expand(name: str) -> Path | None:
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return None


def _read(path: Path) -> RawConfigParser:
    settings = RawConfigParser(strict=False)
    fault = _fault(settings, path)
    if fault:  # raised here, because the original errors contain the file's text
        raise ValueError(f"{path}{fault}")
    return settings


def _fault(settings: RawConfigParser, path: Path) -> str:
    """Read the .boto file `path` into `settings`; return "" or what is wrong with it, without a quotation from it."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_LONGEST + 1)
        if len(text) > _LONGEST:
            return f": a .boto file must have at most {_LONGEST >> 20} MiB"
        settings.read_string(text)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return f": a .boto file must be a file that can be read: {error.strerror}"
    except UnicodeDecodeError:
        return ": a .boto file must be text in UTF-8"
    except MissingSectionHeaderError as error:
        line = error.lineno
    except ParsingError as error:
        line = error.errors[0][0]
    else:
        return ""
    return f", line {line}: a .boto file must have sections of `key = value` lines"


def _whole(path: Path, settings: RawConfigParser, key: str, least: int, otherwise: int | None) -> int | None:
    text = settings.get(_SECTION, key, fallback=None)
    if text is None:
        return otherwise
    plain = text.strip()
    if not (plain.isascii() and plain.isdigit() and len(plain) < 10) or int(plain) < least:
        first, more, _ = text.partition("\n")
        got = f"{first!r} and lines that continue it" if more else repr(first)
        raise ValueError(f"{path}: [{_SECTION}] {key} must be a whole number, {least} or more, got {got}")
    return int(plain)
