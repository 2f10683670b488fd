"""`forbear run` with real programs: what it repeats, its messages and its exit code."""

import json
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from forbear_testkit.cli.running import FORBEAR, Finish, Finished, Invoke, Start

QUICK = ("--constant", "0")


@pytest.fixture
def inside(invoke: Invoke, capfd: pytest.CaptureFixture[str]) -> Finish:
    """Run the command line in this process, which is quicker; what its program wrote comes before its own messages."""

    def call(*args: str) -> Finished:
        done = invoke(*args)
        written = capfd.readouterr()
        return Finished(args, done.exit_code, written.out + done.stdout, written.err + done.stderr)

    return call


def test_a_success_is_left_alone(inside: Finish) -> None:
    """A program that works runs once, and nothing is added to what it says."""
    done = inside("run", "--", "sh", "-c", "echo out; echo err >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "err\n")


def test_a_failure_is_repeated(inside: Finish) -> None:
    """A program that fails runs again until it works; each attempt knows its number, and stderr tells of it."""
    done = inside("run", *QUICK, "sh", "-c", 'echo $FORBEAR_ATTEMPT; test "$FORBEAR_ATTEMPT" = 3')
    assert (done.returncode, done.stdout) == (0, "1\n2\n3\n")
    assert done.stderr.splitlines() == [
        "forbear: exit code 1; attempt 2 of 5 in 0 s",
        "forbear: exit code 1; attempt 3 of 5 in 0 s",
        "forbear: attempt 3 worked",
    ]


def test_the_last_exit_code_is_passed_on(inside: Finish) -> None:
    """When the limit is reached, the exit code is the program's and the note says why there is no further attempt."""
    done = inside("run", *QUICK, "--attempts", "3", "sh", "-c", "exit $((10 + FORBEAR_ATTEMPT))")
    assert done.returncode == 13
    note = done.stderr.splitlines()[-1]
    assert note.startswith("forbear: gave up after 3 attempts in ")
    assert note.endswith("s: limit of 3 attempts reached [attempts]; last failure: exit code 13")


def test_quiet_says_nothing(inside: Finish) -> None:
    """With `-q` stderr is the program's alone."""
    done = inside("run", *QUICK, "-q", "sh", "-c", "exit 1")
    assert (done.returncode, done.stderr) == (1, "")


def test_a_wait_beyond_the_timeout_is_not_begun(inside: Finish) -> None:
    """A wait that would end after `--timeout` ends the run at once."""
    done = inside("run", "--constant", "1h", "--timeout", "1m30s", "false")
    assert done.returncode == 1
    assert "timeout of 90 s would be passed by the next wait of 3600 s" in done.stderr


def test_a_death_by_signal_is_told_as_shells_do(inside: Finish) -> None:
    """A program that signal n killed gives 128 + n, and crashing is worth another attempt."""
    done = inside("run", *QUICK, "--attempts", "2", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == 139
    assert "forbear: exit code 139 (SIGSEGV); attempt 2 of 2 in 0 s\n" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "attempts"),
    [
        ((), 1, 2),
        ((), 75, 2),
        ((), 124, 2),
        ((), 137, 2),
        ((), 255, 2),
        ((), 2, 1),
        ((), 126, 1),
        ((), 127, 1),
        ((), 129, 1),
        ((), 130, 1),
        ((), 131, 1),
        ((), 141, 1),
        ((), 143, 1),
        (("--on", "2"), 2, 2),
        (("--on", "2"), 1, 1),
        (("--on", "1,100-110"), 105, 2),
        (("--on", "1,100-110"), 111, 1),
        (("--stop-on", "75"), 75, 1),
        (("--stop-on", "75"), 74, 2),
        (("--on", "1-10", "--stop-on", "3"), 3, 1),
    ],
)
def test_which_exit_codes_are_repeated(
    options: tuple[str, ...], code: int, attempts: int, invoke: Invoke, capfd: pytest.CaptureFixture[str]
) -> None:
    """By default all but bad usage, what cannot run and what the user ended; otherwise as the user says."""
    done = invoke("run", *QUICK, "--attempts", "2", *options, "sh", "-c", f"echo $FORBEAR_ATTEMPT; exit {code}")
    assert done.exit_code == code
    assert capfd.readouterr().out.split() == ["1", "2"][:attempts]


