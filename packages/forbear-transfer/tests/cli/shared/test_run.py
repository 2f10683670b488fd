"""`forbear cp` as a program: Ctrl-C, a terminal to draw on, and a reader who has seen enough."""

import fcntl
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import FORBEAR, Finish, Start
from forbear_testkit.cli.terminal import on_a_terminal

MIB = 1024 * 1024
SEND = "storage.objects.insert.send"


@pytest.fixture
def big(tmp_path: Path) -> Path:
    """A file that takes several requests."""
    path = tmp_path / "big.bin"
    path.write_bytes(os.urandom(12 * MIB))
    return path


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_transfer_that_can_go_on(
    big: Path, cloud: Cloud, start: Start, finish: Finish, signum: signal.Signals
) -> None:
    """A signal ends it at once with 128 + N and says how to go on; the same command then does the rest, once."""
    cloud.fault(Fault.delay(20, operation=SEND, nth=2))
    command = ("cp", "--endpoint", cloud.url, str(big), "gs://bkt/")
    process = start(*command)
    pause = threading.Event()
    for _ in range(2_000):
        if not cloud.pending_faults:
            break
        pause.wait(0.01)
    process.send_signal(signum)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (128 + signum, "")
    assert err == "interrupted: 0 of 1 file done; run it again: it continues where it stopped\n"
    assert finish(*command).returncode == 0
    assert [item.data for item in cloud.store.bucket("bkt").versions()] == [big.read_bytes()]
    starts = [request for request in cloud.requests if request.operation == "storage.objects.insert.start"]
    assert len(starts) == 1


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_download_leaves_what_it_goes_on_from(
    tmp_path: Path, cloud: Cloud, start: Start, finish: Finish, signum: signal.Signals
) -> None:
    """The part of a large file stays, that of a small one is deleted; nothing is hidden after the next run."""
    sizes = {"large": 12 * MIB, "small": MIB}
    for name, size in sizes.items():
        cloud.store.put("bkt", f"x/{name}", os.urandom(size))
    reached = threading.Event()
    cloud.fault(Fault.stall(512 * 1024, operation="storage.objects.get", times=None))
    command = ("cp", "-r", "--endpoint", cloud.url, "gs://bkt/x/", str(tmp_path / "down"))
    process = start(*command)
    for _ in range(2_000):
        parts = [path.name for path in (tmp_path / "down").glob(".*") if path.stat().st_size]
        if len(parts) == 2:
            break
        reached.wait(0.01)
    process.send_signal(signum)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + signum
    assert err == "interrupted: 0 of 2 files done; run it again: it continues where it stopped\n"
    [left] = (tmp_path / "down").iterdir()
    assert left.name.startswith(".large.")
    cloud.clear_faults()
    assert finish(*command).returncode == 0
    assert {path.name: path.stat().st_size for path in (tmp_path / "down").iterdir()} == sizes


def test_a_terminal_that_is_closed(tmp_path: Path, cloud: Cloud, env: dict[str, str]) -> None:
    """It ends as by any other SIGHUP, though nobody can be told."""
    cloud.store.put("bkt", "x/small", os.urandom(MIB))
    cloud.fault(Fault.stall(512 * 1024, operation="storage.objects.get", times=None))
    command = (*FORBEAR, "cp", "-r", "--endpoint", cloud.url, "gs://bkt/x/", str(tmp_path / "down"))
    ours, theirs = pty.openpty()
    terminal = env | {"TERM": "xterm-256color", "PYTHONUTF8": "1"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=terminal) as process:
        os.close(theirs)
        pause = threading.Event()
        for _ in range(2_000):
            if any(path.stat().st_size for path in (tmp_path / "down").glob(".*")):
                break
            pause.wait(0.01)
        os.close(ours)
        process.send_signal(signal.SIGHUP)  # as the system does where it is the terminal of a session
        assert process.wait(timeout=20) == 129
    assert list((tmp_path / "down").iterdir()) == []


