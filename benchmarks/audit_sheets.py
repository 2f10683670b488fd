"""Sheets for people who label findings of `forbear audit`: seeded samples with the code that a judgement needs."""

import ast
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.audit_excerpts import Source, end, excerpt, region, source, start
from forbear_audit import RULES, Finding

SEED = "forbear audit 1"
PER_RULE, PER_PACKAGE = 14, 3
_SILENT = {"loop": 30, "library": 15, "word": 15}
_MARKS = {"tuning": "T", "test": "E", "silent": "S"}
_WORDS = re.compile(r"retry|retries|retrying|attempt|backoff|tenacity", re.IGNORECASE)
_LIBRARIES = re.compile(
    r"^(?:tenacity|backoff|stamina|opnieuw|retrying|urllib3|httpx_retries|aiohttp_retry|google\.api_core\.retry)\b"
)
_TASK = """\
Label each number: true, false or unclear, with a reason in one line. A finding is true if a reviewer who knows the
rule would ask for a change in this code, or would agree that the code does what the message says. The message must hold
for the marked line (">"): a finding for a wrong reason is false. The whole code is in the folder src beside this file.
"""
_SILENT_TASK = """\
The audit has no finding in these functions, though their text speaks of retries. For each number list the rules that
the code breaks, with the line and a reason, or write "none". The rules are listed first; "note" rules count, too. The
kind says how we chose the place: "loop" (a loop with a try), "library" (a retry library), "word" (a word).
"""


@dataclass(frozen=True)
class Place:
    """A line of a package to show: `rule` and `message` are empty where the audit is silent."""

    package: str
    path: Path
    line: int
    rule: str
    message: str


def sample(findings: Mapping[str, Sequence[Finding]], half: str) -> list[Place]:
    """Return up to PER_RULE findings of each rule, at most PER_PACKAGE of a package, the same each time.

    `findings` are by package. Places with the same code as one in the sample are left out: copies and generated twins.
    """
    result: list[Place] = []
    for rule in RULES:
        places = [
            Place(package, Path(f.path), f.line, rule, f"{f.severity}: {f.message}")
            for package, own in sorted(findings.items())
            for f in own
            if f.rule == rule
        ]
        result += _drawn(places, PER_RULE, f"{half} {rule}")
    return result


def _drawn(places: list[Place], limit: int, stratum: str) -> list[Place]:
    random.Random(f"{SEED} {stratum}").shuffle(places)
    packages: Counter[str] = Counter()
    codes: set[str] = set()
    kept: list[Place] = []
    for place in places:
        if len(kept) < limit and packages[place.package] < PER_PACKAGE:
            code = source(place.path)
            text = _plain(code, place.line) if code is not None else str(place)
            if text not in codes:
                codes.add(text)
                packages[place.package] += 1
                kept.append(place)
    return kept


def _plain(code: Source, line: int) -> str:
    _, first, last = region(code, line)
    return re.sub(r"\s+|\basync\b|\bawait\b|_?[aA]sync", "", "".join(code.lines[first - 1 : last]))


def write_findings(folder: Path, half: str, findings: Mapping[str, Sequence[Finding]]) -> int:
    """Write the sample of a half to FOLDER/HALF.md, and its list to HALF.json; return the number of findings."""
    places = sample(findings, half)
    _write(folder, half, places, _TASK)
    return len(places)


def write_silent(folder: Path, findings: Mapping[str, Sequence[Finding]]) -> int:
    """Write places without findings that look like retries to FOLDER/silent.md and .json; return their number."""
    strata: dict[str, list[Place]] = {kind: [] for kind in _SILENT}
    for package, own in sorted(findings.items()):
        lines: dict[str, set[int]] = {}
        for finding in own:
            lines.setdefault(finding.path, set()).add(finding.line)
        for path in sorted((folder / "src" / package).rglob("*.py")):
            for kind, line in _lookalikes(path, lines.get(str(path), set())):
                strata[kind].append(Place(package, path, line, "", f"kind: {kind}"))
    places = [place for kind, limit in _SILENT.items() for place in _drawn(strata[kind], limit, f"silent {kind}")]
    rules = "".join(f"- {rule.id} ({rule.severity}): {rule.summary} {rule.why}\n" for rule in RULES.values())
    _write(folder, "silent", places, f"{_SILENT_TASK}\n{rules}")
    return len(places)


