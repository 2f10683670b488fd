"""Cases that were labelled from AWS's documentation before the table was written (aws_labels.csv in the testkit)."""

import json
from typing import Any

import pytest

from forbear.services.aws.service import classify
from forbear_testkit.services.aws import labelled, operation


@pytest.mark.parametrize("cases", [pytest.param(cases, id=service) for service, cases in labelled().items()])
def test_labels(cases: list[dict[str, str]]) -> None:
    """A harmful call is never repeated, and a harmless one never given up."""
    for case in cases:
        parameters: dict[str, Any] = json.loads(case["parameters"])
        judgement = classify(operation(case["service"], case["operation"]), parameters)
        assert judgement.repeatable is (case["harmless"] == "yes"), case


def test_enough_labels() -> None:
    """There are cases of 200 operations in 30 services."""
    cases = labelled()
    assert len(cases) >= 30
    assert len({(service, case["operation"]) for service, listed in cases.items() for case in listed}) >= 200
