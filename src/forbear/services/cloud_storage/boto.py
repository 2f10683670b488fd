"""gsutil's settings from a user's .boto file, as a policy. It reads files and the environment, and sends nothing."""

import os
from configparser import Error, RawConfigParser
from pathlib import Path

from forbear.policy import Policy
from forbear.services.cloud_storage import profiles

_SECTION = "Boto"
_DEFAULTS = ["/etc/boto.cfg", "~/.boto"]


def gsutil_policy() -> Policy:
    """The policy of gsutil with the user's own `num_retries` and `max_retry_delay` (whole seconds) of section [Boto].

    The file is found as gsutil finds it: the one that BOTO_CONFIG names, or else those in the list BOTO_PATH, or else
    /etc/boto.cfg and ~/.boto; of several the later ones win, and missing ones are passed over. Without settings it is
    the policy `gsutil`. Raises ValueError for a file or a value that cannot be read.
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
    chosen = _DEFAULTS
    if "BOTO_CONFIG" in os.environ:
        chosen = [os.environ["BOTO_CONFIG"]]
    elif "BOTO_PATH" in os.environ:
        chosen = os.environ["BOTO_PATH"].split(os.pathsep)
    return [Path(path).expanduser() for path in chosen if path]


def _read(path: Path) -> RawConfigParser:
    settings = RawConfigParser(strict=False)
    try:
        settings.read(path, encoding="utf-8")
    except (Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: a .boto file must have sections of `key = value` lines: {error}") from None
    return settings


def _whole(path: Path, settings: RawConfigParser, key: str, least: int, otherwise: int | None) -> int | None:
    text = settings.get(_SECTION, key, fallback=None)
    if text is None:
        return otherwise
    plain = text.strip()
    if not (plain.isascii() and plain.isdigit() and len(plain) < 10) or int(plain) < least:
        raise ValueError(f"{path}: [{_SECTION}] {key} must be a whole number, {least} or more, got {text!r}")
    return int(plain)