def _lookalikes(path: Path, reported: set[int]) -> Iterator[tuple[str, int]]:
    """Yield the kind and the line of functions and policies that speak of retries and have no finding."""
    code = source(path) if _speaks(path.read_text(encoding="utf-8", errors="replace")) else None
    if code is None:
        return
    seen: set[int] = set()
    functions = [node for node in code.module.functions if _speaks(_code(code, node))]
    for node in (*functions, *_policies(code)):
        outer, first, last = region(code, end(node))
        whole = range(start(outer), end(outer) + 1)
        if start(outer) in seen or any(line in whole for line in reported):
            continue
        kind, line = _kind(code, outer)
        if kind and first <= line <= last:
            seen.add(start(outer))
            yield kind, line


def _speaks(text: str) -> bool:
    return "sleep" in text or _WORDS.search(text) is not None


def _policies(code: Source) -> Iterable[ast.stmt]:
    """Return the assignments outside of functions whose names speak of retries."""
    return [
        node
        for node in code.module.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _WORDS.search(ast.unparse(node))
    ]


def _kind(code: Source, node: ast.AST) -> tuple[str, int]:
    """Return why a function looks like a retry ("" if it does not), and the line with the reason."""
    nodes = list(ast.walk(node))
    for inner in nodes:
        if isinstance(inner, ast.Call):
            dotted = code.module.name_of(inner.func)
            if _LIBRARIES.search(dotted) and _WORDS.search(dotted):
                return "library", inner.lineno
    for inner in nodes:
        if isinstance(inner, (ast.For, ast.AsyncFor, ast.While)):
            below = list(ast.walk(inner))
            tries = any(isinstance(n, ast.Try) for n in below)
            if tries and (_sleeps(below) or _WORDS.search(_code(code, inner))):
                return "loop", inner.lineno
        elif isinstance(inner, ast.ExceptHandler) and _sleeps(ast.walk(inner)):
            return "loop", inner.lineno
    for inner in nodes:
        if isinstance(inner, ast.Call) and _WORDS.search(ast.unparse(inner.func)):
            return "word", inner.lineno
    return "", 0


def _sleeps(nodes: Iterable[ast.AST]) -> bool:
    return any(isinstance(n, ast.Call) and ast.unparse(n.func).endswith("sleep") for n in nodes)


def _code(code: Source, node: ast.AST) -> str:
    lines = code.lines[start(node) - 1 : end(node)]
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def _write(folder: Path, name: str, places: Sequence[Place], task: str) -> None:
    parts = [f"# Audit: {name}\n", task]
    rows: list[dict[str, object]] = []
    last = ""
    for number, place in enumerate(places, 1):
        mark = f"{_MARKS[name]}{number:03}"
        code = source(place.path)
        if place.rule != last:
            last, rule = place.rule, RULES[place.rule]
            parts.append(f"\n# {rule.id} ({rule.severity})\n\n{rule.summary} {rule.why} Cure: {rule.cure}.\n")
        where = place.path.relative_to(folder / "src" / place.package)
        title = f"{place.rule} {place.package} {where}:{place.line}".strip()
        shown = excerpt(code, place.line) if code is not None else "(a notebook: see the file)"
        parts.append(f"\n## {mark} {title}\n\nMessage: {place.message}\n\n````python\n{shown}\n````\n")
        rows.append({
            "number": mark, "rule": place.rule, "package": place.package, "path": where.as_posix(),
            "line": place.line, "message": place.message,
        })  # fmt: skip
    (folder / f"{name}.md").write_text("\n".join(parts), encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
