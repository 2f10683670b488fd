"""What a worker is asked to transfer, and what it tells afterwards; both cross to other processes as JSON."""

from pathlib import Path
from typing import NamedTuple

BUCKET = "b"
"""The bucket that all use."""


class Task(NamedTuple):
    """Transfer `names` from `folder` to objects below `prefix`, or back (`up` is False): one name is one large file."""

    url: str
    prefix: str
    folder: str
    names: list[str]
    up: bool

    @property
    def large(self) -> bool:
        """Whether it is the large file: some clients have other calls for those."""
        return len(self.names) == 1

    def file(self, name: str) -> Path:
        """Where the file lies, or is to lie."""
        return Path(self.folder, name)

    def object(self, name: str) -> str:
        """The name of the object."""
        return self.prefix + name


class Outcome(NamedTuple):
    """Seconds and CPU seconds net of the start, peak memory above the idle process, and what was said of failures.

    Memory is in bytes, and that of the largest process if there are several. `failed` counts files; None where the
    client only says that there were some.
    """

    seconds: float
    cpu: float = 0.0
    memory: int = 0
    failed: int | None = 0
    error: str = ""
