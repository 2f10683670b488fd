"""`forbear run --on-output` and `--stop-on-output`: what the program prints decides, and passes through unchanged."""

import os
import subprocess
from pathlib import Path

import pytest

from forbear.cli.run.streams import LONGEST_LINE, WatchedOutput
from forbear_testkit.cli.running import FORBEAR, Invoke

QUICK = ("--constant", "0", "--attempts", "2")


@pytest.mark.parametrize(
    ("options", "script", "attempts"),
    [
        (("--on-output", "busy"), "echo busy; exit 1", 2),
        (("--on-output", "busy"), "echo busy >&2; exit 1", 2),
        (("--on-output", "busy"), "echo other; exit 1", 1),
        (("--on-output", "no", "--on-output", "^503 "), "echo 503 busy; exit 1", 2),
        (("--on-output", "^503"), "printf 'HTTP 503\\n'; exit 1", 1),
        (("--on-output", "busy"), "printf busy; exit 1", 2),
        (("--on-output", "^busy$"), "printf '10%%\\rbusy\\r'; exit 1", 2),
        (("--on-output", "busy"), "echo busy; exit 2", 2),
        (("--on-output", "busy"), "echo busy; exit 130", 1),
        (("--on-output", "busy", "--on", "75"), "echo other; exit 75", 2),
        (("--on-output", "busy", "--on", "75"), "echo busy; exit 1", 2),
        (("--on-output", "busy", "--on", "75"), "echo other; exit 1", 1),
        (("--on-output", "busy", "--stop-on", "1"), "echo busy; exit 1", 1),
        (("--on-output", "busy", "--stop-on-output", "denied"), "echo busy; echo denied >&2; exit 1", 1),
        (("--stop-on-output", "denied"), "echo denied; exit 1", 1),
        (("--stop-on-output", "denied"), "echo other; exit 1", 2),
        (("--stop-on-output", "denied", "--on", "3"), "echo denied; exit 3", 1),
        (("--on-output", "busy"), "echo busy; exit 0", 1),
        (("--stop-on-output", "denied", "--attempt-timeout", "150ms"), "echo denied; exec sleep 60", 1),
        (("--stop-on", "124", "--attempt-timeout", "50ms"), "exec sleep 60", 1),
        (("--stop-on", "1", "--attempt-timeout", "50ms"), "exec sleep 60", 2),
        (("--on", "3", "--attempt-timeout", "50ms"), "exec sleep 60", 2),
    ],
)
def test_what_is_repeated(
    invoke: Invoke, capfd: pytest.CaptureFixture[str], options: tuple[str, ...], script: str, attempts: int
) -> None:
    """Rules that stop come first, then a match or a code that is listed; a success is never repeated."""
    done = invoke("run", *QUICK, *options, "sh", "-c", f"echo attempt $FORBEAR_ATTEMPT; {script}")
    assert capfd.readouterr().out.count("attempt ") == attempts
    assert ("attempt 2 of 2" in done.stderr) is (attempts == 2)


def test_the_reason_names_the_pattern(invoke: Invoke, capfd: pytest.CaptureFixture[str]) -> None:
    """The line on stderr names the pattern, not the text of the program, which may be secret."""
    done = invoke("run", *QUICK, "--on-output", "50[03]", "sh", "-c", "echo 503 token=SECRET; exit 1")
    assert "forbear: exit code 1, output matched '50[03]'; attempt 2 of 2 in 0 s\n" in done.stderr
    assert "SECRET" not in done.stderr
    assert capfd.readouterr().out == "503 token=SECRET\n" * 2


def test_output_passes_unchanged(invoke: Invoke, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    """Any bytes pass, those after a match and those of an endless line included, on the stream they were written to."""
    data = bytes(range(256)) * 400 + b"match\n" + b"x" * 300_000 + b"\xff"
    file = tmp_path / "data"
    file.write_bytes(data)
    done = invoke("run", "--on-output", "match", "sh", "-c", f"cat {file}; cat {file} >&2")
    captured = capfdbinary.readouterr()
    assert (done.exit_code, captured.out, captured.err) == (0, data, data)


@pytest.mark.parametrize(
    ("written", "matched"),
    [(b"a" * (LONGEST_LINE - 3) + b"end\n", True), (b"a" * (LONGEST_LINE - 2) + b"end\n", False)],
)
def test_only_the_beginning_of_a_long_line_is_matched(
    capfd: pytest.CaptureFixture[str], written: bytes, matched: bool
) -> None:
    """A line is cut, so that its memory and the time of a pattern are bounded; the next line is matched again."""
    output = WatchedOutput(["end"], ["next"])
    (_, end, target), _ = output.start()
    os.write(end, written + b"next\n")
    output.started()
    while output.reading or output.writing:
        output.pump([*output.reading, *output.writing])
    output.stop()
    assert target == 1
    assert output.matches == ("end" if matched else None, "next")
    assert capfd.readouterr().out.encode() == written + b"next\n"


def test_what_is_left_behind_holds_nothing_up(env: dict[str, str]) -> None:
    """The run ends with its program, though a process that it left behind has its output and writes without end."""
    command = [*FORBEAR, "run", "--on-output", "x", "sh", "-c", "yes & echo $! >&2"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("y\n")


def test_a_reader_that_has_left_ends_the_run(env: dict[str, str]) -> None:
    """The program dies of SIGPIPE as it would alone, and is not repeated, for its reader is gone."""
    command = " ".join((*FORBEAR, "run --on-output y yes | head -n 1"))
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, timeout=20, check=False)
    assert (done.stdout, done.stderr) == ("y\n", "")


def test_closed_outputs_are_no_obstacle(env: dict[str, str]) -> None:
    """With stdout and stderr closed, patterns still decide."""
    command = " ".join(
        (*FORBEAR, "run", *QUICK, "--on-output busy sh -c 'yes | head -c 99999; echo busy; exit 7' >&- 2>&-")
    )
    done = subprocess.run(["sh", "-c", command], env=env, timeout=20, check=False)
    assert done.returncode == 7


def test_a_full_disk_is_an_error(env: dict[str, str]) -> None:
    """Output that cannot be written ends the run, for it would be lost."""
    with Path("/dev/full").open("wb") as full:
        command = [*FORBEAR, "run", *QUICK, "--on-output", "x", "yes"]
        done = subprocess.run(command, env=env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


def test_a_wrong_pattern_is_named(invoke: Invoke) -> None:
    """The error names the option, the rule and the value."""
    done = invoke("run", "--stop-on-output", "(", "true")
    assert done.exit_code == 2
    assert "`--stop-on-output`: a pattern must be a regular expression of Python" in done.stderr
    assert "got '('" in done.stderr
