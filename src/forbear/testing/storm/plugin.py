"""The storm in pytest: run each selected test clean twice, then once for each of its calls and faults.

`forbear.testing.pytest_plugin` registers it if one of its options is given.
"""

import inspect
import json
import os
import sys
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from types import CodeType
from typing import Any, Literal

import pytest
from _pytest.runner import runtestprotocol

from forbear.testing.storm.counting import Effects
from forbear.testing.storm.faults import FAULTS, PlannedFault, parse_fault
from forbear.testing.storm.function import chosen, differs, known_faults
from forbear.testing.storm.judge import StormFinding, judge, unstable
from forbear.testing.storm.observe import Observation, StormLimits, observing
from forbear.testing.storm.places import StormPlan
from forbear.testing.storm.sarif import storm_sarif
from forbear.testing.storm.verdicts import ReachedPlaces, verdict_lines, verdicts_of

_PROPERTY = "forbear_storm"
_MARKER = "forbear_storm"
_IGNORED = "forbear_ignore"
_ARGUMENTS = {"faults", "attempts", "minutes", "sample", "effects"}


class StormPlugin:
    """The hooks of a storm. With `only`, the one fault of `--forbear-fault`, tests run with that alone."""

    def __init__(self, config: pytest.Config) -> None:
        self._sample: int | None = config.getoption("forbear_storm_sample")
        self._seed = int(config.getoption("forbear_storm_seed") or 0)
        self._json = _writable(config, "--forbear-storm-json")
        self._sarif = _writable(config, "--forbear-storm-sarif")
        self._folder = config.invocation_params.dir
        self._plan = _read_plan(config)
        self._places: ReachedPlaces | None = None
        only: str | None = config.getoption("forbear_fault")
        try:
            self._only = None if only is None else parse_fault(only)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None
        if self._sample is not None and self._sample < 1:
            raise pytest.UsageError(f"`--forbear-storm-sample` must be at least 1, got {self._sample}")
        self._next: tuple[PlannedFault | None, StormLimits, tuple[Effects, ...], Observation | None] | None = None
        self._observation: Observation | None = None
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
        options = _options(item)
        limits = StormLimits(options.get("attempts", 10), options.get("minutes", 10))
        effects = tuple(_sources(item, options.get("effects")))
        reports, clean = self._run(item, None, limits, effects)
        if not all(report.passed for report in reports) or not clean.calls:
            return self._end(item, nextitem, reports)
        self._places = None if self._plan is None else ReachedPlaces(self._plan, clean)
        if self._places is not None and not self._places.numbers:
            return self._end(item, nextitem, reports)
        _, again = self._run(item, None, limits, effects, clean)
        if clean.signature() != again.signature():
            return self._end(item, nextitem, reports, [unstable(item.nodeid, differs(clean, again))])
        clean.waited = max(clean.waited, again.waited)
        if self._only is not None:
            if not any(self._only.hits(call.label, call.number) for call in clean.calls):
                return self._end(item, nextitem, reports)
            planned = [self._only]
        else:
            allowed = known_faults(options.get("faults", FAULTS))
            faults = None if self._plan is None else self._plan.faults(clean.calls)
            sample = options.get("sample", self._sample)
            planned = chosen(clean, allowed, sample, f"{self._seed}:{item.nodeid}", faults)
        findings: list[StormFinding] = []
        for fault in planned:
            done, run = self._run(item, fault, limits, effects, clean)
            if not done[0].passed:
                findings.append(unstable(item.nodeid, f"its fixtures failed in the run with {fault}"))
                break
            nested = self._places is not None and self._places.has("NESTED", fault)
            judged = judge(_named(item), clean, run, limits, nested=nested)
            if self._places is not None:
                judged = [finding for finding in judged if finding.kind != "lost"]  # a plan is about harm
                self._places.add(fault, judged)
            findings += judged
            if self._only is not None:
                reports = done
        return self._end(item, nextitem, reports, findings, runs=len(planned))

    def _run(
        self,
        item: pytest.Item,
        fault: PlannedFault | None,
        limits: StormLimits,
        effects: tuple[Effects, ...],
        clean: Observation | None = None,
    ) -> tuple[list[pytest.TestReport], Observation]:
        """Run the test once with all its fixtures of function scope, without reporting it."""
        self._next, self._observation = (fault, limits, effects, clean), None
        # A parent as the next item: fixtures of function scope end, wider ones stay for the next run.
        with nullcontext() if _is_shown(fault, clean, self._only) else _quiet(item):
            reports = runtestprotocol(item, log=False, nextitem=item.parent)  # type: ignore[arg-type]
        self._next = None
        seen = self._observed()
        return reports, Observation(fault) if seen is None else seen

    def _observed(self) -> Observation | None:
        return self._observation

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
        listed = _without_repeats(findings)
        main = next((report for report in reports if report.when == "call"), reports[0])
        result: dict[str, Any] = {"runs": runs, "findings": [one.as_dict() for one in listed]}
        if self._places is not None:
            result["plan"] = self._places.as_dict()
        self._places = None
        main.user_properties.append((_PROPERTY, json.dumps(result)))
        wrong = [one for one in listed if not one.is_note]
        if wrong and main.passed:  # else the test itself has failed, in the run with `--forbear-fault`
            main.longrepr = "\n".join(_lines(one.as_dict()) for one in wrong)
            main.outcome = "failed"
        return reports

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Observe the call of a test, not its fixtures."""
        if self._next is None:
            return (yield)
        with ExitStack() as stack:
            self._observation = stack.enter_context(observing(*self._next, _code(item)))
            return (yield)

    @pytest.hookimpl(specname="pytest_runtest_makereport")
    def pytest_brief_report(self, item: pytest.Item, call: "pytest.CallInfo[None]") -> pytest.TestReport | None:
        """Return a report without a traceback for a failed run with a fault; a traceback takes long."""
        if self._next is None or self._next[0] is None or self._only is not None or call.excinfo is None:
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
        seen = self._observation
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

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Write the findings, and the file of `--forbear-storm-json`."""
        listed = [finding for result in self._results for finding in result["findings"]]
        runs = sum(result["runs"] for result in self._results)
        terminalreporter.section("forbear storm", sep="=")
        tests = f"{len(self._results)} test{'s' * (len(self._results) != 1)}"
        terminalreporter.line(f"{tests}, {runs} run{'s' * (runs != 1)} with a fault, {_counted(listed)}")
        for finding in listed:
            terminalreporter.line("")
            terminalreporter.line(_lines(finding))
        document = {"version": 1, "tests": self._results, "findings": listed}
        if self._plan is not None:
            verdicts = verdicts_of(self._plan, self._results)
            document["plan"] = [verdict.as_dict() for verdict in verdicts]
            for line in ("", *verdict_lines(verdicts)):
                terminalreporter.line(line)
        if self._json is not None:
            self._json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        if self._sarif is not None:
            log = storm_sarif(self._results, self._plan, self._folder, version("forbear"))
            self._sarif.write_text(json.dumps(log, indent=2) + "\n", encoding="utf-8")


