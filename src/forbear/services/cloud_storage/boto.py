"""gsutil's settings from a user's .boto file, as a policy. It reads files and the environment, and sends nothing."""

import os
from configparser import MissingSectionHeaderError, ParsingError, RawConfigParser
from pathlib import Path

from forbear.policy import Policy
from forbear.services.cloud_storage import profiles

_SECTION = "Boto"
_DEFAULTS = ["/etc/boto.cfg", "~/.boto"]


def gsutil_policy() -> Policy:
    """The policy of gsutil with the user's own `num_retries` and `max_retry_delay` (whole seconds) of section [Boto].

    The file is found as gsutil finds it: the one that BOTO_CONFIG names, or else those in the list BOTO_PATH, or else
    /etc/boto.cfg and ~/.boto; of several the later ones win, and missing ones are passed over. Without settings it is
    the policy `gsutil`. Raises ValueError for a path, a file or a value that cannot be read; as such files hold
    credentials, its text quotes nothing of them but the value in question.
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
            return [_named(variable, path) for path in listed if path]
    return [path for path in map(_expanded, _DEFAULTS) if path]  # who has no home has no file there


def _named(variable: str, name: str) -> Path:
    path = _expanded(name)
    if path is None:
        raise ValueError(f"{variable} must name a file; a `~` in it, the home of a user that exists; got {name!r}")
    return path


def _expanded(name: str) -> Path | None:
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return None


def _read(path: Path) -> RawConfigParser:
    settings = RawConfigParser(strict=False)
    fault = _fault(settings, path)
    if fault:  # raised here and not where it was found, for those errors hold what the file does
        raise ValueError(f"{path}{fault}")
    return settings


def _fault(settings: RawConfigParser, path: Path) -> str:
    """Where and why a file cannot be read into `settings`; nothing where it can, or where there is none."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            settings.read_file(lines)
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
