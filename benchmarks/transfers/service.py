"""The embedded cloud as the benchmark holds it: a process that is told what to hold, and asked what it saw."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

ROOT = Path(__file__).parents[2]
"""Where processes start, so that they find this package."""

Weather = Literal["fair", "503", "lost"]
"""What some requests meet: nothing, a 503 instead of being carried out, or the loss of the reply after they were."""


class Seen(NamedTuple):
    """CRC32C of what is stored and generations made, both by name; requests, faults, and CPU seconds so far."""

    stored: dict[str, str]
    generations: dict[str, int]
    requests: int
    faults: int
    seconds: float


class Service:
    """The other end of the server's stdin and stdout."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = self._answer().strip()

    def empty(self) -> None:
        """Forget everything, and make the bucket."""
        self._tell("empty")

    def fill(self, folder: Path, prefix: str) -> None:
        """Store all files of a folder."""
        self._tell("fill", folder=str(folder), prefix=prefix)

    def watch(self, weather: Weather, share: float) -> None:
        """Begin to count afresh, with that weather for a share of the requests: the same ones each time."""
        self._tell("watch", weather=weather, share=str(share))

    def seen(self) -> Seen:
        """What there is and what happened since `watch`."""
        return Seen(**self._tell("say"))

    def _tell(self, do: str, **how: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **how}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of the embedded cloud has ended; what it said is above")
        return line


@contextmanager
def service() -> Generator[Service]:
    """A running embedded cloud."""
    command = [sys.executable, "-m", "benchmarks.transfers.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield Service(process)
        assert process.stdin is not None
        process.stdin.close()
