"""`audit`: read files, apply the rules, leave out what is suppressed. Processes may share the files."""

import ast
import multiprocessing
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from forbear.audit import sources
from forbear.audit.baseline import Baseline
from forbear.audit.checks import check
from forbear.audit.findings import SEVERITIES, Finding, Severity, Unread
from forbear.audit.modules import Module
from forbear.audit.rules import RULES
from forbear.audit.settings import AuditSettings, read_settings

_RELEVANT = re.compile(r"except|retr|backoff|stamina|opnieuw|sleep|acks_late", re.IGNORECASE)
_IGNORE = re.compile(r"#\s*forbear:\s*ignore(-file)?(?:\[([\w\s,-]*)\])?")
_LINES = re.compile(r"\r\n|\r|\n")  # as Python counts lines; str.splitlines() knows more
_BATCH = 16  # files for a process at a time


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    `findings` and `unread` are sorted by path and line. `files` and `lines` count what was read, `suppressed` the
    findings that comments or the baseline left out.
    """

    findings: tuple[Finding, ...]
    unread: tuple[Unread, ...]
    files: int
    lines: int
    suppressed: int

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of this severity or a higher one."""
        lowest = SEVERITIES.index(severity)
        return tuple(f for f in self.findings if SEVERITIES.index(f.severity) >= lowest)


@dataclass
class _Part:
    """The contribution of a few files to an audit."""

    findings: list[Finding]
    unread: list[Unread]
    files: int = 0
    lines: int = 0
    suppressed: int = 0


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
    the files; above 1, the caller's main module must be importable. `baseline` leaves out the findings that it lists.
    `on_progress` is called with the number of files read so far. Files that cannot be read or parsed are in `unread`.

    Raises ValueError if `jobs` is below 1 or the settings of pyproject.toml are not valid.
    """
    if jobs < 1:
        raise ValueError(f"`jobs` must be at least 1, got {jobs}")
    names = [os.fspath(path) for path in paths]
    if settings is None:
        first = Path(names[0] if names else ".").resolve()
        settings = read_settings(first if first.is_dir() else first.parent)
    total = _Part([], [])
    batches = _batches(_files(names, settings, total))
    chosen = settings
    parts = (_read_batch(b, chosen) for b in batches) if jobs == 1 else _parallel(batches, chosen, jobs)
    for part in parts:
        total.findings += part.findings
        total.unread += part.unread
        total.files += part.files
        total.lines += part.lines
        total.suppressed += part.suppressed
        if on_progress is not None:
            on_progress(total.files)
    findings = sorted(total.findings)
    if baseline is not None:
        kept = baseline.new(findings)
        total.suppressed += len(findings) - len(kept)
        findings = kept
    return Audit(tuple(findings), tuple(sorted(total.unread)), total.files, total.lines, total.suppressed)


def _files(names: list[str], settings: AuditSettings, total: _Part) -> Iterator[Path]:
    for file in sources.files(names, settings):
        if isinstance(file, Unread):
            total.unread.append(file)
        else:
            yield file


def _batches(files: Iterator[Path]) -> Iterator[list[Path]]:
    while batch := list(islice(files, _BATCH)):
        yield batch


def _parallel(batches: Iterator[list[Path]], settings: AuditSettings, jobs: int) -> Iterator[_Part]:
    """Yield the parts of the batches, with at most two batches per process in memory."""
    context = multiprocessing.get_context("spawn")  # a fork of a program with threads may hang
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        pending: set[Future[_Part]] = {pool.submit(_read_batch, batch, settings) for batch in islice(batches, 2 * jobs)}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            pending |= {pool.submit(_read_batch, batch, settings) for batch in islice(batches, len(done))}


def _read_batch(batch: list[Path], settings: AuditSettings) -> _Part:
    part = _Part([], [])
    for path in batch:
        texts = sources.read(path)
        if isinstance(texts, Unread):
            part.unread.append(texts)
            continue
        part.files += 1
        try:
            _read_texts(path, texts, settings, part)
        except RecursionError:
            part.unread.append(Unread(str(path), "its code is nested too deeply"))
    return part


def _read_texts(path: Path, texts: list[tuple[int, str]], settings: AuditSettings, part: _Part) -> None:
    """Apply the rules to a file; the cells of a notebook are one module, without those that do not parse."""
    starts: list[tuple[int, int]] = []  # the first line of each cell, and its number
    lines: list[str] = []
    tree = ast.Module(body=[], type_ignores=[])
    for cell, text in texts:
        content = _LINES.split(text)
        parsed = _parse(text)
        if isinstance(parsed, str):
            part.unread.append(Unread(str(path), f"cell {cell}: {parsed}" if cell else parsed))
            continue
        tree = parsed
        starts.append((len(lines), cell))
        lines += content
    part.lines += len(lines)
    whole = "\n".join(lines)
    if not _RELEVANT.search(whole):
        return
    if len(texts) > 1:
        joined = _parse(whole)
        tree = joined if isinstance(joined, ast.Module) else tree
    ignored = _file_ignores(lines)
    for rule, node, message, library in _unique(check(Module(tree, path))):
        if not settings.counts(rule, path):
            continue
        finding = _finding(path, lines, starts, rule, node, message, library)
        if rule in ignored or _is_ignored(lines, node, rule):
            part.suppressed += 1
        else:
            part.findings.append(finding)


def _parse(text: str) -> ast.Module | str:
    """Return the tree of a text, or why it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the code that is read
            return ast.parse(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, MemoryError):
        return "it cannot be parsed"


