"""The storm in pytest: run each selected test clean twice, then once for each of its calls and faults.

`forbear_storm_pytest` registers it if one of its options is given.
"""

import inspect
import json
import os
import sys
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import pytest
from _pytest.runner import runtestprotocol

from forbear_audit.storm.clocks import restore_lost
from forbear_audit.storm.faults import PlannedFault, parse_fault
from forbear_audit.storm.function import choose_faults, differs
from forbear_audit.storm.judge import (
    StormFinding,
    drop_repeats,
    finding_lines,
    finding_title,
    judge,
    number_of_each,
    text_of_missed_fault,
    unstable,
)
from forbear_audit.storm.observe import observing
from forbear_audit.storm.options import StormOptions, read_plan, writable
from forbear_audit.storm.run_record import RunRecord
from forbear_audit.storm.sarif import storm_sarif
from forbear_audit.storm.stack import add_roots
from forbear_audit.storm.verdicts import ReachedPlaces, verdict_lines, verdicts_of

_PROPERTY = "forbear_storm"
_NOTHING_SENT = "the tests sent nothing that a storm sees; a mock in the place of a transport sends nothing"
_IGNORED = "forbear_ignore"


@dataclass(slots=True)
class _NextRun:
    """The run that is about to begin: its fault, if any, a clean run before it, and what was observed of it."""

    fault: PlannedFault | None
    options: StormOptions
    clean: RunRecord | None
    seen: RunRecord | None = None