@pytest.mark.parametrize(
    ("command", "signum"),
    [
        (("ls", "--json", "gs://bkt/x/"), signal.SIGTERM),
        (("cp", "-r", "--dry-run", "gs://bkt/x", "y/"), signal.SIGINT),
    ],
    ids=["ls", "cp"],
)
def test_a_reader_that_does_not_read(
    command: tuple[str, ...], signum: signal.Signals, cloud: Cloud, start: Start
) -> None:
    """One signal ends a command that waits for room in a pipe."""
    for number in range(100):
        cloud.store.put("bkt", f"x/{number:060}", b"")
    process = start(command[0], "--endpoint", cloud.url, *command[1:])
    assert process.stdout is not None
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    pause = threading.Event()
    for _ in range(2_000):
        waiting = fcntl.ioctl(process.stdout, termios.FIONREAD, b"\0" * 4)
        if int.from_bytes(waiting, sys.byteorder) > 3_000:
            break
        pause.wait(0.01)
    process.send_signal(signum)
    assert process.wait(timeout=20) == 128 + signum
    assert process.stderr is not None
    assert process.stderr.read() == "interrupted\n"


def test_what_nohup_ignores_stays_ignored(big: Path, cloud: Cloud, env: dict[str, str]) -> None:
    """A terminal that is closed ends nothing then."""
    cloud.fault(Fault.delay(0.3, operation=SEND))
    command = f"trap '' HUP; exec {shlex.join([*FORBEAR, 'cp', '-q', '--endpoint', cloud.url, str(big), 'gs://bkt/'])}"
    with subprocess.Popen(["bash", "-c", command], env=env) as process:
        pause = threading.Event()
        for _ in range(2_000):
            if not cloud.pending_faults:
                break
            pause.wait(0.01)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=20) == 0


