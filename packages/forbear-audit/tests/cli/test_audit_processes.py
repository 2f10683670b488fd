"""The processes of an audit: one that is killed, Ctrl-C, a closed pipe, and names that are no text."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit, engine
from forbear_audit.sarif import as_sarif
from forbear_testkit.audit.deadly import read_batch

RETRIED = "import tenacity\n\n\n@tenacity.retry\ndef f():\n    return g()\n"


SETTINGS = AuditSettings(select=("UNBOUNDED",))


def test_a_process_that_is_killed_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a process is killed, the files are read one by one, and the one that it died of is reported."""
    for number in range(40):
        (tmp_path / f"m{number}.py").write_text(RETRIED)
    (tmp_path / "deadly.py").write_text(RETRIED)
    monkeypatch.setattr(engine, "_read_batch", read_batch)
    result = audit([tmp_path], settings=SETTINGS, jobs=2)
    assert len(result.findings) == 40
    (unread,) = result.unread
    assert Path(unread.path).name == "deadly.py"
    assert unread.reason == "the process that read it was killed, perhaps out of memory"


def command(*args: str) -> list[str]:
    """The command line of an audit."""
    return [sys.executable, "-m", "forbear", "audit", *args]


def is_alive(group: int) -> bool:
    """Return whether a process of the group runs; one that has ended may wait for whoever adopted it."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, leader = stat.read_text().rpartition(")")[2].split()[:3]
            if int(leader) == group and state not in "ZX":
                return True
    return False


def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    """After Ctrl-C in a terminal the exit code is 130, nothing is printed, and no process is left."""
    text = (
        "import time\n"
        + "def f():\n    for i in range(3):\n        try:\n            g()\n        except E:\n            h()\n" * 2000
    )
    for number in range(64):
        (tmp_path / f"m{number}.py").write_text(text)
    with subprocess.Popen(
        command(str(tmp_path), "--jobs", "2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while len(children.read_text().split()) < 3 and process.poll() is None:  # two workers, and their tracker
            pass
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")
    end = time.monotonic() + 30
    while is_alive(process.pid):  # the tracker of multiprocessing ends a moment later
        assert time.monotonic() < end


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """A command whose output is not read ends without a word."""
    (tmp_path / "a.py").write_text("import tenacity\n" + "@tenacity.retry\ndef f():\n    g()\n" * 1000)
    with subprocess.Popen(command(str(tmp_path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_names_that_are_no_text_are_printed(tmp_path: Path) -> None:
    """A name that is no UTF-8, or that commands a terminal, is printed by what it is, and SARIF has it."""
    for name in (b"a\xff.py", b"b\x1b[31m.py", b"c\n.py"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(RETRIED)
    done = subprocess.run(command(str(tmp_path), "--select", "UNBOUNDED"), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"\x1b" not in done.stdout
    assert len([line for line in done.stdout.splitlines() if b": error UNBOUNDED: " in line]) == 3
    log = json.loads(json.dumps(as_sarif(audit([tmp_path], settings=SETTINGS), "1", root=tmp_path)))
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"] for result in log["runs"][0]["results"]]
    assert [place["uri"] for place in places] == ["a%FF.py", "b%1B%5B31m.py", "c%0A.py"]
