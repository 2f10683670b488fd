"""The progress of an audit on a terminal: one line with a spinner, the number of files and the time."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def progress_line() -> Generator[Callable[[int], object] | None]:
    """Show how many files were read while the context lasts, on stderr.

    The context gets the function to call with the number of files, None if stderr is no terminal or rich is missing.
    """
    if not sys.stderr.isatty():
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    except ModuleNotFoundError:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed} files read"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("", total=None)
        yield lambda files: progress.update(task, completed=files)
