"""`python tools/unasync.py` writes the sync loops of the HTTP exchange from the async ones; `--check` only compares."""

import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "packages/forbear/src/forbear/exchange/http"
ASYNC, SYNC = FOLDER / "adrive.py", FOLDER / "drive.py"

DOCSTRING = (
    f"The sync loops of all HTTP adapters, generated from {ASYNC.name}: change that file, then run `make unasync`."
)

ASYNC_ONLY = "# Async only\n"
"""The line after which nothing is translated."""

BLOCKS = {
    """        try:
            await _leave(self._chunks)
        finally:
            await self._close()
""": "        self._close()\n",
    "from collections.abc import AsyncIterator, Awaitable, Callable, Mapping\nfrom contextlib import suppress\n": (
        "from collections.abc import Callable, Iterator, Mapping\n"
    ),
    "from types import AsyncGeneratorType\n": "",
    "import AsyncPort, AsyncSender\n": "import Port, Sender\n",
    "Callable[[], Awaitable[object]]": "Callable[[], object]",
    "-> Awaitable[R]": "-> R",
    "_Nothing()": "iter(())",
}
RULES = (
    (r"await \((.*)\)\n", r"\1\n"),
    (r"\b(?:async|await) ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"__a(iter|next)__", r"__\1__"),
    (r"\ba(ask|next|sleep|close)\b", r"\1"),
    (r"\ban async iterator\b", "an iterator"),
)


def translated(text: str) -> str:
    """Return the sync form of an async module."""
    text = text.partition(ASYNC_ONLY)[0].rstrip("\n") + "\n"
    text = f'"""{DOCSTRING}"""\n' + text.partition('"""\n')[2]
    for block, replacement in BLOCKS.items():
        text = text.replace(block, replacement)
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return text


def main(arguments: list[str]) -> int:
    """Write the sync module, or with `--check` return 1 if it is out of date."""
    text = translated(ASYNC.read_text(encoding="utf-8"))
    if arguments == ["--check"]:
        return int(SYNC.read_text(encoding="utf-8") != text)
    SYNC.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
