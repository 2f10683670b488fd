"""Making a text fit to be shown: short ones as they come, and long ones that a hostile server sends."""

from functools import partial

from benchmarks.measure import Effort, race, repeated
from benchmarks.table import Table, Target
from forbear.text.redact import redact

_SHORT = {
    "forbear: a status": "503 Service Unavailable",
    "forbear: a URL": "503 POST https://storage.googleapis.com/upload/b/o?uploadType=resumable&upload_id=A: Busy",
}
_HOSTILE = ("a", "x-a-", "eyJaaaaaaaa-", "://", "&a=", "secret ", '"\\', "token='", "(AUTH ", "\x1b[2J")
_MEGABYTE = 1_000_000
_LIMIT = 20_000.0  # microseconds


def redaction(effort: Effort) -> Table:
    """Texts of errors: two usual ones, and a megabyte of each hostile kind."""
    texts = _SHORT | {f"forbear: 1 MB of {piece!r}": piece * (_MEGABYTE // len(piece)) for piece in _HOSTILE}
    samplers = {name: repeated(partial(redact, text)) for name, text in texts.items()}
    targets = tuple(Target(name, _LIMIT) for name in texts if name not in _SHORT)
    return Table("redact", "Redact the text of an error", "us", 1e6, race(samplers, effort), targets=targets)
