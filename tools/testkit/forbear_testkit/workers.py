"""Rules for runs in several processes, by pytest-xdist: what they tell each other, and who runs which file.

Half of the tests take less than two milliseconds. Without this, as much goes by in six messages for each test, and in
a search through all tests for the next.
"""

from collections.abc import Sequence

import pytest
from _pytest.runner import runtestprotocol
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class FewReports:
    """In a worker: a test that passes sends one report, that of its call; what fails or is skipped is sent as ever."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                report.keywords = {}  # pytest looks at none of them in the other process
                item.ihook.pytest_runtest_logreport(report=report)
        return True


class FilesInOrder(LoadFileScheduling):  # type: ignore[misc]  # it ships no types
    """Give each worker whole files, in the order in which they were collected, and forget those that are done."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self._indexes = dict[str, int]()

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

    def _assign_work_unit(self, node: WorkerController) -> None:
        file, tests = self.workqueue.popitem(last=False)
        self.assigned_work[node][file] = tests
        node.send_runtest_some([self._indexes[nodeid] for nodeid in tests])


class Schedules:
    """In the process that gives out the tests."""

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> FilesInOrder | None:
        return FilesInOrder(config, log) if config.getvalue("dist") == "loadfile" else None


def register(config: pytest.Config) -> None:
    """Register what fits this process; reports that somebody asked for are all sent."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Schedules())
    elif config.option.verbose <= 0 and not config.option.durations and not config.option.xmlpath:
        config.pluginmanager.register(FewReports())
