"""SARIF 2.1.0: the findings of an audit as code hosts read them."""

from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from forbear.audit.engine import Audit
from forbear.audit.findings import Finding
from forbear.audit.rules import RULES, AuditRule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""The address of the schema of the format."""

_ROOT = "%SRCROOT%"


def as_sarif(result: Audit, version: str, *, root: Path | None = None, pages: str | None = None) -> dict[str, Any]:
    """Return a SARIF log of an audit by this version of forbear.

    Paths below `root`, by default the current folder, are relative to it. Suppressed findings are there, too, marked as
    suppressed. Files that were not read and wrong comments are notifications. `pages` is the address of the page of
    the rules, if there is one.
    """
    base = (root or Path()).resolve()
    listed = [
        *((finding, None) for finding in result.findings),
        *((finding, {"kind": "inSource"}) for finding in result.ignored),
        *((finding, {"kind": "external", "justification": "in the baseline"}) for finding in result.known),
    ]
    times: Counter[str] = Counter()
    run: dict[str, Any] = {
        "tool": {"driver": _driver(version, pages)},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {_ROOT: {"uri": base.as_uri().rstrip("/") + "/"}},
        "results": [_result(finding, why, base, times) for finding, why in sorted(listed, key=lambda pair: pair[0])],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    _notification("warning", f"not read: {unread.reason}", _artifact(unread.path, base), None)
                    for unread in result.unread
                ],
                "toolConfigurationNotifications": [
                    _notification("note", remark.text, _artifact(remark.path, base), remark.line)
                    for remark in result.remarks
                ],
            }
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _driver(version: str, pages: str | None) -> dict[str, Any]:
    driver: dict[str, Any] = {"name": "forbear audit", "version": version}
    if pages is not None:
        driver["informationUri"] = pages
    driver["rules"] = [_rule(rule, pages) for rule in RULES.values()]
    return driver


def _rule(rule: AuditRule, pages: str | None) -> dict[str, Any]:
    words = [f"- {library}: {cure}" for library, cure in rule.cures.items()]
    markdown = [rule.why, "", "```python", rule.example, "```", "", f"Cure: {rule.cure}.", "", *words]
    descriptor: dict[str, Any] = {
        "id": rule.id,
        "name": "".join(word.title() for word in rule.id.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": f"{rule.summary} {rule.why}"},
        "help": {"text": f"{rule.why} Cure: {rule.cure}.", "markdown": "\n".join(markdown).strip()},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": ["reliability", "retry"]},
    }
    if pages is not None:
        descriptor["helpUri"] = f"{pages}#{rule.anchor}"
    return descriptor


def _result(finding: Finding, suppression: dict[str, str] | None, base: Path, times: Counter[str]) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(finding.path, base)}
    location: dict[str, Any] = {"physicalLocation": place}
    if finding.cell:  # the lines of a cell are not those of the file
        location["logicalLocations"] = [{"name": f"cell {finding.cell}, line {finding.line}", "kind": "cell"}]
    else:
        place["region"] = {
            "startLine": finding.line,
            "startColumn": _utf16(finding.text, finding.column),
            "endLine": finding.end_line,
            "endColumn": _utf16(finding.last_text, finding.end_column),
        }
    cell = f" (cell {finding.cell})" if finding.cell else ""
    fingerprint = finding.fingerprint(str(base))
    times[fingerprint] += 1  # equal lines differ by their order
    return {
        "ruleId": finding.rule,
        "ruleIndex": [*RULES].index(finding.rule),
        "level": finding.severity,
        "message": {"text": f"{finding.message}{cell}. Cure: {finding.cure}."},
        "locations": [location],
        "partialFingerprints": {"forbear/v1": f"{fingerprint}:{times[fingerprint]}"},
        "suppressions": [] if suppression is None else [suppression],
    }


def _notification(level: str, text: str, artifact: dict[str, str], line: int | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": artifact}
    if line is not None:
        place["region"] = {"startLine": line}
    return {"level": level, "message": {"text": text}, "locations": [{"physicalLocation": place}]}


def _artifact(path: str, base: Path) -> dict[str, str]:
    """Return the location of a file: relative to the base if it is below it, else absolute."""
    absolute = Path(base, path) if ".." not in Path(path).parts else Path(base, path).resolve()
    if absolute.is_relative_to(base):
        relative = absolute.relative_to(base).as_posix()
        return {"uri": quote(relative.encode("utf-8", "surrogateescape")), "uriBaseId": _ROOT}
    return {"uri": absolute.as_uri()}


def _utf16(line: str, column: int) -> int:
    """Return a column, from 1, in units of UTF-16 rather than in characters."""
    return len(line[: column - 1].encode("utf-16-le", "surrogatepass")) // 2 + 1
