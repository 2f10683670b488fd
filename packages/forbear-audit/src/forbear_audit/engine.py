"""`audit`: read files, apply the rules, leave out what is known. Processes may share the files."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from forbear.cli.kit.links import real
from forbear.cli.kit.processes import can_be_safe, end, submit_to, worker_pool
from forbear_audit.findings import SEVERITIES, Finding, Remark, Severity, Unread
from forbear_audit.rules.baseline import Baseline
from forbear_audit.rules.file_findings import Reading, read_file
from forbear_audit.settings import AuditSettings, read_settings

_SKIPPED = frozenset({
    "__pycache__", "node_modules", "venv", "site-packages", "build", "dist", "__pypackages__",
})  # fmt: skip
_SUFFIXES = (".py", ".pyw", ".ipynb")
_BATCH = 16  # files for a process at a time


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    `findings`, `unread` and `remarks` are sorted by path and line. `files` and `lines` count what was read. `ignored`
    are the findings that comments suppress, `known` those that the baseline lists. `remarks` are about comments that
    suppress nothing. Example: see `audit`.
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

    >>> from pathlib import Path
    >>> size = Path("orders.py").write_text('''
    ... import tenacity, requests
    ... @tenacity.retry
    ... def order(url):
    ...     return requests.post(url)
    ... ''')
    >>> [(finding.line, finding.rule) for finding in audit(["orders.py"], settings=AuditSettings()).findings]
    [(3, 'CATCH-ALL'), (3, 'FIXED'), (3, 'UNBOUNDED'), (5, 'UNSAFE')]
    """
    if jobs < 1:
        raise ValueError(f"`jobs` must be at least 1, got {jobs}")
    names = [os.fspath(path) for path in paths]
    if settings is None:
        first = real(Path(names[0] if names else "."))
        settings = read_settings(first if first.is_dir() else first.parent)
    total, files = Reading(), 0
    found = _files(names, settings, total)
    batches = iter(lambda: [*islice(found, _BATCH)], list[Path]())
    start = list(islice(batches, 2))
    several = jobs > 1 and len(start) > 1 and can_be_safe()  # few files cost less than processes
    every = chain(start, batches)
    for part in _parallel(every, settings, jobs) if several else (_read_batch(b, settings) for b in every):
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


def _files(paths: Iterable[str], settings: AuditSettings, total: Reading) -> Iterator[Path]:
    """Yield the files to read, each once: those named, and the Python files and notebooks below the folders named.

    Hidden folders, environments and build folders below a named folder are left out, and so is what the settings
    exclude, also among the files named. Links to folders are not followed, so a circle of links ends. What cannot be
    read is added to `total`, and so is a named path that does not exist.
    """
    seen: set[int] = set()
    for name in paths:
        path = Path(name)
        try:
            candidates: Iterable[Path | Unread] = _list_below(path, settings) if path.is_dir() else [path]
            if settings.excludes(path) and not path.is_dir():
                candidates = []
            elif not os.path.lexists(path):
                candidates = [Unread(str(path), "there is no such file or folder")]
        except OSError as error:
            candidates = [Unread(str(path), error.strerror or str(error))]
        for file in candidates:
            # A hash for each file, not its name: there may be millions of them.
            key = hash(os.path.realpath(file) if isinstance(file, Path) else file.path)
            if key not in seen:
                seen.add(key)
                if isinstance(file, Path):
                    yield file
                else:
                    total.unread.append(file)


def _list_below(folder: Path, settings: AuditSettings) -> Iterator[Path | Unread]:
    errors: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=errors.append):
        here = Path(place)
        folders[:] = sorted(f for f in folders if f not in _SKIPPED and f[0] != "." and not settings.excludes(here / f))
        for name in sorted(names):
            file = here / name
            if name.endswith(_SUFFIXES) and not settings.excludes(file):
                yield file
    for error in errors:
        yield Unread(str(error.filename), error.strerror or str(error))


def _read_batch(batch: list[Path], settings: AuditSettings) -> Reading:
    total = Reading()
    for path in batch:
        total.add(read_file(path, settings.counts))
    return total


def _parallel(batches: Iterator[list[Path]], settings: AuditSettings, jobs: int) -> Iterator[Reading]:
    """Yield the readings of the batches, with at most two batches per process in memory.

    If a process dies, what was not finished is read file by file; a file that ends its process again is unread.
    """
    pool = worker_pool(jobs, "spawn")  # a fork of a program with threads may hang
    pending: dict[Future[Reading], list[Path]] = {}
    lost: list[list[Path]] = []

    def submit(batch: list[Path]) -> None:
        try:
            pending[submit_to(pool, _read_batch, batch, settings)] = batch
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
            yield from _read_one_by_one(chain(lost, batches), settings)
    finally:
        end(pool)


def _read_one_by_one(batches: Iterable[list[Path]], settings: AuditSettings) -> Iterator[Reading]:
    """Yield the reading of each file, made in a process of its own if the one before died."""
    pool = worker_pool(1, "spawn")
    try:
        for path in chain.from_iterable(batches):
            try:
                yield submit_to(pool, _read_batch, [path], settings).result()
            except BrokenProcessPool:
                end(pool)
                pool = worker_pool(1, "spawn")
                yield Reading(unread=[Unread(str(path), "the process that read it was killed, perhaps out of memory")])
    finally:
        end(pool)