def _named(item: pytest.Item) -> str:
    """Return the id of a test with its file relative to the current folder, as the command that runs it again needs."""
    file, mark, rest = item.nodeid.partition("::")
    path = os.path.relpath(item.config.rootpath / file, item.config.invocation_params.dir)
    return f"{Path(path).as_posix()}{mark}{rest}"


def _writable(config: pytest.Config, option: str) -> Path | None:
    """Return the file of an option, None without it; UsageError if its folder does not exist."""
    name: str | None = config.getoption(option)
    if name is None:
        return None
    file = config.invocation_params.dir / name
    if not file.parent.is_dir() or file.is_dir():
        raise pytest.UsageError(f"`{option}` must be a file in a folder that exists, got {name}")
    return file


def _read_plan(config: pytest.Config) -> StormPlan | None:
    """Return the plan of `--forbear-storm-plan`, None without it; UsageError for a bad one."""
    name: str | None = config.getoption("forbear_storm_plan")
    if name is None:
        return None
    if not config.getoption("forbear_storm") or config.getoption("forbear_fault"):
        raise pytest.UsageError("`--forbear-storm-plan` goes with `--forbear-storm`, and not with `--forbear-fault`")
    folder = config.invocation_params.dir
    try:
        return StormPlan.read(folder / name, (folder, config.rootpath))
    except ValueError as error:
        raise pytest.UsageError(f"`--forbear-storm-plan`: {error}") from None


