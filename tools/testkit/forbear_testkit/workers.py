"""Rules for runs in several processes, by pytest-xdist: who collects and runs which file, and what they tell others.

Half of the tests take less than two milliseconds. Without this, each process would collect all tests, and as much goes
by in six messages for each test as in the test.
"""

import gc
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from time import monotonic

import pytest
from _pytest.runner import runtestprotocol
from _pytest.terminal import TerminalReporter
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_LONGEST_WAIT = 0.1
"""The seconds that a test which has passed may wait until it is reported; a process that dies takes such along."""


class WholeFile(pytest.Item):
    """All tests of a file, which are collected when their turn comes, in the one process that runs them."""

    def tests(self) -> list[pytest.Item]:
        """Collect them."""
        assert self.parent is not None
        assert self.parent.parent is not None
        module = pytest.Module.from_parent(self.parent.parent, path=self.path)
        gc.disable()  # what is collected stays
        try:
            tests = [*self.session.genitems(module)]
        finally:
            gc.enable()
        self.config.hook.pytest_collection_modifyitems(session=self.session, config=self.config, items=tests)
        return tests

    def runtest(self) -> None:
        """Run none: `Files` runs them one by one."""
        raise NotImplementedError


class UnopenedFile(pytest.File):
    """A file of tests that is not imported yet."""

    def collect(self) -> Iterator[WholeFile]:
        """Have one item stand for all tests."""
        yield WholeFile.from_parent(self, name="tests")


