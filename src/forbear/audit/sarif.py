"""SARIF 2.1.0: the findings of an audit as code hosts read them."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from forbear.audit.engine import Audit
from forbear.audit.findings import Finding
from forbear.audit.rules import RULES

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(result: Audit, version: str) -> dict[str, Any]:
    """Return a SARIF log of an audit by this version of forbear; files that were not read are notifications."""
    ids = list(RULES)
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.summary},
            "fullDescription": {"text": rule.why},
            "help": {"text": f"{rule.why} Cure: {rule.cure}."},
            "defaultConfiguration": {"level": rule.severity},
        }
        for rule in RULES.values()
    ]
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "forbear audit", "version": version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, ids) for finding in result.findings],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {
                        "level": "warning",
                        "message": {"text": f"not read: {unread.reason}"},
                        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(unread.path)}}}],
                    }
                    for unread in result.unread
                ],
            }
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, ids: list[str]) -> dict[str, Any]:
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    cell = f" (cell {finding.cell})" if finding.cell else ""
    return {
        "ruleId": finding.rule,
        "ruleIndex": ids.index(finding.rule),
        "level": finding.severity,
        "message": {"text": f"{finding.message}{cell}. Cure: {finding.cure}."},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(finding.path)}, "region": region}}],
        "partialFingerprints": {"forbear/v1": finding.fingerprint()},
    }


def _uri(path: str) -> str:
    pure = Path(path)
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix().removeprefix("./"))
