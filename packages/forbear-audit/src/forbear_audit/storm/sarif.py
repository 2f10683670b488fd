"""The findings of a storm as SARIF, with the rules and fingerprints of `forbear audit`."""

import json
import linecache
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from forbear_audit.findings import fingerprint_of
from forbear_audit.sarif import fingerprints, sarif_log, sarif_place
from forbear_audit.storm.faults import KINDS, PROVABLE
from forbear_audit.storm.places import StormPlace, StormPlan


def storm_sarif(
    results: Iterable[Mapping[str, Any]], plan: StormPlan | None, folder: Path, version: str
) -> dict[str, Any]:
    """Return a SARIF log of the results of the tests, as JSON has them, by this version of forbear.

    Paths count from `folder`. A finding on a place of `plan` stands where the audit reported it. Findings without a
    rule are left out. Findings of one kind at one line are one result, that of the first test.
    """
    ids = [*PROVABLE]
    rules = [{"id": rule.name, "shortDescription": {"text": rule.text}} for rule in PROVABLE.values()]
    listed: dict[str, dict[str, Any]] = {}
    for result in results:
        places: list[tuple[int, dict[str, str]]] = result.get("plan", {}).get("findings", [])
        for finding in result["findings"]:
            if finding["rule"] in ids:
                suspected = [] if plan is None else [plan.places[n] for n, other in places if other == finding]
                place = next((one for one in suspected if one.is_proved_by(finding["kind"])), None)
                number = 1 if plan is None or place is None else _number(plan, place)
                one = _result(finding, place, number, folder, ids)
                listed.setdefault(json.dumps([finding["kind"], one["locations"], one["partialFingerprints"]]), one)
    return sarif_log({"name": "forbear storm", "version": version, "rules": rules}, [*listed.values()], (), folder)


def _number(plan: StormPlan, place: StormPlace) -> int:
    """Return which of the equal lines of the plan a place is, from 1: the audit counts them, too."""
    equal = [one for one in plan.places if (one.rule, one.path, one.text) == (place.rule, place.path, place.text)]
    return 1 + equal.index(place)


def _result(
    finding: dict[str, str], place: StormPlace | None, equal: int, folder: Path, ids: list[str]
) -> dict[str, Any]:
    site, _, number = finding["site"].rpartition(":")
    if place is not None:
        rule, path, line, text = place.rule, place.path, place.line, place.text
    else:
        rule, path, line = finding["rule"], site, int(number) if number.isdigit() else 1
        text = linecache.getline(str(folder / path), line)
    result: dict[str, Any] = {
        "ruleId": rule,
        "ruleIndex": ids.index(rule),
        "level": KINDS[finding["kind"]].level,
        "message": {"text": f"{finding['call']} {finding['text']}. Show it again: {finding['reproduction']}"},
        "locations": [sarif_place(path, folder, {"startLine": line})],
        "partialFingerprints": fingerprints(fingerprint_of(rule, path, text), equal),
    }
    if number.isdigit() and (site, number) != (path, str(line)):
        result["relatedLocations"] = [sarif_place(site, folder, {"startLine": int(number)})]
    return result
