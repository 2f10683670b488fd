"""`python tools/unasync.py` writes sync modules from async ones; with `--check` it only compares.

`PAIRS` lists them. All follow `RULES`; where a pair differs in more than words, it lists whole passages.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "packages/forbear/src/forbear"

ASYNC_ONLY = "# Async only\n"
"""The line after which nothing is translated."""

RULES = (
    (r"await \((.*)\)\n", r"\1\n"),
    (r"\b(?:async|await) ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"Awaitable\[(\w+)\]", r"\1"),
    (r"\b(Callable, Awaitable|Awaitable, Callable)\b", "Callable"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"__a(iter|next|enter|exit)__", r"__\1__"),
    (r"\ba(ask|next|sleep|close|iter|drive|loops)\b", r"\1"),
    (r"\ban async iterator\b", "an iterator"),
    (r", awaits=True\b", ""),
    (r"\.asyncio\b", ""),
    (r" *# a cancellation, too$", ""),
    (r"\b([Aa])n asyncio\b", r"\1 sync"),
    (r"\bAsyncio\b", "Sync"),
    (r"\basyncio clients\b", "sync clients"),
)


class Pair(NamedTuple):
    """An async module (a path below `SOURCE`), the name of the sync one beside it, and passages that differ."""

    path: str
    sync: str
    docstring: str
    passages: Mapping[str, str] = {}

    @property
    def source(self) -> Path:
        """The async module."""
        return SOURCE / self.path

    @property
    def target(self) -> Path:
        """The sync module."""
        return self.source.with_name(self.sync)

    def translate(self) -> str:
        """Return the sync form of the async module, formatted; ValueError if it lacks one of the passages."""
        text = self.source.read_text(encoding="utf-8").partition(ASYNC_ONLY)[0].partition('"""\n')[2]
        for passage, replacement in self.passages.items():
            if passage not in text:
                raise ValueError(f"{self.path} lacks this passage, which tools/unasync.py replaces:\n{passage}")
            text = text.replace(passage, replacement)
        for pattern, replacement in RULES:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        source = f"Generated from {self.source.name}: change that file, then run `make unasync`."
        return _format(f'"""{self.docstring}\n\n{source}\n"""\n{text}', self.target)


def _format(text: str, path: Path) -> str:
    """Return the text of a module with its imports sorted and its lines broken as ruff does for `path`."""
    ruff = Path(sys.executable).with_name("ruff")
    for command in (["check", "--fix-only", "--quiet", "--select=I"], ["format", "--quiet"]):
        line = [str(ruff), *command, f"--stdin-filename={path}", "-"]
        text = subprocess.run(line, input=text, capture_output=True, text=True, check=True).stdout
    return text


PAIRS = (
    Pair(
        "exchange/http/adrive.py",
        "drive.py",
        "The sync loops of all HTTP adapters.",
        {
            """        try:
            await _leave(self._chunks)
        finally:
            await self._close()
""": "        self._close()\n",
            "import AsyncIterator, Awaitable, Callable, Mapping\nfrom contextlib import suppress\n": (
                "import Callable, Iterator, Mapping\n"
            ),
            "from types import AsyncGeneratorType\n": "",
            "-> Awaitable[R]": "-> R",
            "_Nothing()": "iter(())",
        },
    ),
    Pair(
        "exchange/redis/aloops.py",
        "loops.py",
        "The sync loops of Redis: commands, pipelines, steps under WATCH, whole transactions, clusters, subscriptions.",
        {
            """    blocking_time: Callable[[S], float | None] = lambda _: 0.0,
""": "",
            """

    An attempt may take the policy's attempt timeout, plus the seconds for which the server may block the command by
    `blocking_time(sent)`; None for no limit. `finish` has no limit.
""": "\n",
            """                limit = settings.limit if run is None else run.attempt_limit()
                blocked = None if limit is None else blocking_time(sent)
                if limit is None or blocked is None:
                    value = await attempt(*args, **options)
                else:
                    async with runtime.within(limit + blocked):
                        value = await attempt(*args, **options)
""": "                value = await attempt(*args, **options)\n",
            """            async with step.time_limit():
                value = await attempt(*args, **options)
""": "            value = await attempt(*args, **options)\n",
            """                if isawaitable(value):
                    value = await value
""": "",
            ", which asyncio clients await if they can": "",
            "from inspect import isawaitable\n": "",
            ", blocking_time=blocking.blocking_time": "",
            "from forbear.exchange.redis import blocking\n": "",
        },
    ),
    Pair(
        "clients/_redis/aio.py",
        "client.py",
        "The sync clients of both libraries, their pipelines and subscriptions, as mixins; also those for clusters.",
        {
            """    # A plain function: another coroutine around that of the loop would cost time.
    def execute_command(self, *args: Any, **options: Any) -> Coroutine[Any, Any, Any]:
        \"\"\"Return a coroutine that sends the command `args` as often as the policy allows, and returns the response.

        An attempt may take the policy's attempt timeout plus the time for which a blocking command may block.
        \"\"\"
        send, block = super().execute_command, blocking.blocking_time
        return aloops.send(self.settings, describe_command, args, send, args, options, blocking_time=block)
""": """    def execute_command(self, *args: Any, **options: Any) -> Any:
        \"\"\"Send the command `args` as often as the policy allows and return the response.\"\"\"
        return aloops.send(self.settings, describe_command, args, super().execute_command, args, options)
""",
            """            with blocking.async_longer_timeout(conn, args):
                return await super()._send_command_parse_response(conn, command_name, *args, **options)
""": """            conn.send_command(*args, **options)  # client-side caching sets the timeout anew here
            with blocking.longer_timeout(conn, args):
                return cast(Any, self).parse_response(conn, command_name, **options)
""",
            "cast(Any, self).is_transaction": "cast(Any, self).transaction",
            "    _interrupts = True\n": "    _interrupts = False\n",
            "Awaitable, Callable, Coroutine": "Callable",
            "an async `transaction()`": "a `transaction()`",
        },
    ),
    Pair(
        "clients/_httpx/aio.py",
        "sync.py",
        "The sync ports and transports of httpx and httpx2; the two libraries differ in their names only.",
        {
            "handle_async_request": "handle_request",
            "[chunk async for chunk in response.stream]": "response.stream",
            "The async transport:": "The sync transport:",
            "an async client:": "a sync client:",
            "import AsyncIterator, Awaitable, Mapping\n": "import Iterator, Mapping\n",
        },
    ),
    Pair(
        "clients/redis/atransactions.py",
        "transactions.py",
        "Transactions on a cluster: the objects by which redis-py's pipelines send MULTI to EXEC to one node.",
    ),
)


def main(arguments: list[str]) -> int:
    """Write the sync modules, or with `--check` return 1 if one is out of date."""
    check = arguments == ["--check"]
    stale = 0
    for pair in PAIRS:
        text = pair.translate()
        if not check:
            pair.target.write_text(text, encoding="utf-8")
        elif pair.target.read_text(encoding="utf-8") != text:
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
