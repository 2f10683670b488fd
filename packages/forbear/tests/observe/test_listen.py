"""Listeners: the policy's own one and the process's get each event once, whatever the others do."""

import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from forbear.core.events import Event
from forbear.observe import all_of, listen
from forbear_testkit.observe.runs import recovers, run


def names(told: list[Event]) -> list[str]:
    """The kinds of the events."""
    return [type(event).__name__ for event in told]


RECOVERS = ["Failed", "Scheduled", "Failed", "Scheduled", "Recovered"]


def broken(event: Event) -> None:
    """A listener that fails."""
    raise ValueError("no room")


def test_the_process_hears_all_runs_besides_their_own_listeners() -> None:
    """`on_event` takes nothing away from who listens to the whole process."""
    own: list[Event] = []
    first: list[Event] = []
    second: list[Event] = []
    listen(first.append, second.append)
    recovers(own.append)
    recovers()
    assert names(own) == RECOVERS
    assert names(first) == names(second) == RECOVERS * 2


def test_listening_replaces_who_listened_before(caplog: pytest.LogCaptureFixture) -> None:
    """Also the logger; and with no listeners, nobody hears."""
    told: list[Event] = []
    listen(told.append)
    listen()
    recovers()
    assert told == []
    assert caplog.records == []


def test_all_of_tells_each_in_turn() -> None:
    """One that fails is warned about and keeps no other from hearing."""
    first: list[Event] = []
    second: list[Event] = []
    with pytest.warns(RuntimeWarning, match=r"a listener failed on \w+: ValueError: no room"):
        recovers(all_of(first.append, broken, second.append))
    assert names(first) == names(second) == RECOVERS


def test_a_failing_listener_of_the_process_is_warned_about() -> None:
    """The run's own listener still hears, and the run goes on."""
    own: list[Event] = []
    listen(broken)
    with pytest.warns(RuntimeWarning, match="a listener failed on"):
        recovers(own.append)
    assert names(own) == RECOVERS


@pytest.mark.parametrize("take", [listen, all_of], ids=["listen", "all_of"])
def test_what_cannot_be_called_is_refused(take: Callable[..., object]) -> None:
    """At once, not when something fails."""
    nonsense: Any = "log"
    with pytest.raises(TypeError, match="a listener must be callable with one event, got 'log'"):
        take(nonsense)


def test_a_run_that_succeeds_at_once_looks_for_no_listener() -> None:
    """There is no event, so no time is spent on finding out who listens."""
    told: list[Event] = []
    listen(told.append)
    run("value")
    assert told == []


SILENT = """
import sys
import forbear
{setup}
try:
    forbear.retry(on=OSError, attempts=2, backoff=forbear.Constant(0), name="fetch").call(open, "/nowhere/at/all")
except OSError:
    pass
print("logging" in sys.modules, "forbear.observe.logging" in sys.modules)
"""


@pytest.mark.parametrize(
    ("setup", "loaded", "lines"),
    [
        ("", "False False", 0),
        ("import logging", "True False", 0),
        ("import logging; logging.basicConfig()", "True True", 2),
        ("import logging; logging.basicConfig(level='ERROR')", "True False", 0),
        ("import logging; logging.basicConfig(); logging.getLogger('forbear').disabled = True", "True False", 0),
        ("import logging; logging.basicConfig(); logging.getLogger('forbear').setLevel('ERROR')", "True False", 0),
        ("import logging; logging.getLogger('forbear').addHandler(logging.StreamHandler())", "True True", 2),
        ("import logging, forbear.observe; logging.basicConfig(); forbear.observe.listen()", "True False", 0),
    ],
)
def test_the_logger_is_told_where_it_is_heard(setup: str, loaded: str, lines: int) -> None:
    """By default retries are logged once the application has set up logging; nothing is loaded for nobody."""
    done = subprocess.run(
        [sys.executable, "-c", SILENT.format(setup=setup)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{loaded}\n"
    assert len(done.stderr.splitlines()) == lines, done.stderr


def test_the_default_survives_other_loggers(caplog: pytest.LogCaptureFixture) -> None:
    """The levels of other loggers make no difference."""
    logging.getLogger("other").setLevel(logging.CRITICAL)
    recovers()
    assert len(caplog.records) == 2
