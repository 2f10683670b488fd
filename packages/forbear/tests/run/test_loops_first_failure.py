"""The first failure of a process loads the modules of a run; wherever it happens, the user's error counts."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, forbear

calls = []

@forbear.retry(OSError, attempts=2, backoff=forbear.Constant(0))
def fetch(times=1):
    calls.append(times)
    if len(calls) <= times:
        raise ConnectionError("lost")
    return "done"

def is_loaded():
    return "forbear.run.state" in sys.modules
"""


def printed_by(script: str, **environ: str) -> str:
    """Run a script in a new interpreter, after the lines that define `fetch`, and return what it prints."""
    command = [sys.executable, "-c", SCRIPT + script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environ})
    assert done.stderr == ""
    return done.stdout.strip()


def test_only_a_failure_loads_the_modules_of_a_run() -> None:
    """Calls that succeed load nothing; a first failure is retried."""
    assert (
        printed_by("print(fetch(0), is_loaded(), calls.clear(), fetch(), is_loaded())") == "done False None done True"
    )


UNLOADABLE = """
sys.modules["forbear.run.state"] = None
try:
    {call}
except ConnectionError as error:
    print(len(calls), error.__notes__, forbear.report(error))
"""


@pytest.mark.parametrize(
    "call", ["fetch()", "import asyncio; asyncio.run(forbear.retry(OSError)(afetch)())"], ids=["sync", "async"]
)
def test_where_they_cannot_be_loaded_the_users_error_is_raised(call: str) -> None:
    """Nothing can judge the error then, so the call is not repeated. A note says so."""
    script = "async def afetch():\n    return fetch.__wrapped__()\n" + UNLOADABLE.format(call=call)
    assert printed_by(script).startswith("1 ['forbear: not retried, because its modules cannot be loaded: ")


def test_a_call_that_needs_a_run_from_the_start_is_not_made_without_it() -> None:
    """`Policy.call` loads them before the first attempt, so nothing was executed if that fails."""
    script = "sys.modules['forbear.run.state'] = None\ntry:\n    fetch.policy.call(fetch.__wrapped__)\n"
    assert printed_by(script + "except ImportError:\n    print(calls)") == "[]"


INTERRUPTED = """
import signal

def handle(number, frame):
    try:
        fetch(9)
    except ConnectionError as error:
        print(len(calls), error.__notes__)

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "forbear.run.ledger":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGTERM)

signal.signal(signal.SIGTERM, handle)
sys.meta_path.insert(0, Interrupt())
print(fetch(2))
"""


def test_a_signal_handler_may_fail_while_they_are_loaded() -> None:
    """The handler's own call raises its error, and the call that was interrupted is retried."""
    first, last = printed_by(INTERRUPTED).splitlines()
    assert first.startswith('2 ["forbear: not retried, because its modules cannot be loaded: partially initialized')
    assert last == "done"


THREADS = """
import threading
barrier = threading.Barrier(8)

@forbear.retry(OSError, backoff=forbear.Constant(0))
def meet(seen):
    seen.append(1)
    if len(seen) == 1:
        barrier.wait()
        raise ConnectionError("lost")

seen = [[] for _ in range(8)]
threads = [threading.Thread(target=meet, args=(each,)) for each in seen]
for each in threads:
    each.start()
for each in threads:
    each.join()
print({len(each) for each in seen})
"""


def test_threads_may_fail_for_the_first_time_at_once() -> None:
    """Each of them is retried."""
    assert printed_by(THREADS) == "{2}"


FORKED = """
@forbear.retry(OSError)
def work():
    own = forbear.run_key("order")
    if os.fork() == 0:
        print(is_loaded(), forbear.retry(OSError)(lambda: forbear.run_key("order"))() == own, flush=True)
        os._exit(0)
    os.wait()

work()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_loads_them_before() -> None:
    """So its child finds none half loaded, and knows which runs are its parent's."""
    assert printed_by(FORKED) == "True False"
    assert printed_by("if os.fork() == 0: os._exit(is_loaded())\nprint(os.wait()[1] >> 8)") == "1"
    script = "import os, sys, forbear\nif os.fork() == 0: os._exit('forbear.run.state' in sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", script + "sys.exit(os.wait()[1] >> 8)"], check=False)
    assert done.returncode == 0  # no policy was used


CHILD = """
if os.fork() == 0:
    known = set(sys.modules)
    print(fetch(), sorted(set(sys.modules) - known), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_first_failure_in_a_child_loads_nothing() -> None:
    """A module that another thread was loading during the fork could never be loaded there: its lock has no owner."""
    assert printed_by(CHILD) == "done []"


REFUSING = """
class Refusing(ConnectionError):
    def add_note(self, note):
        raise ValueError("no notes")

sys.modules["forbear.run.state"] = None
try:
    forbear.retry(OSError)(lambda: calls.append(1) or exec("raise Refusing('lost')"))()
except Refusing as error:
    print(len(calls), error)
"""


def test_an_error_that_refuses_notes_is_raised_without_one() -> None:
    """The error of `add_note` does not hide it."""
    assert printed_by(REFUSING) == "1 lost"


def test_the_last_moment_of_a_program() -> None:
    """A call in a handler of `atexit` is retried, although it is the first that fails."""
    assert printed_by("import atexit\natexit.register(lambda: print(fetch(), len(calls)))") == "done 2"


def test_retries_that_are_off_stay_off() -> None:
    """FORBEAR_DISABLED counts at the first failure, too, as it was when forbear was imported."""
    script = "os.environ['FORBEAR_DISABLED'] = '0'\ntry:\n    fetch()\nexcept ConnectionError:\n    print(len(calls))"
    assert printed_by(script, FORBEAR_DISABLED="1") == "1"
