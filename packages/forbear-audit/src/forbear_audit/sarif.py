"""SARIF 2.1.0, the form in which code hosts read findings: those of an audit, and what the storm shares.

Both have the same ids of rules and the same fingerprints, so that a code host shows a finding and its proof together.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from forbear.cli.kit.links import real
from forbear_audit.findings import Finding, place_in
from forbear_audit.rules.catalog import RULES, AuditRule

if TYPE_CHECKING:
    from forbear_audit.engine import Audit

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""The address of the schema of the format."""

PAGES = "https://github.com/forbear/forbear/blob/main/docs/reference/audit.md"
"""The address of the page of the rules, with a section for each."""

_ROOT = "%SRCROOT%"


def as_sarif(result: "Audit", version: str, *, root: Path | None = None) -> dict[str, Any]:
    """Return a SARIF log of an audit by this version of forbear.

    Paths below `root`, by default the current folder, are relative to it. Suppressed findings are there, too, marked as
    suppressed. Files that were not read and wrong comments are notifications.
    """
    base = real(root or Path())
    listed = [
        *((finding, None) for finding in result.findings),
        *((finding, {"kind": "inSource"}) for finding in result.ignored),
        *((finding, {"kind": "external", "justification": "in the baseline"}) for finding in result.known),
    ]
    times: Counter[str] = Counter()
    results = [_result(finding, why, base, times) for finding, why in sorted(listed, key=lambda pair: pair[0])]
    notifications = [
        _notification("warning", f"not read: {unread.reason}", sarif_place(unread.path, base))
        for unread in result.unread
    ]
    rules = [_rule(rule) for rule in RULES.values()]
    driver = {"name": "forbear audit", "version": version, "informationUri": PAGES, "rules": rules}
    log = sarif_log(driver, results, notifications, base)
    (invocation,) = log["runs"][0]["invocations"]
    invocation["toolConfigurationNotifications"] = [
        _notification(
            "note", remark.text, sarif_place(remark.path, base, None if remark.cell else {"startLine": remark.line})
        )
        for remark in result.remarks
    ]
    return log


def _rule(rule: AuditRule) -> dict[str, Any]:
    words = [f"- {library}: {cure}" for library, cure in rule.cures.items()]
    markdown = [rule.why, "", "```python", rule.example, "```", "", f"Cure: {rule.cure}.", "", *words]
    return {
        "id": rule.id,
        "name": "".join(word.title() for word in rule.id.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": f"{rule.summary} {rule.why}"},
        "help": {"text": f"{rule.why} Cure: {rule.cure}.", "markdown": "\n".join(markdown).strip()},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": ["reliability", "retry"]},
        "helpUri": f"{PAGES}#{rule.anchor}",
    }


def _result(finding: Finding, suppression: dict[str, str] | None, base: Path, times: Counter[str]) -> dict[str, Any]:
    region = {
        "startLine": finding.line,
        "startColumn": utf16_column(finding.text, finding.column),
        "endLine": finding.end_line,
        "endColumn": utf16_column(finding.last_text, finding.end_column),
    }
    location = sarif_place(finding.path, base, None if finding.cell else region)
    if finding.cell:  # the lines of a cell are not those of the file
        location["logicalLocations"] = [{"name": f"cell {finding.cell}, line {finding.line}", "kind": "cell"}]
    cell = f" (cell {finding.cell})" if finding.cell else ""
    fingerprint = finding.fingerprint(str(base))
    times[fingerprint] += 1  # equal lines differ by their order
    return {
        "ruleId": finding.rule,
        "ruleIndex": [*RULES].index(finding.rule),
        "level": finding.severity,
        "message": {"text": f"{finding.message}{cell}. Cure: {finding.cure}."},
        "locations": [location],
        "partialFingerprints": fingerprints(fingerprint, times[fingerprint]),
        "suppressions": [] if suppression is None else [suppression],
    }


def _notification(level: str, text: str, location: dict[str, Any]) -> dict[str, Any]:
    return {"level": level, "message": {"text": text}, "locations": [location]}


def sarif_log(
    driver: Mapping[str, Any], results: Iterable[dict[str, Any]], notifications: Iterable[dict[str, Any]], base: Path
) -> dict[str, Any]:
    """Return the log of one run of the tool that `driver` describes: its results, and notifications about the run.

    `base` is the folder that the paths of `sarif_place` count from.
    """
    run: dict[str, Any] = {
        "tool": {"driver": {**driver}},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {_ROOT: {"uri": real(base).as_uri().rstrip("/") + "/"}},
        "results": [*results],
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": [*notifications]}],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def sarif_place(path: str, base: Path, region: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return the location of a file or of a region in it, by `sarif_artifact`."""
    place: dict[str, Any] = {"artifactLocation": sarif_artifact(path, base)}
    return {"physicalLocation": place if region is None else place | {"region": {**region}}}


def sarif_artifact(path: str, base: Path) -> dict[str, str]:
    """Return the location of a file: relative to the folder `base` if it is below that, else absolute."""
    base = real(base)
    place = place_in(Path(base, path), base)
    if place.is_absolute():
        return {"uri": place.as_uri()}
    return {"uri": quote(place.as_posix().encode("utf-8", "surrogateescape")), "uriBaseId": _ROOT}


def utf16_column(line: str, column: int) -> int:
    """Return a column, from 1, in units of UTF-16 rather than in characters."""
    return len(line[: column - 1].encode("utf-16-le", "surrogatepass")) // 2 + 1


def fingerprints(fingerprint: str, number: int) -> dict[str, str]:
    """Return the fingerprints of a result; `number` counts the results with this `fingerprint`, from 1."""
    return {"forbear/v1": f"{fingerprint}:{number}"}