def _failed(item: pytest.Item, when: Literal["setup", "call", "teardown", "collect"], text: str) -> pytest.TestReport:
    phase = "call" if when == "collect" else when
    return pytest.TestReport(item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "failed", text, phase)


def _is_shown(fault: PlannedFault | None, clean: Observation | None, only: PlannedFault | None) -> bool:
    """Return whether pytest shows this run: the first clean one, or that of `--forbear-fault`."""
    return clean is None if only is None else fault is not None


@contextmanager
def _quiet(item: pytest.Item) -> Generator[None]:
    """Keep reports of subtests within the block from all plugins; they are made during the test."""
    caller: Any = item.config.hook.pytest_runtest_logreport
    execute = caller._hookexec
    caller._hookexec = lambda *arguments: []
    try:
        yield
    finally:
        caller._hookexec = execute
        for failed in _failed_subtests(item.config):
            failed.pop(getattr(item, "id", item.nodeid), None)


def _failed_subtests(config: pytest.Config) -> Iterable[dict[str, int]]:
    """Yield the numbers of failed subtests that pytest 9 keeps, by test."""
    module: Any = sys.modules.get("_pytest.subtests")
    key = getattr(module, "failed_subtests_key", None)
    if key is not None and key in config.stash:
        yield config.stash[key]


def _code(item: pytest.Item) -> CodeType | None:
    """Return the code of a test's function, None if it has none."""
    return getattr(inspect.unwrap(getattr(item, "function", _options)), "__code__", None)


def _options(item: pytest.Item) -> dict[str, Any]:
    """Return the arguments of the markers of a test, the nearest first; UsageError for an unknown one."""
    options: dict[str, Any] = {}
    for marker in item.iter_markers(_MARKER):
        unknown = sorted(marker.kwargs.keys() - _ARGUMENTS)
        if unknown or marker.args:
            rule = f"@pytest.mark.{_MARKER} takes the keywords {', '.join(sorted(_ARGUMENTS))}"
            raise pytest.UsageError(f"{rule}; {item.nodeid} has {(unknown or marker.args)[0]!r}")
        options = dict(marker.kwargs) | options
    return options


def _sources(item: pytest.Item, effects: Effects | str | None) -> Iterable[Effects]:
    """Yield the source of effects: a function, or the fixture of that name, which is or returns one."""
    if effects is None:
        return
    if callable(effects):
        yield effects
        return

    def from_fixture() -> Any:
        values: dict[str, Any] = getattr(item, "funcargs", None) or {}
        if effects not in values:
            raise pytest.UsageError(f"`effects` of {item.nodeid} must be a fixture that the test uses, got {effects!r}")
        value: Any = values[effects]
        return value() if callable(value) else value

    yield from_fixture


def _without_repeats(findings: Iterable[StormFinding]) -> list[StormFinding]:
    """Return the first finding of each kind for each call and place, with all that are no notes first."""
    kept: dict[tuple[str, str, str], StormFinding] = {}
    for finding in findings:
        kept.setdefault((finding.kind, finding.site, finding.call.partition("#")[0]), finding)
    return sorted(kept.values(), key=lambda finding: finding.is_note)


def _counted(listed: list[dict[str, str]]) -> str:
    kinds = sorted({finding["kind"] for finding in listed})
    counts = (f"{sum(finding['kind'] == kind for finding in listed)} {kind}" for kind in kinds)
    return ", ".join(counts) or "nothing found"


def _lines(finding: dict[str, str]) -> str:
    """Return a finding as text: what, where, and the command that shows it again."""
    rule = f" ({finding['rule']})" if finding["rule"] else ""
    call = f"{finding['call']} at {finding['site']}: " if finding["call"] else ""
    lines = [f"{finding['kind']}{rule}: {finding['test']}", f"  {call}{finding['text']}"]
    return "\n".join(lines + ([f"  {finding['reproduction']}"] if finding["reproduction"] else []))
