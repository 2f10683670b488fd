"""The labelled calls on moto, which keeps the state of AWS: what a second execution changes, and what forbear repeats.

Its own environment runs this (`make moto`). aws_labels.csv has the calls as moto takes them, and in `moto_note` why
moto's word does not count for some; aws_moto.toml has the state in which they run.
"""

import json
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

import forbear
from forbear.clients.botocore import install
from forbear.services.aws.table import refuses
from forbear.testing import virtual_time
from forbear_testkit.clients import aws, moto
from forbear_testkit.services.aws import labelled

CASES = {service: [case for case in cases if case["moto"]] for service, cases in labelled().items()}
NOTES = {
    "untrue": "a second execution does more than on AWS",
    "no trace": "it does no harm that moto shows",
    "answer": "its harm is in the answer",
    "stricter": "it does no harm here, and is not repeated",
    "missing": "moto does not have it",
}
"""The worth of moto's word where it differs from the label, by the beginnings of the notes."""


def test_notes() -> None:
    """Every labelled call runs on moto, or says why not."""
    listed = [case for cases in labelled().values() for case in cases]
    notes = Counter(case["moto_note"].partition(":")[0] for case in listed)
    assert set(notes) == {"", *NOTES}
    assert all((case["moto"] == "") is case["moto_note"].startswith("missing") for case in listed)
    assert notes[""] >= 170
    assert len([cases for cases in CASES.values() if cases]) >= 35


@pytest.fixture(scope="module")
def server() -> Iterator[moto.Moto]:
    """One moto for all tests."""
    with moto.serving() as server:
        yield server


@pytest.mark.skipif(find_spec("moto") is None, reason="`make moto` has it")
@pytest.mark.parametrize("service", [service for service, cases in CASES.items() if cases])
def test_executions(service: str, server: moto.Moto) -> None:
    """A call that changes something when it is executed again is never repeated, and no other one is given up."""
    account = moto.Account(server)
    ours = install(aws.client(service, server.url, inject_host_prefix=False))
    world = moto.worlds()[service]
    for case in CASES[service]:
        step = moto.Step(service, case["operation"], json.loads(case["parameters"]) | json.loads(case["moto"]), {})
        harmless, note = case["harmless"] == "yes", case["moto_note"].partition(":")[0]
        account.make(world)
        first = moto.show(*account.try_call(account.client(service), step))
        one = account.look(world)
        second = moto.show(*account.try_call(account.client(service), step))
        assert (account.look(world) != one) is (harmless if note == "untrue" else not harmless and not note), case
        assert note != "answer" or first != second, case
        model = ours.meta.service_model.operation_model(step.operation)
        slow = aws.fail(model, 429 if model.http["method"] == "HEAD" else 400, "ThrottlingException")
        for fault in (moto.LOST, moto.CUT, moto.busy(model), moto.Fault(False, slow)):
            account.make(world)
            server.executed.clear()
            server.faults[:] = [fault]
            with virtual_time():
                _, error = account.try_call(ours, step)
            report = None if error is None else forbear.report(error)
            again = harmless or (not fault.is_executed and refuses(service, step.operation, "ThrottlingException"))
            whole = fault is moto.CUT and not (aws.cut(model) and server.executed[0].answer)  # or the caller reads it
            expected = (2 if again and not whole else 1) if fault.is_executed else int(again)
            assert len(server.executed) == expected, (case, fault)
            if again and not whole:
                assert error is None or (report is not None and report.maybe_done), (case, fault, error, report)
