"""`fix`: cure the findings for which one cure is certain. It needs libcst, which the extra `audit` installs.

A fix is kept only if the new text compiles, its names are bound, its findings are gone, and no rule has more of them
than before.
"""

import ast
import difflib
import errno
import os
import tempfile
import tokenize
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from forbear_audit.engine import Audit, result_of
from forbear_audit.findings import Finding, Unread
from forbear_audit.fixes.edits import Edit, order_edits
from forbear_audit.fixes.names import unbound
from forbear_audit.fixes.plans import CAPPED, TIMED, FixFigures, plan
from forbear_audit.reading.modules import Module
from forbear_audit.reading.sources import LINE_ENDS, parse
from forbear_audit.rules.baseline import Baseline
from forbear_audit.rules.file_findings import Reading, characters, find_hits, read_texts
from forbear_audit.settings import AuditSettings

__all__ = ["CAPPED", "TIMED", "Fix", "FixFigures", "FixedFile", "fix", "fix_file"]


@dataclass(frozen=True, order=True)
class Fix:
    """A finding that was cured: its place before, its rule, and what was changed. Example: see `fix`."""

    path: str
    line: int
    rule: str
    change: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.change}"


@dataclass(frozen=True)
class FixedFile:
    """A file before and after its fixes. Example: see `fix`."""

    path: Path
    before: bytes
    after: bytes
    fixes: tuple[Fix, ...]

    def diff(self) -> str:
        """Return the changes as a unified diff for people; `patch` has the exact bytes."""
        return self.patch().decode(_encoding(self.before), "replace")

    def patch(self) -> bytes:
        """Return the changes as bytes that `git apply` and `patch -p1` apply: lines end at a line feed only."""
        name = os.fsencode(self.path.as_posix().removeprefix("./").lstrip("/"))
        old, new = ([*BytesIO(data)] for data in (self.before, self.after))
        lines = difflib.diff_bytes(difflib.unified_diff, old, new, _quote(b"a/" + name), _quote(b"b/" + name))
        return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)

    def write(self) -> None:
        """Replace the file at once, with its permissions.

        Raises OSError if it cannot be written, was changed since it was read, or is a symbolic link: that may lead out
        of the folder that is audited. Another hard link to the file keeps the old contents.
        """
        if self.path.is_symlink():
            raise OSError(errno.ELOOP, "it is a symbolic link: name the file that it leads to", str(self.path))
        target = Path(os.path.realpath(self.path))
        if not os.access(target, os.W_OK):
            raise PermissionError(13, "it is read-only", str(self.path))
        if target.read_bytes() != self.before:
            raise OSError(11, "it was changed meanwhile", str(self.path))
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.after)
                file.flush()
                os.fsync(file.fileno())
            state = target.stat()
            with suppress(OSError):  # only root may give a file away
                os.chown(name, state.st_uid, state.st_gid)
            os.chmod(name, state.st_mode & 0o7777)  # noqa: PTH101 - after chown, which may clear bits
            os.replace(name, target)  # noqa: PTH105
        except BaseException:
            with suppress(OSError):
                os.unlink(name)  # noqa: PTH108
            raise


def fix(
    result: Audit,
    *,
    settings: AuditSettings,
    figures: FixFigures = FixFigures(),  # noqa: B008 - frozen
    baseline: Baseline | None = None,
    dry: bool = False,
) -> tuple[Audit, list[FixedFile]]:
    """Cure what is certain among the findings of an audit; return the audit of the new files, and these files.

    `settings` and `baseline` are those of the audit. What comments or the baseline suppress stays as it is, and so do
    notebooks. With `dry` no file is written, and the audit is the same. A file that cannot be written is `unread`.

    Raises ModuleNotFoundError if libcst is not installed.

    >>> from pathlib import Path
    >>> from forbear_audit import AuditSettings, audit
    >>> size = Path("orders.py").write_text('''
    ... import tenacity
    ... @tenacity.retry(wait=tenacity.wait_exponential(max=60), stop=tenacity.stop_after_delay(60))
    ... def load(): ...
    ... ''')
    >>> settings = AuditSettings()
    >>> after, files = fix(audit(["orders.py"], settings=settings), settings=settings, dry=True)
    >>> [(each.rule, each.change) for each in files[0].fixes]
    [('NO-JITTER', '`wait_random_exponential` instead of `wait_exponential`')]
    """
    files: dict[str, list[Finding]] = defaultdict(list)
    for finding in result.findings:
        files[finding.path].append(finding)
    done: list[FixedFile] = []
    failed: list[Unread] = []
    for path, findings in files.items():
        fixed = fix_file(Path(path), findings, settings, figures) if not findings[0].cell else None
        if fixed is None:
            continue
        try:
            if not dry:
                fixed.write()
            done.append(fixed)
        except OSError as error:
            failed.append(Unread(path, f"not fixed: {error.strerror}"))
    if dry or not (done or failed):
        return result, done
    return _update_result(result, done, failed, settings, baseline), done


