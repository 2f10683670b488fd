"""`audit`: read files, apply the rules, leave out what is known. Processes may share the files."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from forbear.cli.kit.processes import can_be_safe, safe_path
from forbear_audit import sources
from forbear_audit.baseline import Baseline
from forbear_audit.findings import SEVERITIES, Finding, Remark, Severity, Unread
from forbear_audit.reading import Reading, read_file
from forbear_audit.settings import AuditSettings, read_settings

_BATCH = 16  # files for a process at a time


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    `findings`, `unread` and `remarks` are sorted by path and line. `files` and `lines` count what was read. `ignored`
    are the findings that comments suppress, `known` those that the baseline lists. `remarks` are about comments that
    suppress nothing.
    """

    findings: tuple[Finding, ...]
    unread: tuple[Unread, ...]
    files: int
    lines: int
    ignored: tuple[Finding, ...] = ()
    known: tuple[Finding, ...] = ()
    remarks: tuple[Remark, ...] = ()

    @property
    def suppressed(self) -> int:
        """The number of findings that comments or the baseline left out."""
        return len(self.ignored) + len(self.known)

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of this severity or a higher one."""
        lowest = SEVERITIES.index(severity)
        return tuple(f for f in self.findings if SEVERITIES.index(f.severity) >= lowest)


def audit(
    paths: Iterable[str | os.PathLike[str]],
    *,
    settings: AuditSettings | None = None,
    jobs: int = 1,
    baseline: Baseline | None = None,
    on_progress: Callable[[int], object] | None = None,
) -> Audit:
    """Return the findings in Python files and notebooks, and in those below folders. No code is imported or run.

    `settings` None reads `[tool.forbear.audit]` of the pyproject.toml nearest to the first path. `jobs` processes share
    the files if there are many; above 1, the caller's main module must be importable. `baseline` takes out the findings
    that it lists. `on_progress` is called with the number of files so far. Files that cannot be read or parsed
    are in `unread`.

    Raises ValueError if `jobs` is below 1 or the settings of pyproject.toml are not valid.
    """
    if jobs < 1:
        raise ValueError(f"`jobs` must be at least 1, got {jobs}")
    names = [os.fspath(path) for path in paths]
    if settings is None:
        first = Path(os.path.realpath(names[0] if names else "."))  # resolve() raises for a circle of links
        settings = read_settings(first if first.is_dir() else first.parent)
    total, files = Reading(), 0
    batches = _batches(_files(names, settings, total))
    start = list(islice(batches, 2))
    several = jobs > 1 and len(start) > 1 and can_be_safe()  # few files cost less than processes
    batches = chain(start, batches)
    for part in _parallel(batches, settings, jobs) if several else (_read_batch(b, settings) for b in batches):
        total.add(part)
        files += part.files + len(part.unread)
        if on_progress is not None:
            on_progress(files)
    return result_of(total, baseline)


def result_of(total: Reading, baseline: Baseline | None) -> Audit:
    """Return the audit that all readings make, without the findings of a baseline."""
    findings = sorted(total.findings)
    new = findings if baseline is None else baseline.new(findings)
    known = [] if baseline is None else sorted(set(findings) - set(new))
    return Audit(
        tuple(new),
        tuple(sorted(total.unread)),
        total.files,
        total.lines,
        tuple(sorted(total.suppressed)),
        tuple(known),
        tuple(sorted(total.remarks)),
    )


def _files(names: list[str], settings: AuditSettings, total: Reading) -> Iterator[Path]:
    for file in sources.files(names, settings):
        if isinstance(file, Unread):
            total.unread.append(file)
        else:
            yield file


def _batches(files: Iterator[Path]) -> Iterator[list[Path]]:
    while batch := list(islice(files, _BATCH)):
        yield batch


def _read_batch(batch: list[Path], settings: AuditSettings) -> Reading:
    total = Reading()
    for path in batch:
        total.add(read_file(path, settings))
    return total


def _pool(processes: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")  # a fork of a program with threads may hang
    with safe_path():  # it starts the process that tracks resources
        return ProcessPoolExecutor(processes, mp_context=context, initializer=_leave_interrupts)


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one: it ends its workers without a traceback of each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _submit(pool: ProcessPoolExecutor, batch: list[Path], settings: AuditSettings) -> Future[Reading]:
    """Submit a batch; a process that starts for it never sees Ctrl-C, not even before `_leave_interrupts`."""
    with safe_path():
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            return pool.submit(_read_batch, batch, settings)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(_read_batch, batch, settings)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _parallel(batches: Iterator[list[Path]], settings: AuditSettings, jobs: int) -> Iterator[Reading]:
    """Yield the readings of the batches, with at most two batches per process in memory.

    If a process dies, what was not finished is read file by file; a file that ends its process again is unread.
    """
    pool = _pool(jobs)
    pending: dict[Future[Reading], list[Path]] = {}
    lost: list[list[Path]] = []

    def submit(batch: list[Path]) -> None:
        try:
            pending[_submit(pool, batch, settings)] = batch
        except BrokenProcessPool:
            lost.append(batch)

    try:
        for batch in islice(batches, 2 * jobs):
            submit(batch)
        while pending:
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                batch = pending.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    lost.append(batch)
                    continue
                yield future.result()
                for more in islice(batches, 0 if lost else 1):
                    submit(more)
        if lost:
            yield from _one_by_one(chain(lost, batches), settings)
    finally:
        _end(pool)


def _one_by_one(batches: Iterable[list[Path]], settings: AuditSettings) -> Iterator[Reading]:
    """Yield the reading of each file, made in a process of its own if the one before died."""
    pool = _pool(1)
    try:
        for path in chain.from_iterable(batches):
            try:
                yield _submit(pool, [path], settings).result()
            except BrokenProcessPool:
                _end(pool)
                pool = _pool(1)
                yield Reading(unread=[Unread(str(path), "the process that read it was killed, perhaps out of memory")])
    finally:
        _end(pool)


def _end(pool: ProcessPoolExecutor) -> None:
    """End a pool and its processes at once: nothing that they still do is needed."""
    processes = [*(pool._processes or {}).values()]  # Python 3.14 has a method for this
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