def _unique(hits: Iterable[tuple[str, ast.AST, str, str]]) -> Iterator[tuple[str, Any, str, str]]:
    """Yield each hit once: two retries around the same call say the same of it."""
    seen: Counter[tuple[str, int, int]] = Counter()
    for rule, node, message, library in hits:
        key = (rule, getattr(node, "lineno", 1), getattr(node, "col_offset", 0))
        if not seen[key]:
            yield rule, node, message, library
        seen[key] += 1


def _finding(
    path: Path, lines: list[str], starts: list[tuple[int, int]], rule: str, node: Any, message: str, library: str
) -> Finding:
    line: int = node.lineno
    end_line: int = node.end_lineno or line
    first, cell = max((s for s in starts if s[0] < line), default=(0, 0))
    text = lines[line - 1] if line <= len(lines) else ""
    last = lines[end_line - 1] if end_line <= len(lines) else ""
    return Finding(
        str(path),
        cell,
        line - first,
        _characters(text, node.col_offset) + 1,
        rule,
        end_line - first,
        _characters(last, node.end_col_offset or 0) + 1,
        RULES[rule].severity_for(library),
        message,
        RULES[rule].cure_for(library),
        library,
        text,
    )


def _characters(line: str, octets: int) -> int:
    """Return the number of characters in the first bytes of a line: ast counts in bytes of UTF-8."""
    return len(line.encode("utf-8", "surrogatepass")[:octets].decode("utf-8", "replace"))


def _file_ignores(lines: list[str]) -> frozenset[str]:
    rules: set[str] = set()
    for line in lines:
        match = _IGNORE.search(line) if "forbear:" in line else None
        if match and match[1]:
            rules |= _listed(match[2])
    return frozenset(rules)


def _listed(text: str | None) -> set[str]:
    return set(RULES) if text is None else {rule.strip() for rule in text.split(",")}


def _is_ignored(lines: list[str], node: Any, rule: str) -> bool:
    """Return whether a comment at the code, or alone in the line above it, ignores a rule."""
    last = node.end_lineno if isinstance(node, ast.expr) and node.end_lineno else node.lineno
    above = lines[node.lineno - 2 : node.lineno - 1] if node.lineno > 1 else []
    for line in [line for line in above if line.lstrip().startswith("#")] + lines[node.lineno - 1 : last]:
        match = _IGNORE.search(line) if "forbear:" in line else None
        if match and not match[1] and rule in _listed(match[2]):
            return True
    return False
