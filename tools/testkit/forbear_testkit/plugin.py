"""Rules for every test: the hypothesis profiles, the async backend, and that nothing leaves loopback."""

import faulthandler
import gc
import ipaddress
import itertools
import logging
import os
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages
from time import monotonic
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from _pytest.logging import LogCaptureHandler, catching_logs
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import is_local_module_file

from forbear_testkit import certificates

# `quick` runs the same examples every time, so that a red run is red again; `soak` looks for new ones.
settings.register_profile("quick", derandomize=True, database=None, max_examples=40, deadline=None)
settings.register_profile(
    "soak", max_examples=5_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


_FOLDERS = list[str]()
"""The folders of the packages under test."""


def _is_under_test(path: str) -> bool:
    """Return whether hypothesis draws constants of this module: else, they would depend on the tests that run along."""
    return path.startswith(tuple(_FOLDERS)) and is_local_module_file(path)


setattr(providers, "is_local_module_file", _is_under_test)  # noqa: B010 - no checker takes it as an assignment


def _go_on(number: int, frame: object) -> None:
    """Do nothing about a signal."""


# A shell that starts this in the background has Ctrl-C and Ctrl-\ ignored, nohup the end of the terminal. Tests send
# these signals to their children, which inherit what is ignored, but no handler.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, _go_on)

# google-cloud-storage asks for buckets in threads that outlive a test: they would call what the next test serves.
os.environ["DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA"] = "1"
# google-auth reads this once, at its import: no test looks for the metadata server of a virtual machine.
os.environ["NO_GCE_CHECK"] = "true"

_LOCAL_NAMES = {"", "localhost"}


def _is_local(host: object) -> bool:
    """Return whether `host` is on this machine, or a name that by definition resolves nowhere (RFC 6761)."""
    if host is None:
        return True
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name in _LOCAL_NAMES or name.endswith((".localhost", ".invalid")):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _stay_on_loopback(event: str, args: tuple[Any, ...]) -> None:
    """Refuse to look up or to connect to anything that is not on this machine."""
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event in {"socket.connect", "socket.sendto"} and not isinstance(args[1], str | bytes):  # a Unix socket's path
        host = args[1][0]
    else:
        return
    if not _is_local(host):
        raise RuntimeError(f"tests stay on loopback, got {event} to {host!r}: use the embedded cloud or 127.0.0.1")


# A hook sees every library's sockets, and threads' and event loops' too, which a patched `socket` module would not.
sys.addaudithook(_stay_on_loopback)


certificates.leave_out()

# A run of all tests loads hundreds of libraries. To search them for garbage again and again took a tenth of its time.
gc.set_threshold(20_000, 20, 10)
_TESTS_BETWEEN_FREEZES = 200
_finished = itertools.count(1)


def _listen_at_the_root(logs: catching_logs[LogCaptureHandler]) -> LogCaptureHandler:
    """Let pytest hear the root logger alone: it asks a thousand loggers six times a test whether they propagate."""
    root = logging.getLogger()
    if logs.level is not None:
        logs.handler.setLevel(logs.level)
        logs.orig_level = root.level
        root.setLevel(min(root.level, logs.level))
    root.addHandler(logs.handler)
    logs.attached_loggers.append(root)
    return logs.handler


setattr(catching_logs, "__enter__", _listen_at_the_root)  # noqa: B010 - no checker takes it as an assignment


def collect_leftovers() -> None:
    """Collect the garbage of earlier tests: what one left open must not fail another, which cannot say whose it was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def _leave_out_of_collections() -> None:
    """Leave all that is in use by now out of every collection to come."""
    collect_leftovers()
    gc.freeze()


class _Watch:
    """Ends a process whose test hangs, with the stacks of all threads.

    pytest's own timer is set again for each test, which takes as long as many a test. This one is set again after
    a tenth of its time.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._seconds = float(config.getini("hang_timeout"))
        self._set_at = float("-inf")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        now = monotonic()
        if now - self._set_at > self._seconds / 10:
            self._set_at = now
            faulthandler.dump_traceback_later(
                self._seconds, file=item.config.stash[fault_handler_stderr_fd_key], exit=True
            )
        return (yield)

    def pytest_sessionfinish(self) -> None:
        faulthandler.cancel_dump_traceback_later()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Know the setting of anyio's plugin where anyio is not installed: few of the tests need it."""
    parser.addini("hang_timeout", "seconds after which a test that hangs ends its process", default="300")
    if find_spec("anyio") is None:
        parser.addini("anyio_mode", "as in anyio")


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Let `-n auto` start three processes for two processors: tests wait a quarter of their time."""
    processors = yield
    return processors if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else processors + processors // 2


def pytest_configure(config: pytest.Config) -> None:
    """Watch for tests that hang, and know what holds for several processes, where there may be some."""
    config.pluginmanager.register(_Watch(config))
    if config.pluginmanager.hasplugin("xdist"):
        import_module("forbear_testkit.workers").register(config)


def pytest_collection() -> None:
    """Load all that a test could load later; the controller of pytest-xdist, which runs no test, skips this hook.

    Hypothesis draws constants that it finds in the modules loaded. One that is loaded in mid-test changes what
    is drawn, and the test fails as flaky.
    """
    gc.disable()  # what is loaded and collected stays, and to search it takes a tenth of the time
    for package in ("forbear", "forbear_audit", "forbear_cloud", "forbear_simulate", "forbear_transfer"):
        with suppress(ImportError):  # the tests of one package run without its siblings, too
            folders = import_module(package).__path__
            _FOLDERS.extend(folders)
            for module in walk_packages(folders, f"{package}.", onerror=lambda _: None):
                if not module.name.endswith("__main__"):
                    with suppress(
                        ImportError, AttributeError
                    ):  # libraries of extras are missing, or older than allowed
                        import_module(module.name)


def _is_soak(marks: Iterable[pytest.Mark]) -> bool:
    return any(mark.name == "soak" for mark in marks)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> list[None] | None:
    """Make no tests of functions that are marked soak, where these are left out: there are 2 000."""
    if not name.startswith("test") or collector.config.option.markexpr != "not soak":
        return None
    return [] if _is_soak([*collector.iter_markers("soak"), *getattr(obj, "pytestmark", ())]) else None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, None, None]:
    """Make no tests of rows that are marked soak either, which are 7 000 more; one stands for all, if all are."""
    yield
    if metafunc.config.option.markexpr == "not soak":
        metafunc._calls = [call for call in metafunc._calls if not _is_soak(call.marks)] or metafunc._calls[:1]


def pytest_collection_finish() -> None:
    """Start with only the objects of tests in reach of the collector."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Leave out, now and then, what the tests so far have loaded."""
    result = yield
    if next(_finished) % _TESTS_BETWEEN_FREEZES == 0:
        _leave_out_of_collections()
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sums of what campaigns counted: the properties of tests whose names begin with "figures of "."""
    sums = dict[str, Counter[str]]()
    for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")):
        for name, counts in report.user_properties:
            if name.startswith("figures of "):
                sums.setdefault(name, Counter()).update(counts)
    for name, counts in sums.items():
        terminalreporter.write_line(
            f"{name}: " + ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        )


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on asyncio; a test about trio parametrizes `anyio_backend` with "asyncio" and "trio"."""
    return "asyncio"


@pytest.fixture
def forkable() -> None:
    """Keep forked processes from collecting what other tests left: gRPC's waits for a thread that no fork has."""
    gc.freeze()
