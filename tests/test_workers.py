"""Reports that the processes of a run of tests send each other."""

from types import SimpleNamespace
from typing import Any

import pytest

from forbear_testkit import workers
from forbear_testkit.workers import FewReports, Schedules


class Sent:
    """A file of tests in a worker, and the reports that it sends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._names, self._outcomes = list[str](), list[str]()
        self.reports = list[pytest.TestReport]()
        monkeypatch.setattr(workers, "runtestprotocol", self._run)

    def run(self, **outcomes: str) -> None:
        """Run tests of these names that end like this."""
        few = FewReports()
        few._sent_at = float("inf")  # no test waits too long
        session = SimpleNamespace(shouldfail=False, shouldstop=False)
        ihook = SimpleNamespace(pytest_runtest_logreport=self._send)
        items: list[Any] = [
            SimpleNamespace(
                nodeid=f"a.py::{n}",
                path="a.py",
                location=("a.py", 1, n),
                session=session,
                ihook=ihook,
                fixturenames=[n],
            )
            for n in outcomes
        ]
        self._outcomes = list(outcomes.values())
        for item, following in zip(items, [*items[1:], None], strict=True):
            assert few.pytest_runtest_protocol(item, following)

    def _send(self, report: pytest.TestReport) -> None:
        self.reports.append(report)

    def _run(self, item: Any, log: bool, nextitem: object) -> list[pytest.TestReport]:
        outcome: Any = self._outcomes.pop(0)
        return [
            pytest.TestReport(
                item.nodeid, ("a.py", 1, ""), {}, outcome if when == "call" else "passed", None, when, duration=0.5
            )
            for when in ("setup", "call", "teardown")
        ]


def test_every_test_is_reported_once_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that pass come along with the next failure, or with the last test of their file."""
    sent, seen = Sent(monkeypatch), list[tuple[str, str, float]]()
    sent.run(a="passed", b="passed", c="failed", d="passed", e="passed")
    assert [report.nodeid for report in sent.reports] == ["a.py::c", "a.py::e"]

    def hear(report: pytest.TestReport) -> None:
        seen.append((report.nodeid, report.outcome, report.duration))

    config: Any = SimpleNamespace(hook=SimpleNamespace(pytest_runtest_logreport=hear))
    for report in sent.reports:
        setattr(report, "node", "gw0")  # noqa: B010 - a report has any attributes
        Schedules(config).pytest_runtest_logreport(report)
        hear(report)
    assert seen == [(f"a.py::{name}", "failed" if name == "c" else "passed", 0.5) for name in "abcde"]


def test_a_test_with_subtests_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends as passed; pytest makes it a failure when it reports it, if one of the subtests has failed."""
    sent = Sent(monkeypatch)
    sent.run(a="passed", subtests="passed", b="passed")
    assert [report.nodeid for report in sent.reports] == ["a.py::subtests", "a.py::b"]