def _update_result(
    result: Audit, done: list[FixedFile], failed: list[Unread], settings: AuditSettings, baseline: Baseline | None
) -> Audit:
    """Return an audit in which the findings of the fixed files are those of their new text."""
    changed = {str(item.path) for item in done}
    total = Reading(
        findings=[f for f in (*result.findings, *result.known) if f.path not in changed],
        suppressed=[f for f in result.ignored if f.path not in changed],
        unread=[*result.unread, *failed],
        remarks=[r for r in result.remarks if r.path not in changed],
    )
    total.files, total.lines = result.files - len(done), result.lines
    for item in done:
        total.lines -= len(LINE_ENDS.split(_decode(item.before)))
        total.add(_reading(item.path, item.after, settings))
    return result_of(total, baseline)


def fix_file(path: Path, findings: Iterable[Finding], settings: AuditSettings, figures: FixFigures) -> FixedFile | None:
    """Return a file with these findings cured as far as that is certain, None if none of them is.

    Example: see `fix`.
    """
    from forbear_audit.fixes.write import Span, rewritten

    try:
        before = path.read_bytes()
        text = _decode(before)
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError):
        return None
    tree = parse(text)
    if isinstance(tree, str):
        return None
    module, lines = Module(tree, path), LINE_ENDS.split(text)
    wanted = {(finding.rule, finding.line, finding.column) for finding in findings}
    edits: list[Edit] = []
    fixes: list[Fix] = []
    for rule, node, _, library in find_hits(module):
        span = _span(node, lines)
        if (rule, span[0], span[1] + 1) in wanted:
            made = plan(module, rule, node, library, figures)
            if made is not None:
                edits += made.edits
                fixes.append(Fix(str(path), span[0], rule, made.change))
    by_span: dict[Span, list[Edit]] = defaultdict(list)
    for edit in order_edits(edits):
        by_span[_span(edit.node, lines)].append(edit)
    after = rewritten(before, by_span) if fixes else None
    if after is None or not _runs(tree, after) or not _is_better(path, before, after, fixes, settings):
        return None
    return FixedFile(path, before, after, tuple(sorted(fixes)))


def _runs(before: ast.Module, after: bytes) -> bool:
    """Return whether new text compiles, and all names that it reads for the first time are bound."""
    text = _decode(after)
    tree = parse(text)
    if isinstance(tree, str):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the code that is fixed
            compile(text, "fixed", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return not unbound(tree, before)


def _is_better(path: Path, before: bytes, after: bytes, fixes: list[Fix], settings: AuditSettings) -> bool:
    """Return whether the new text parses, has not got the findings that were cured, and no more of any rule."""
    old, new = _reading(path, before, settings), _reading(path, after, settings)
    cured = Counter(item.rule for item in fixes)
    had = Counter(finding.rule for finding in (*old.findings, *old.suppressed))
    has = Counter(finding.rule for finding in (*new.findings, *new.suppressed))
    return not new.unread and all(has[rule] <= had[rule] - cured[rule] for rule in {*had, *has})


def _reading(path: Path, data: bytes, settings: AuditSettings) -> Reading:
    return read_texts(path, [(0, _decode(data))], settings.counts)


def _decode(data: bytes) -> str:
    return data.decode(_encoding(data))


def _encoding(data: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    return encoding


def _quote(name: bytes) -> bytes:
    """Return the name of a file as the head of a diff has it: in quotes with escapes, or with a tab after a space."""
    if any(octet < 32 or octet in b'"\\\x7f' for octet in name):
        parts = (bytes([o]) if 32 <= o != 127 and o not in b'"\\' else b"\\%03o" % o for o in name)
        return b'"' + b"".join(parts) + b'"'
    return name + b"\t" if b" " in name else name


def _span(node: ast.AST, lines: list[str]) -> tuple[int, int, int, int]:
    """Return the place of a node, with columns in characters."""
    first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1) or 1
    start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0) or 0
    return first, characters(lines[first - 1], start), last, characters(lines[last - 1], end)
