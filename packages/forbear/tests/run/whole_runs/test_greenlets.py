"""gevent and eventlet may replace the standard library after forbear was imported; then forbear waits as they do."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import forbear

COMMON = """
import forbear, socket
from forbear.shared_budget.client_link import ClientLink
from forbear.shared_budget.link import SocketLink, parse_url
listener = socket.create_server(("127.0.0.1", 0))  # it never answers
class Client:
    def execute_command(self, *command):
        import time
        time.sleep(0.01)
        steps.append("answered")
        return b"x"
urls = {"address": "redis://127.0.0.1:%d", "name": "redis://localhost:%d", "tls": "rediss://localhost:%d"}
port = listener.getsockname()[1]
links = {"client": ClientLink(Client()), **{name: SocketLink(parse_url("url", urls[name] % port)) for name in urls}}
steps = []
"""

GEVENT = """
from gevent import monkey
monkey.patch_all()
import gevent
spawn, join = gevent.spawn, gevent.joinall
"""

EVENTLET = """
import warnings
warnings.simplefilter("ignore")  # eventlet is deprecated
import eventlet
eventlet.monkey_patch()
spawn, join = eventlet.spawn, lambda threads: [thread.wait() for thread in threads]
"""

WAITS = """
@forbear.retry(on=OSError, backoff=forbear.Constant(0.01))
def function():
    steps.append("attempt")
    if steps.count("attempt") < 2:
        raise OSError
def block():
    for attempt in forbear.retry(on=OSError, backoff=forbear.Constant(0.01)):
        with attempt:
            steps.append("attempt")
            if steps.count("attempt") < 2:
                raise OSError
def stopped():
    import threading
    with forbear.stop_on(threading.Event()):
        function()
def link(name):
    def wait():
        link = links[name]
        steps.append("attempt")
        link.send((b"EVAL", b"", b"0"), 0.0)
        link.wait(0.05)
        link.close()
        steps.append("attempt")
    return wait
for waiter in (function, block, stopped, *map(link, links)):
    steps.clear()
    join([spawn(waiter), spawn(steps.append, "other")])
    assert steps.index("other") == 1 and steps.count("attempt") == 2, (waiter, steps)
print("all waited")
"""


@pytest.mark.parametrize("patch", [GEVENT, EVENTLET], ids=["gevent", "eventlet"])
def test_others_run_while_one_waits(patch: str) -> None:
    """In functions, blocks, scopes and shared budgets a wait blocks its own greenlet, and no other."""
    script = COMMON + patch + WAITS
    environment = {**os.environ, "EVENTLET_NO_GREENDNS": "yes"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment, timeout=60
    )
    assert (done.stdout, done.returncode) == ("all waited\n", 0), done.stderr


_BOUND = re.compile(
    r"^\s*from (?:time import .*\bsleep\b|queue import|select(?:ors)? import|socket import (?!gaierror$)"
    r"|threading import (?!current_thread|get_ident))"
    r"|^ {0,4}\w+ = (?:staticmethod\()?(?:time\.sleep|threading\.(?:Lock|Event|Condition)\(|socket\.socket\b)",
    re.MULTILINE,
)


def test_nothing_that_blocks_is_bound_at_import() -> None:
    """Modules look `time.sleep` and its like up when they call them; a program may replace them after the import."""
    source = Path(forbear.__file__).parent
    files = [path for path in source.rglob("*.py") if path.relative_to(source).parts[0] not in ("cli", "testing")]
    found = {str(path.relative_to(source)): hits for path in files if (hits := _BOUND.findall(path.read_text("utf-8")))}
    assert found == {}
