"""`read_file`: the findings in one file, those that its comments suppress, and why it could not be read."""

import ast
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forbear_audit.findings import Finding, Remark, Unread
from forbear_audit.reading import packages, sources
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import DECORATORS, IMPORTED_NAMES, MAY_HAVE_RETRIES
from forbear_audit.rules.catalog import RULES
from forbear_audit.rules.checks import check
from forbear_audit.rules.comments import Comments, read_comments

Counts = Callable[[str, Path], bool]
"""Says if a rule counts in a file."""

_LONGEST = 5_000  # characters of a line with a finding: each finding has the whole line


@dataclass
class Reading:
    """The result of reading one or more files: findings, suppressed ones, files that were not read, remarks, counts."""

    findings: list[Finding] = field(default_factory=list[Finding])
    suppressed: list[Finding] = field(default_factory=list[Finding])
    unread: list[Unread] = field(default_factory=list[Unread])
    remarks: list[Remark] = field(default_factory=list[Remark])
    files: int = 0
    lines: int = 0

    def add(self, other: "Reading") -> None:
        """Add what other files gave."""
        self.findings += other.findings
        self.suppressed += other.suppressed
        self.unread += other.unread
        self.remarks += other.remarks
        self.files += other.files
        self.lines += other.lines


def read_file(path: Path, counts: Counts) -> Reading:
    """Return what a file gives. It never raises an error about the contents of the file."""
    texts = sources.read(path)
    return Reading(unread=[texts]) if isinstance(texts, Unread) else read_texts(path, texts, counts)


def read_texts(path: Path, texts: list[tuple[int, str]], counts: Counts) -> Reading:
    """Return what the texts of a file give; the cells of a notebook are one module, without those that do not parse."""
    result = Reading(files=1)
    try:
        _read(path, texts, counts, result)
    except Exception as error:  # one odd file must not end the audit of all others
        packages.forget()
        if isinstance(error, (RecursionError, MemoryError)):
            result.files = 0
        result.unread.append(Unread(str(path), _explain(error)))
    return result


def _explain(error: Exception) -> str:
    """Return why a file could not be read."""
    if isinstance(error, RecursionError):
        return "its code is nested too deeply"
    if isinstance(error, MemoryError):
        return "its code needs too much memory"
    if isinstance(error, ValueError) and "integer string conversion" in str(error):
        return "it has a number with too many digits"
    return f"forbear could not analyse it, please report this: {type(error).__name__}: {error}"


def _read(path: Path, texts: list[tuple[int, str]], counts: Counts, result: Reading) -> None:
    starts: list[tuple[int, int]] = []  # the first line of each cell, and its number
    lines: list[str] = []
    tree = ast.Module(body=[], type_ignores=[])
    for cell, text in texts:
        parsed = sources.parse(text)
        if isinstance(parsed, str):
            result.unread.append(Unread(str(path), f"cell {cell}: {parsed}" if cell else parsed))
            continue
        tree = parsed
        starts.append((len(lines), cell))
        lines += sources.LINE_ENDS.split(text)
    if texts and not starts:
        result.files = 0
    result.lines += len(lines)
    whole = "\n".join(lines)
    if not MAY_HAVE_RETRIES.search(whole) and not _decorates_by_imported(whole):
        return
    if len(texts) > 1:
        joined = sources.parse(whole)
        if isinstance(joined, str):
            result.unread.append(Unread(str(path), f"its cells are no module together: {joined}"))
            return
        tree = joined
    comments = read_comments(whole)
    for rule, node, message, library in find_hits(Module(tree, path)):
        if counts(rule, path):
            end = node.end_lineno or node.lineno
            if any(len(line) > _LONGEST for at in (node.lineno, end) for line in lines[at - 1 : at]):
                result.findings, result.suppressed, result.files = [], [], 0
                result.unread.append(Unread(str(path), f"a line with a retry has more than {_LONGEST} characters"))
                return
            finding = _finding(path, lines, starts, rule, node, message, library)
            last = end if isinstance(node, ast.expr) else node.lineno  # a comment belongs to the head of a statement
            is_suppressed = comments.suppress(rule, node.lineno, last)
            (result.suppressed if is_suppressed else result.findings).append(finding)
    _remark(path, starts, comments, counts, result)


def _decorates_by_imported(text: str) -> bool:
    """Return whether a file decorates a function by a name that it imports: that may be a retry of its package."""
    decorators = {*DECORATORS.findall(text)}
    return bool(decorators) and any(
        package not in sys.stdlib_module_names and decorators & {*re.findall(r"\w+", names)}
        for package, names in IMPORTED_NAMES.findall(text)
    )


def find_hits(module: Module) -> Iterator[tuple[str, Any, str, str]]:
    """Yield what the rules say of a module, each once: two retries around the same call say the same of it."""
    seen: set[tuple[str, int, int]] = set()
    hits: Iterator[tuple[str, Any, str, str]] = check(module)
    for rule, node, message, library in hits:
        key = (rule, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        if key not in seen and key[1]:  # a node that the audit made itself may have no place
            seen.add(key)
            yield rule, node, message, library


def _finding(
    path: Path, lines: list[str], starts: list[tuple[int, int]], rule: str, node: Any, message: str, library: str
) -> Finding:
    line: int = node.lineno
    end_line: int = node.end_lineno or line
    first, cell = _start(starts, line)
    text = lines[line - 1] if line <= len(lines) else ""
    last = lines[end_line - 1] if end_line <= len(lines) else ""
    return Finding(
        str(path),
        cell,
        line - first,
        characters(text, node.col_offset) + 1,
        rule,
        end_line - first,
        characters(last, node.end_col_offset or 0) + 1,
        RULES[rule].severity_for(library),
        message,
        RULES[rule].cure_for(library),
        library,
        text,
        last,
    )


def _start(starts: list[tuple[int, int]], line: int) -> tuple[int, int]:
    """Return the line before the cell that has a line, and the number of the cell."""
    at = bisect_left(starts, (line, 0))
    return starts[at - 1] if at else (0, 0)


def characters(line: str, octets: int) -> int:
    """Return the number of characters in the first bytes of a line: ast counts in bytes of UTF-8."""
    return len(line.encode("utf-8", "surrogatepass")[:octets].decode("utf-8", "replace"))


def _remark(path: Path, starts: list[tuple[int, int]], comments: Comments, counts: Counts, result: Reading) -> None:
    counted = [rule for rule in RULES if counts(rule, path)]
    remarks = [(line, f"the comment names {name!r}, which is no rule") for line, name in comments.unknown]
    remarks += [
        (line, f"{text!r} is no comment of the audit: write ignore or ignore-file") for line, text in comments.wrong
    ]
    remarks += [(line, "the comment suppresses nothing") for line in comments.list_unused(counted)]
    for line, text in remarks:
        first, cell = _start(starts, line)
        result.remarks.append(Remark(str(path), cell, line - first, text))