def test_a_home_that_cannot_be_written_to(tmp_path: Path, cloud: Cloud, env: dict[str, str]) -> None:
    """A small copy needs no state, nor does a large one; it is said once."""
    for name, size in (("a", 10), ("b", 9 * MIB), ("c", 9 * MIB)):
        (tmp_path / name).write_bytes(b"x" * size)
    home = {name: value for name, value in env.items() if name not in {"FORBEAR_STATE_DIR", "XDG_STATE_HOME"}}
    home["HOME"] = "/dev/null"
    command = [*FORBEAR, "cp", "-r", "--endpoint", cloud.url, str(tmp_path), "gs://bkt/x"]
    done = subprocess.run(command, env=home, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    warning, summary = done.stderr.splitlines()
    assert warning.startswith("warning: cannot keep the state of the transfer in /dev/null/.local/state/forbear")
    assert summary.startswith("3 files")


@pytest.mark.parametrize(
    ("places", "signum"),
    [
        (("gs://bkt/big", "-"), signal.SIGINT),
        (("-", "gs://bkt/new"), signal.SIGINT),
        (("-", "gs://bkt/x"), signal.SIGTERM),
    ],
    ids=["stdout", "stdin", "stdin, SIGTERM"],
)
def test_interrupted_while_a_stream_waits(
    cloud: Cloud, start: Start, places: tuple[str, str], signum: signal.Signals
) -> None:
    """A signal ends it at once even where nobody reads what it writes, or writes what it reads."""
    cloud.store.put("bkt", "big", b"x" * 4 * MIB)
    process = start("cp", "--endpoint", cloud.url, *places)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    if places[0] == "-":
        process.stdin.write("x" * MIB)  # more than a pipe takes: somebody reads
        process.stdin.flush()
    else:
        process.stdout.read(1)
    process.send_signal(signum)
    assert process.wait(timeout=20) == 128 + signum
    assert process.stderr.read() == "interrupted: 0 of 1 file done\n"


@pytest.mark.parametrize(
    ("places", "stream"),
    [
        (("gs://bkt/o", "-"), ">&-"),
        (("gs://bkt/o", "/dev/stdout"), ">&-"),
        (("gs://bkt/o", "//dev/./stdout"), ">&-"),
        (("gs://bkt/o", "out"), ">&-"),
        (("gs://bkt/o", "dev/stdout"), ">&-"),
        (("in", "gs://bkt/o"), "<&-"),
        (("-", "gs://bkt/o"), "<&-"),
        (("/dev/stdin", "gs://bkt/o"), "<&-"),
    ],
)
def test_a_stream_that_is_closed(
    here: Path, cloud: Cloud, env: dict[str, str], places: tuple[str, str], stream: str
) -> None:
    """It is said, since nothing can be copied then, also behind symbolic links."""
    for name, to in (("out", "another"), ("another", "/dev/stdout"), ("in", "/dev/fd/0"), ("dev", "/dev")):
        (here / name).symlink_to(to)
    cloud.store.put("bkt", "o", b"data")
    command = " ".join([*FORBEAR, "cp", "--endpoint", cloud.url, *places, stream])
    done = subprocess.run(command, shell=True, env=env, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "which is closed" in done.stderr


@pytest.mark.parametrize(
    "words", ["ls gs://bkt", "stat gs://bkt/o", "du gs://bkt", "hash gs://bkt/o", "cp --json gs://bkt/o x"]
)
def test_output_that_nobody_can_see_is_an_error(cloud: Cloud, env: dict[str, str], words: str, tmp_path: Path) -> None:
    """A command that prints to a closed stdout fails, and does nothing."""
    cloud.store.put("bkt", "o", b"data")
    command = f"{' '.join(FORBEAR)} {words} --endpoint {cloud.url} >&-"
    done = subprocess.run(command, shell=True, env=env, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: the command needs stdout, which is closed")
    assert not (tmp_path / "x").exists()


def test_a_reader_who_has_seen_enough(cloud: Cloud, env: dict[str, str]) -> None:
    """When who reads stdout leaves early, nothing is said about it."""
    cloud.store.put("bkt", "big", os.urandom(2 * MIB))
    process = subprocess.Popen(
        [*FORBEAR, "cp", "--endpoint", cloud.url, "gs://bkt/big", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(process.stdout.read(10)) == 10
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_terminal(big: Path, cloud: Cloud, env: dict[str, str]) -> None:
    """On a terminal there are a bar, a line for the large file and the last retry; in the end the summary is left."""
    (big.parent / "evil\x1b[2J").write_text("data")
    cloud.fault(Fault.status(503, operation=SEND, times=1))
    terminal = env | {"TERM": "xterm-256color", "PYTHONUTF8": "1"}
    args = ("cp", "-r", "--retry", "constant=0.5", "--endpoint", cloud.url, str(big.parent), "gs://bkt/")
    code, seen = on_a_terminal([*FORBEAR, *args], terminal, 100, both=False)
    assert code == 0
    assert re.search(r"/big\.bin  \d+ %  \S+ .?.?B of 12\.0 MiB", seen)
    assert re.search(r"\x1b\[32m━+.* of 2 files  \d+ %", seen)
    assert re.search(r"\x1b\[33m\S*/big\.bin: 503 Service Unavailable: This is an \w*.*, again in [01]\.\d s", seen)
    assert "\x1b[2J" not in seen
    shown = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen).strip())
    assert shown[-1].startswith("2 files, 12.0 MiB in ")
    assert all(len(line) <= 100 for line in shown)


def test_a_terminal_without_colours(big: Path, cloud: Cloud, env: dict[str, str]) -> None:
    """NO_COLOR leaves out the colours, a dumb terminal all of the drawing."""
    args = ("cp", "--endpoint", cloud.url, str(big), "gs://bkt/")
    _, seen = on_a_terminal(
        [*FORBEAR, *args], env | {"TERM": "xterm-256color", "PYTHONUTF8": "1", "NO_COLOR": "1"}, 40, both=False
    )
    assert "files" in seen
    assert not re.search(r"\x1b\[[0-9;]*m", seen)
    code, dumb = on_a_terminal([*FORBEAR, *args], env | {"TERM": "dumb", "PYTHONUTF8": "1"}, 40, both=False)
    assert code == 0
    assert re.fullmatch(r"1 file, 12\.0 MiB in .*\r\n", dumb)


def test_no_live_lines_among_data(big: Path, cloud: Cloud, env: dict[str, str]) -> None:
    """If stdout is the terminal, too, no live line is drawn among the data."""
    args = ("cp", "--json", "--endpoint", cloud.url, str(big), "gs://bkt/")
    code, seen = on_a_terminal([*FORBEAR, *args], env | {"TERM": "xterm-256color", "PYTHONUTF8": "1"}, 80, both=True)
    outcome, summary, line = seen.splitlines()
    assert (code, json.loads(outcome)["status"], json.loads(summary)["summary"]["done"]) == (0, "done", 1)
    assert line.startswith("1 file, 12.0 MiB in ")
