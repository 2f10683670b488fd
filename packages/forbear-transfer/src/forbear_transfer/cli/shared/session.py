"""The run of a command over an open Storage that is no transfer: connections, signals, errors and exit codes."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import click

from forbear.adapters import current_runtime
from forbear.cli.kit.output import tell
from forbear_transfer.cli.shared.options import TransferOptions
from forbear_transfer.cli.shared.problems import check_stdout, convert_errors
from forbear_transfer.cli.shared.reporter import Reporter
from forbear_transfer.cli.shared.run import run_work, settings_of
from forbear_transfer.cli.shared.statistics import Statistics
from forbear_transfer.progress import Progress, tracked
from forbear_transfer.storage.client import Storage

_T = TypeVar("_T")


def run_command(
    ctx: click.Context,
    options: TransferOptions,
    work: Callable[[Storage], Awaitable[_T]],
    *,
    check: Callable[[], object] | None = None,
    prints: bool = True,
) -> _T:
    """Call `work` with an open Storage and return its result; exit with 128 + n after signal n.

    BadInput if the command `prints` and stdout is closed. `check` raises ValueError for wrong arguments, before
    credentials are looked for and a connection is made.

    A ValueError becomes BadInput, an error of the transfer a Problem. If it is about stdout, whose reader has closed
    the pipe, exit with 1 and print nothing. On stderr, a line says why nothing happens for long, unless `quiet`.
    """
    if prints:
        check_stdout()
    with convert_errors():
        if check is not None:
            check()
    settings = settings_of(options, options["endpoint"])
    reporter = Reporter(Statistics(current_runtime().monotonic), as_json=False, quiet=options["quiet"])
    reporter.reports_standstill = not options["quiet"]
    cancelled = [signal.SIGINT]
    try:
        with convert_errors(), tracked(Progress(reporter, warnings=set())):
            result = asyncio.run(run_work(settings, work, cancelled))
            if prints:
                sys.stdout.flush()
            return result
    except (KeyboardInterrupt, asyncio.CancelledError):
        tell("interrupted")
        ctx.exit(128 + cancelled[-1])


class LinePrinter:
    """Prints lines to stdout, and flushes them whenever the event loop waits: once for each page of a listing."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._will_flush = False

    def __call__(self, line: str) -> None:
        """Print a line. Raise OSError if stdout cannot be written."""
        sys.stdout.write(f"{line}\n")
        if not self._will_flush:
            self._will_flush = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._will_flush = False
        with suppress(OSError):  # the bytes stay in the buffer, so the next write or the last flush raises it again
            sys.stdout.flush()
