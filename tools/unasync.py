"""`python tools/unasync.py` writes sync modules and functions from async ones; with `--check` it only compares.

`PAIRS` lists the modules, and `TWINS` the functions that stand beside each other in one. All follow `RULES`; where a
pair differs in more than words, it lists whole passages.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
    (r"\ba(ask|next|sleep|close|iter|drive|loops|repeat|settle_call)\b", r"\1"),
    (r"\ban async iterator\b", "an iterator"),
    (r"(?:, )?\bawaits=True\b", ""),
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
    rules: Sequence[tuple[str, str]] = RULES

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
        text = _translate(text, self.passages, self.path, self.rules)
        source = f"Generated from {self.source.name}: change that file, then run `make unasync`."
        return _format(f'"""{self.docstring}\n\n{source}\n"""\n{text}', self.target)


class Twin(NamedTuple):
    """An async function or method in a module (a path below `SOURCE`), and the name of the sync one in it.

    A method is written as "Class.method". The sync one keeps its docstring.
    """

    path: str
    source: str
    sync: str
    passages: Mapping[str, str] = {}

    @property
    def target(self) -> Path:
        """The module of both."""
        return SOURCE / self.path

    def translate(self) -> str:
        """Return the text of the module with the sync function made anew; ValueError if a name or passage is lost."""
        text = self.target.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        tree = ast.parse(text)
        source, sync = self._find(tree, self.source), self._find(tree, self.sync)
        begin, body = _without_docstring(lines, source)
        made = _translate(begin + _docstring(lines, sync) + body, self.passages, self.path)
        made = made.replace(f"def {source.name}(", f"def {sync.name}(", 1)
        lines[sync.lineno - 1 : sync.end_lineno] = [made]
        return _format("".join(lines), self.target)

    def _find(self, tree: ast.Module, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
        node: ast.AST = tree
        for part in name.split("."):
            node = next((each for each in ast.iter_child_nodes(node) if getattr(each, "name", None) == part), tree)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            raise ValueError(f"{self.path} has no function {name}, which tools/unasync.py lists")
        return node


def _without_docstring(lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, str]:
    """Return the head of a function, and its body without the docstring."""
    start = node.body[0].lineno - 1
    end = node.body[0].end_lineno if ast.get_docstring(node) is not None else start
    return "".join(lines[node.lineno - 1 : start]), "".join(lines[end : node.end_lineno])


def _docstring(lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the lines of a function's docstring, "" without one."""
    return "" if ast.get_docstring(node) is None else "".join(lines[node.body[0].lineno - 1 : node.body[0].end_lineno])


def _translate(text: str, passages: Mapping[str, str], path: str, rules: Sequence[tuple[str, str]] = RULES) -> str:
    """Return the sync form of the text of an async module; ValueError if it lacks one of the passages."""
    for passage, replacement in passages.items():
        if passage not in text:
            raise ValueError(f"{path} lacks this passage, which tools/unasync.py replaces:\n{passage}")
        text = text.replace(passage, replacement)
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def _format(text: str, path: Path) -> str:
    """Return the text of a module with its imports sorted and its lines broken as ruff does for `path`."""
    ruff = Path(sys.executable).with_name("ruff")
    for command in (["check", "--fix-only", "--quiet", "--select=I"], ["format", "--quiet"]):
        line = [str(ruff), *command, f"--stdin-filename={path}", "-"]
        text = subprocess.run(line, input=text, capture_output=True, text=True, check=True).stdout
    return text


PAIRS = (
    Pair(
        "exchange/arepeat.py",
        "repeat.py",
        "The loop of Google's calls, sync, and the read that settles a conflict of their own making.",
        {
            """            else:
                retried.succeeded()
""": """            else:
                if hasattr(type(value), "__await__"):
                    refuse_awaitable(value, rpc.method)
                retried.succeeded()
""",
            "import RpcReadBack, find_read\n": (
                "import RpcReadBack, find_read\nfrom forbear.run.functions import refuse_awaitable\n"
            ),
            "Await `send()`": "Call `send()`",
            "that is worth a retry.\n": "that is worth a retry. TypeError for a value that should be awaited.\n",
            "Awaitable, Callable": "Callable",
        },
    ),
    Pair(
        "exchange/http/adrive.py",
        "drive.py",
        "The contract of an HTTP adapter, sync, and its loop: a port sends a request, `drive` calls it to the end.",
        {
            "    _is_async = True\n\n": "",
            "[chunk async for chunk in self.chunks(response)]": "self.chunks(response)",
            "An async port": "A sync port",
            "import AsyncIterator, Awaitable, Mapping, MutableMapping\n": "import Iterator, Mapping, MutableMapping\n",
        },
    ),
    Pair(
        "exchange/http/areader.py",
        "reader.py",
        "The body of a response that may break: an iterator that continues it in further responses.",
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
            "http.adrive import": "http.drive import",
            "_Nothing()": "iter(())",
        },
    ),
    Pair(
        "exchange/redis/aloops.py",
        "loops.py",
        "The sync loops of Redis: whatever is sent, what failed on a cluster, transactions and subscriptions.",
        {
            """                limit = None if call is None else call.find_limit()
                if limit is None:
                    value = await attempt(*args, **options)
                else:
                    async with start.runtime.within(limit):
                        value = await attempt(*args, **options)
""": "                value = await attempt(*args, **options)\n",
            ", without a limit; what": "; what",
            """            if isawaitable(value):
                value = await value
""": "",
            ", which asyncio clients await if they can": "",
            "from inspect import isawaitable\n": "",
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
""": """    def execute_command(self, *args: Any, **options: Any) -> Any:
        \"\"\"Send the command `args` as often as the policy allows and return the response.\"\"\"
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
    Pair(
        "clients/httpx.py",
        "httpx2.py",
        "Transports for httpx2 that retry requests, sync and async; `install` puts them into a client that exists.",
        rules=((r"\bhttpx\b", "httpx2"),),
    ),
)

TWINS = (Twin("clients/_botocore/events.py", "AsyncRetries.decide", "Retries.decide"),)


def main(arguments: list[str]) -> int:
    """Write the sync modules and functions, or with `--check` return 1 if one is out of date."""
    check = arguments == ["--check"]
    stale = 0
    for pair in (*PAIRS, *TWINS):
        text = pair.translate()
        if not check:
            pair.target.write_text(text, encoding="utf-8")
        elif pair.target.read_text(encoding="utf-8") != text:
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
