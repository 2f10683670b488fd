"""Cases that were labelled from AWS's documentation before the table was written (aws_labels.csv in the testkit).

Later, two readers who knew neither these labels nor the table labelled the same cases.
"""

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


STRICTER = {
    "StartCrawler": "the refusal holds only while the first crawl runs",
    "SendMessage": "the call does not show whether the queue deduplicates by content",
    "ExecuteStatement": "a statement of PartiQL is not parsed",
    "UpdateStack": "the refusal holds only while the first update runs",
    "StartInstanceRefresh": "the refusal holds only while the first one runs",
    "PurgeQueue": "after a minute it deletes what came meanwhile",
}
"""Calls that both readers took for harmless, and that the table does not repeat."""
CONDITIONAL = {"UpdateDistribution", "PutObject", "UpdateItem"}
"""Calls that both readers took for harmful: the caller may take the 412 of its own write for that of somebody else.

They are repeated, as documented: nothing is executed twice, and the report says that it may have been done.
"""


def test_two_readers_agree() -> None:
    """All differences have a reason, and the readers differ in one case: whether a charge counts."""
    cases = [case for listed in labelled().values() for case in listed]
    differ = [case for case in cases if case["reader_1"] != case["reader_2"]]
    assert [case["operation"] for case in differ] == ["AssociateAddress"]
    both = [case for case in cases if case["reader_1"] == case["reader_2"] != case["harmless"]]
    assert {case["operation"] for case in both if case["harmless"] == "no"} == set(STRICTER)
    assert {case["operation"] for case in both if case["harmless"] == "yes"} == CONDITIONAL
    assert (len(cases), len(both)) == (248, 9)


def test_enough_labels() -> None:
    """There are cases of 200 operations in 30 services."""
    cases = labelled()
    assert len(cases) >= 30
    assert len({(service, case["operation"]) for service, listed in cases.items() for case in listed}) >= 200