class Files:
    """In a worker: it collects the files that it is given."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> UnopenedFile:
        return UnopenedFile.from_parent(parent, path=module_path)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, WholeFile):
            return None
        session = item.session
        place = session.items.index(item)
        for test, following in pairwise([*item.tests(), nextitem]):
            assert test is not None
            session.items[place] = test  # xdist compares it with the reports
            item.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
            if session.shouldfail or session.shouldstop:
                break
        session.items[place] = item
        session._setupstate.teardown_exact(nextitem)  # of a file without a test, nobody else ends what came before
        return True


class FewReports:
    """In a worker: tests that pass quickly are reported together, as `earlier` of the next report of their file.

    What fails, is skipped or has output is sent as ever. A message wakes two threads: that costs as much as a test.
    """

    def __init__(self) -> None:
        self._waiting = list[tuple[str, float]]()
        self._sent_at = monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if isinstance(item, WholeFile):
            return None
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if self._can_wait(item, reports, nextitem):
            self._waiting.append((item.nodeid, reports[1].duration))
            return True
        for report in reports:
            if report.when == "call" or not report.passed:
                report.location, report.keywords = item.location, {}  # pytest looks at no keywords in the other process
                setattr(report, "earlier", self._waiting)  # noqa: B010 - a report has any attributes
                self._waiting = []
                item.ihook.pytest_runtest_logreport(report=report)
        self._sent_at = monotonic()
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
        """Look up no place and no keywords of what passes: that takes a tenth of a short test."""
        if call.excinfo is not None or type(item) is not pytest.Function or call.when == "collect":
            return None
        sections = [(f"Captured {key} {when}", content) for when, key, content in item._report_sections]
        return pytest.TestReport(
            item.nodeid,
            ("", None, ""),
            {},
            "passed",
            None,
            call.when,
            sections,
            call.duration,
            call.start,
            call.stop,
            item.user_properties,
        )

    def _can_wait(self, item: pytest.Item, reports: Sequence[pytest.TestReport], nextitem: pytest.Item | None) -> bool:
        """Return whether nothing but the name is of interest, and another test of the file follows soon."""
        return (
            nextitem is not None
            and nextitem.path == item.path
            and monotonic() - self._sent_at < _LONGEST_WAIT
            and all(report.passed for report in reports)
            and not (reports[-1].sections or reports[-1].user_properties or hasattr(reports[1], "wasxfail"))
            and "subtests" not in getattr(item, "fixturenames", ())  # pytest itself looks later whether one has failed
            and not (item.session.shouldfail or item.session.shouldstop)
        )


class FilesInOrder(LoadFileScheduling):  # type: ignore[misc]  # it ships no types
    """Give each worker whole files, in the order in which they were collected, and forget those that are done."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self._indexes = dict[str, int]()
        self.latest = dict[WorkerController, str]()

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        self._indexes = self._indexes or {nodeid: index for index, nodeid in enumerate(collection)}

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        nodeid = self.registered_collections[node][item_index]
        files = self.assigned_work[node]
        file = files[self._split_scope(nodeid)]
        del file[nodeid]
        if not file:
            del files[self._split_scope(nodeid)]
        self._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Return what a worker was at that crashed, and the last test that it had done; no other does it again."""
        files = self.assigned_work.pop(node)
        if not files:
            return None
        file = next(iter(files))
        crashed = next(iter(files[file]))
        del files[file][crashed]
        self.workqueue.update({file: tests for file, tests in files.items() if tests})
        for other in self.nodes:
            self._reschedule(other)
        return f"{crashed}, soon after {self.latest.get(node, 'no test')}"

    def done(self) -> int:
        """Return how many percent of the files are done."""
        waiting = len(self.workqueue) + sum(map(len, self.assigned_work.values()))
        return 100 - 100 * waiting // max(len(self._indexes), 1)

    def _reschedule(self, node: WorkerController) -> None:
        if node in self.registered_collections:  # one that replaces another may not have collected its files yet
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        file, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][file] = tests
        node.send_runtest_some([self._indexes[nodeid] for nodeid in tests])


class Schedules:
    """In the process that gives out the files."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._scheduling: FilesInOrder | None = None

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> FilesInOrder | None:
        if config.getvalue("dist") != "loadfile":
            return None
        self._scheduling = scheduling = FilesInOrder(config, log)
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if isinstance(reporter, TerminalReporter):
            setattr(reporter, "_get_progress_information_message", lambda: f" [{scheduling.done():3d}%]")  # noqa: B010
        return scheduling

    def pytest_configure_node(self, node: WorkerController) -> None:
        node.workerinput["whole_files"] = _takes_whole_files(node.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Report the tests that passed before this one, too: see `FewReports`."""
        for nodeid, duration in report.__dict__.pop("earlier", ()):
            location = (report.location[0], None, nodeid.partition("::")[2])
            earlier = pytest.TestReport(nodeid, location, {}, "passed", None, "call", duration=duration)
            setattr(earlier, "node", report.node)  # noqa: B010 - as pytest-xdist does
            self._config.hook.pytest_runtest_logreport(report=earlier)
        if self._scheduling is not None and hasattr(report, "node"):
            self._scheduling.latest[report.node] = report.nodeid

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Say that no test ran, although there were files: pytest takes them for tests."""
        if self._scheduling is not None and not self._scheduling.latest and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def _takes_whole_files(config: pytest.Config) -> bool:
    """Return whether whole files are run: nobody picks tests by name, by mark or by the last run."""
    option = config.option
    picks = ("keyword", "lf", "failedfirst", "newfirst", "stepwise", "stepwise_skip")
    return (
        config.getvalue("dist") == "loadfile"
        and option.markexpr in ("", "not soak", "soak or not soak")
        and not any(getattr(option, pick, None) for pick in picks)
        and not any("::" in place for place in config.args)
    )


def register(config: pytest.Config) -> None:
    """Register what fits this process; reports that somebody asked for are all sent."""
    given = getattr(config, "workerinput", None)
    if given is None:
        config.pluginmanager.register(Schedules(config))
        return
    os.environ.pop("COVERAGE_PROCESS_CONFIG", None)  # `make coverage` measures this process, not those that tests start
    if given["whole_files"]:
        config.pluginmanager.register(Files())
    if config.option.verbose <= 0 and not config.option.durations and not config.option.xmlpath:
        config.pluginmanager.register(FewReports())