def test_what_is_not_found_or_cannot_run(inside: Finish, tmp_path: Path) -> None:
    """These get the exit codes that shells give, an error with a cure, and no second attempt."""
    missing = inside("run", "no-such-program")
    assert (missing.returncode, missing.stderr) == (
        127,
        "error: command not found: no-such-program\nhint: check its name, and that its folder is in PATH\n",
    )
    plain = tmp_path / "plain.txt"
    plain.write_text("text")
    denied = inside("run", str(plain))
    assert denied.returncode == 126
    assert denied.stderr.startswith(f"error: cannot run {plain}: ")


def test_a_long_attempt_is_ended_with_all_its_processes(inside: Finish) -> None:
    """An attempt timeout ends the whole process group, and counts as a failure that is worth another attempt."""
    script = "sleep 60 & echo $!; wait"
    done = inside("run", *QUICK, "--attempts", "2", "--attempt-timeout", "300ms", "sh", "-c", script)
    assert done.returncode == 124
    assert "forbear: ended after 0.3 s; attempt 2 of 2 in 0 s\n" in done.stderr
    sleepers = done.stdout.split()
    assert len(sleepers) == 2
    assert not any(alive(sleeper) for sleeper in sleepers)


def alive(pid: str) -> bool:
    """Return whether there is such a process that is not a zombie."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False).stdout
    return bool(shown.strip()) and not shown.startswith("Z")


def test_who_ignores_sigterm_is_killed(inside: Finish) -> None:
    """After the grace the group is killed, and a program that ends with 0 just then has not worked either."""
    stubborn = "trap '' TERM; for i in $(seq 999); do sleep 0.01; done"
    done = inside("run", "--attempts", "1", "--attempt-timeout", "50ms", "--grace", "50ms", "sh", "-c", stubborn)
    assert done.returncode == 124
    polite = "trap 'exit 0' TERM; for i in $(seq 999); do sleep 0.01; done"
    done = inside("run", "--attempts", "1", "--attempt-timeout", "200ms", "sh", "-c", polite)
    assert done.returncode == 124


def test_the_rest_of_the_group_has_its_grace_too(inside: Finish) -> None:
    """When the program itself is gone, what it started may still clean up before the next attempt."""
    worker = "trap 'sleep 0.1; echo clean; exit' TERM; echo ready; for i in $(seq 999); do sleep 0.01; done"
    script = f"({worker}) & read nothing < /dev/null; exec sleep 60"
    done = inside("run", "--attempts", "1", "--attempt-timeout", "500ms", "--grace", "5", "sh", "-c", script)
    assert done.stdout.split() == ["ready", "clean"]


def test_the_attempt_timeout_is_never_longer_than_what_is_left(inside: Finish) -> None:
    """An attempt with a time limit ends when the timeout of the run is over."""
    done = inside("run", "--attempt-timeout", "1h", "--timeout", "100ms", "sleep", "60")
    assert done.returncode == 124
    assert "forbear: gave up after 1 attempt" in done.stderr


def test_stdin_from_a_pipe_is_replayed(finish: Finish) -> None:
    """Every attempt reads the same input, however much of it the ones before have read."""
    text = "".join(f"{number}\n" for number in range(60_000))
    script = 'test "$FORBEAR_ATTEMPT" = 2 && head -n 1; test "$FORBEAR_ATTEMPT" = 3 && exec cat; exit 1'
    done = finish("run", *QUICK, "sh", "-c", script, input=text)
    assert done.returncode == 0
    assert done.stdout == "0\n" + text


def test_stdin_from_a_file_is_rewound(tmp_path: Path, env: dict[str, str]) -> None:
    """A file is read again from where it stood when the run began."""
    file = tmp_path / "input"
    file.write_text("skipped\nkept\n")
    with file.open("rb", buffering=0) as source:
        source.seek(len("skipped\n"))
        done = subprocess.run(
            [*FORBEAR, "run", *QUICK, "--attempts", "2", "sh", "-c", "cat; exit 1"],
            stdin=source, stdout=subprocess.PIPE, env=env, text=True, check=False,
        )  # fmt: skip
    assert done.stdout == "kept\nkept\n"


def test_stdin_that_stays_open_holds_nothing_up(start: Start) -> None:
    """The first attempt starts before the input ends, and a program that does not wait for its end ends the run."""
    process = start("run", *QUICK, "--attempts", "2", "sh", "-c", "read line; echo $line; exit 1")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("first line\n")
    process.stdin.flush()
    assert process.stdout.read() == "first line\nfirst line\n"
    assert process.wait() == 1


def test_stdin_that_breaks_is_no_end(env: dict[str, str]) -> None:
    """A program whose input breaks is killed, so that it does not take this for the end of the input."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        command = [*FORBEAR, "run", "sh", "-c", "read line; echo $line; cat; echo all"]
        with receiver, subprocess.Popen(
            command, stdin=receiver.fileno(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True
        ) as process:  # fmt: skip
            sender.sendall(b"half\n")
            assert process.stdout is not None
            assert process.stdout.readline() == "half\n"
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sender.close()
            out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (1, "", "error: Connection reset by peer\n")


def test_closed_stdin_is_empty(env: dict[str, str]) -> None:
    """A closed stdin reads as empty."""
    command = " ".join((*FORBEAR, "run", *QUICK, "--attempts", "2", "sh -c 'cat; exit 7' <&-"))
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "")
    assert "descriptor" not in done.stderr