class StormPlugin:
    """The hooks of a storm. With `only`, the one fault of `--forbear-fault`, tests run with that alone."""

    def __init__(self, config: pytest.Config) -> None:
        self._sample: int | None = config.getoption("forbear_storm_sample")
        self._seed = int(config.getoption("forbear_storm_seed") or 0)
        self._json = writable(config, "--forbear-storm-json")
        self._sarif = writable(config, "--forbear-storm-sarif")
        self._folder = config.invocation_params.dir
        add_roots(self._folder, config.rootpath)
        self._plan = read_plan(config)
        self._places: ReachedPlaces | None = None
        only: str | None = config.getoption("forbear_fault")
        try:
            self._only = None if only is None else parse_fault(only)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
        if self._sample is not None and self._sample < 1:
            raise pytest.UsageError(f"`--forbear-storm-sample` must be at least 1, got {self._sample}")
        self._next: _NextRun | None = None
        self._calls: set[str] = set()
        self._results: list[dict[str, Any]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a test with all its faults, and report it once; other tests run as always."""
        if item.get_closest_marker(_IGNORED) is not None:
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in self._reports(item, nextitem):
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _reports(self, item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
        """Return the reports of the first clean run, or of the run with `--forbear-fault`, with the findings."""
        try:
            options = StormOptions.of(item, self._sample)
        except (TypeError, ValueError) as error:
            return self._end(item, nextitem, [_failed(item, "call", str(error))])
        reports, clean = self._run(item, None, options)
        if not (all(report.passed for report in reports) and clean.calls and self._is_reached(clean)):
            return self._end(item, nextitem, reports)
        _, again = self._run(item, None, options, clean)
        if clean.signature() != again.signature() and again.outcome == "passed":  # such as a token that is kept
            clean = again
            self._is_reached(clean)
            _, again = self._run(item, None, options, clean)
        if clean.signature() != again.signature():
            return self._end(item, nextitem, reports, [unstable(item.nodeid, differs(clean, again))])
        clean.time.waits.add(again.time.waits)
        if self._only is not None:
            self._calls |= {f"{call.label}#{call.number}" for call in clean.calls}
            if not any(self._only.applies_to(call.label, call.number) for call in clean.calls):
                return self._end(item, nextitem, reports)
            planned = [self._only]
        else:
            faults = None if self._plan is None else self._plan.faults(clean.calls)
            planned = choose_faults(clean, options.faults, options.sample, f"{self._seed}:{item.nodeid}", faults)
        findings: list[StormFinding] = []
        for fault in planned:
            done, run = self._run(item, fault, options, clean)
            if not done[0].passed:
                findings.append(unstable(item.nodeid, f"its fixtures failed in the run with {fault}"))
                break
            nested = self._places is not None and self._places.has("NESTED", fault)
            judged = judge(_name_test(item), clean, run, options.limits, nested=nested)
            if self._places is not None:
                judged = [finding for finding in judged if finding.kind != "lost"]  # a plan is about harm
                self._places.add(fault, judged)
            findings += judged
            if self._only is not None:
                reports = done
        return self._end(item, nextitem, reports, findings, runs=len(planned))

    def _is_reached(self, clean: RunRecord) -> bool:
        """Note which places of the plan a clean run reached; return whether there is one, or no plan."""
        self._places = None if self._plan is None else ReachedPlaces(self._plan, clean)
        return self._places is None or bool(self._places.numbers)

    def _run(
        self, item: pytest.Item, fault: PlannedFault | None, options: StormOptions, clean: RunRecord | None = None
    ) -> tuple[list[pytest.TestReport], RunRecord]:
        """Run the test once with all its fixtures of function scope, without reporting it."""
        run = self._next = _NextRun(fault, options, clean)
        if clean is not None:
            _renew(item)
        # A parent as the next item: fixtures of function scope end, wider ones stay for the next run.
        is_shown = clean is None if self._only is None else fault is not None
        with nullcontext() if is_shown else _quiet(item):
            reports = runtestprotocol(item, log=False, nextitem=item.parent)  # type: ignore[arg-type]
        self._next = None
        restore_lost()
        return reports, run.seen or RunRecord(fault)

    def _end(
        self,
        item: pytest.Item,
        nextitem: pytest.Item | None,
        reports: list[pytest.TestReport],
        findings: Iterable[StormFinding] = (),
        *,
        runs: int = 0,
    ) -> list[pytest.TestReport]:
        """End the fixtures that the next test does not need, and attach the findings to the report of the call."""
        try:
            item.session._setupstate.teardown_exact(nextitem)
        except Exception as error:
            text = f"the fixtures of {item.nodeid} failed at their end: {type(error).__name__}: {error}"
            reports.append(_failed(item, "teardown", text))
        listed = drop_repeats(findings)
        main = next((report for report in reports if report.when == "call"), reports[0])
        result: dict[str, Any] = {"runs": runs, "findings": [one.as_dict() for one in listed]}
        if self._places is not None:
            result["plan"] = self._places.as_dict()
        if self._only is not None:
            result["calls"] = sorted(self._calls)
        self._places, self._calls = None, set()
        main.user_properties.append((_PROPERTY, json.dumps(result)))
        wrong = [one for one in listed if not one.is_note]
        if wrong and main.passed:  # else the test itself has failed, in the run with `--forbear-fault`
            main.longrepr = "\n".join(
                f"{finding_title(one.as_dict())}; see the section `forbear storm` below" for one in wrong
            )
            main.outcome = "failed"
        return reports

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Observe the call of a test, not its fixtures."""
        run = self._next
        if run is None:
            return (yield)
        function = getattr(item, "function", None)
        code = None if function is None else getattr(inspect.unwrap(function), "__code__", None)  # a doctest has none
        with observing(run.fault, run.options.limits, run.options.effects, run.clean, code) as run.seen:
            return (yield)

    @pytest.hookimpl(specname="pytest_runtest_makereport")
    def pytest_brief_report(self, item: pytest.Item, call: "pytest.CallInfo[None]") -> pytest.TestReport | None:
        """Return a report without a traceback for a failed run with a fault; a traceback takes long."""
        if self._next is None or self._next.fault is None or self._only is not None or call.excinfo is None:
            return None
        if isinstance(call.excinfo.value, pytest.skip.Exception):
            return None
        return _failed(item, call.when, call.excinfo.exconly(tryshort=True))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: "pytest.CallInfo[None]"
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the outcome and the error of a run; unittest shows its errors only here."""
        report = yield
        seen = None if self._next is None else self._next.seen
        # The first error counts: that of a subtest comes before that of its test.
        if call.when == "call" and seen is not None and seen.error is None:
            seen.outcome = report.outcome
            seen.error = None if call.excinfo is None else call.excinfo.value
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the findings, also from the workers of xdist."""
        for name, value in report.user_properties:
            if name == _PROPERTY and report.when != "teardown":
                self._results.append({"test": report.nodeid, **json.loads(str(value))})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """End with a usage error if `--forbear-fault` met nothing, which else would look like a repair."""
        if (
            self._is_missed()
            and session.exitstatus == pytest.ExitCode.OK
            and not hasattr(session.config, "workerinput")
        ):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _is_missed(self) -> bool:
        """Return whether `--forbear-fault` met no call, though tests were run."""
        return self._only is not None and bool(self._results) and not any(one["runs"] for one in self._results)

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Write the findings, and the file of `--forbear-storm-json`."""
        listed = [finding for result in self._results for finding in result["findings"]]
        runs = sum(result["runs"] for result in self._results)
        terminalreporter.section("forbear storm", sep="=")
        tests = f"{len(self._results)} test{'s' * (len(self._results) != 1)}"
        terminalreporter.line(f"{tests}, {runs} run{'s' * (runs != 1)} with a fault, {number_of_each(listed)}")
        if self._is_missed():
            sent = sorted({call for result in self._results for call in result.get("calls", ())})
            terminalreporter.line(text_of_missed_fault(str(self._only), sent), red=True)
        elif self._results and not runs:
            terminalreporter.line(_NOTHING_SENT, yellow=True)
        for finding in listed:
            terminalreporter.line("")
            terminalreporter.line(finding_lines(finding))
        document = {"version": 1, "tests": self._results, "findings": listed}
        if self._plan is not None:
            verdicts = verdicts_of(self._plan, self._results)
            document["plan"] = [asdict(verdict) for verdict in verdicts]
            for line in ("", *verdict_lines(verdicts)):
                terminalreporter.line(line)
        if self._json is not None:
            self._json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        if self._sarif is not None:
            log = storm_sarif(self._results, self._plan, self._folder, version("forbear"))
            self._sarif.write_text(json.dumps(log, indent=2) + "\n", encoding="utf-8")


def _name_test(item: pytest.Item) -> str:
    """Return the id of a test with its file relative to the current folder, as the command that runs it again needs."""
    file, mark, rest = item.nodeid.partition("::")
    path = os.path.relpath(item.config.rootpath / file, item.config.invocation_params.dir)
    return f"{Path(path).as_posix()}{mark}{rest}"


def _failed(item: pytest.Item, when: Literal["setup", "call", "teardown", "collect"], text: str) -> pytest.TestReport:
    phase = "call" if when == "collect" else when
    return pytest.TestReport(item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "failed", text, phase)


@contextmanager
def _quiet(item: pytest.Item) -> Generator[None]:
    """Keep reports of subtests within the block from all plugins, and errors of threads out of the warnings."""
    caller: Any = item.config.hook.pytest_runtest_logreport
    execute = caller._hookexec
    caller._hookexec = _skip_result
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pytest.PytestUnhandledThreadExceptionWarning)
            warnings.simplefilter("ignore", pytest.PytestUnraisableExceptionWarning)
            yield
    finally:
        caller._hookexec = execute
        key: Any = getattr(sys.modules.get("_pytest.subtests"), "failed_subtests_key", None)
        if key is not None and key in item.config.stash:  # pytest 9 counts failed subtests, by test
            item.config.stash[key].pop(getattr(item, "id", item.nodeid), None)


def _skip_result(*_: object) -> list[object]:
    return []


def _renew(item: pytest.Item) -> None:
    """Let the next run of a method have an instance of its own, as each test has."""
    if isinstance(item, pytest.Function) and inspect.ismethod(item.obj) and not inspect.isclass(item.obj.__self__):
        internal: Any = item
        internal.__dict__.pop("_instance", None)
        internal._obj = internal._getobj()