def test_other_open_files_are_inherited(env: dict[str, str]) -> None:
    """A shell's `<(...)` and `3>file` reach the program."""
    command = " ".join((*FORBEAR, "run sh -c 'echo seen >&3' 3>&1"))
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "seen\n"


def test_a_reader_that_has_left_ends_the_run(env: dict[str, str]) -> None:
    """A program that dies of SIGPIPE is not repeated, for its reader is gone."""
    command = " ".join((*FORBEAR, "run yes | head -n 1"))
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, timeout=20, check=False)
    assert (done.stdout, done.stderr) == ("y\n", "")


def test_retries_can_be_turned_off(finish: Finish) -> None:
    """FORBEAR_DISABLED=1 leaves one attempt."""
    done = finish("run", *QUICK, "sh", "-c", "echo $FORBEAR_ATTEMPT; exit 1", FORBEAR_DISABLED="1")
    assert (done.returncode, done.stdout, done.stderr) == (1, "1\n", "")


def test_arguments_are_passed_as_they_are(inside: Finish) -> None:
    """Options after the program's name are its own, `--help` included."""
    done = inside(
        "run", "python3", "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", "--help", "-q", "--on", ""
    )
    assert json.loads(done.stdout) == ["--help", "-q", "--on", ""]


def test_an_empty_command_is_not_found(inside: Finish) -> None:
    """As a shell says of it."""
    for command in (("",), ("", "x")):
        done = inside("run", *QUICK, "--", *command)
        assert (done.returncode, done.stdout) == (127, "")
        assert done.stderr == "error: command not found: ''\nhint: check its name, and that its folder is in PATH\n"


MANY = """
import os, resource, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096) if hard > 0 else 4096, hard))
for _ in range(1100):
    os.set_inheritable(os.open("/dev/null", os.O_RDONLY), True)
os.execv(sys.executable, [sys.executable, "-m", "forbear", "run", *sys.argv[1:]])
"""


@pytest.mark.parametrize("fed", [False, True], ids=["empty", "piped"])
def test_many_open_files_are_no_obstacle(env: dict[str, str], fed: bool) -> None:
    """The descriptors that a run waits for have numbers beyond 1023, that of a piped input too."""
    script = 'cat; test "$FORBEAR_ATTEMPT" = 2'
    done = subprocess.run(
        [sys.executable, "-c", MANY, *QUICK, "--attempt-timeout", "20", "sh", "-c", script],
        input="line\n" if fed else "",
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "line\n" * 2 * fed)
    assert done.stderr.splitlines() == ["forbear: exit code 1; attempt 2 of 5 in 0 s", "forbear: attempt 2 worked"]


ENORMOUS = "1" + 300 * "0"
TINY = "0." + 320 * "0" + "1"


@pytest.mark.parametrize(
    "options",
    [
        ("--attempt-timeout", ENORMOUS, "--grace", ENORMOUS, "--timeout", ENORMOUS, *QUICK),
        ("--attempt-timeout", "30", "--grace", TINY, "--initial", TINY, "--maximum", TINY),
        ("--initial", TINY, "--maximum", "0.001", "--multiplier", "1e308", "--jitter", "none"),
        ("--initial", ENORMOUS, "--maximum", ENORMOUS, "--timeout", "1"),
        ("--constant", ENORMOUS),
    ],
    ids=lambda options: "".join(option for option in options if option.startswith("--")),
)
def test_durations_of_any_size(inside: Finish, options: tuple[str, ...]) -> None:
    """A limit is kept or a wait is not begun; nothing ends in a traceback."""
    done = inside("run", "--attempts", "2", *options, "false")
    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    assert last.startswith("forbear: gave up after ")
    assert last.endswith("; last failure: exit code 1")


def test_a_wait_of_ages_is_not_begun(finish: Finish) -> None:
    """The text says so."""
    done = finish("run", "--attempts", "2", "--constant", "99999d", "false")
    assert "the next wait of 8639913600 s would be longer than 100 years" in done.stderr
