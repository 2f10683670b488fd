"""The width of the output: it fits the terminal, no identifier is cut, and pipes get whole rows without colours."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from forbear.answers import tables
from forbear.cli.app import COMMANDS, app
from forbear_audit import RULES, AuditSettings, audit
from forbear_audit.cli.text import print_finding
from forbear_testkit.cli.running import FORBEAR, Finish, Invoke
from forbear_testkit.cli.terminal import on_a_terminal

WIDTHS = (60, 80)


@pytest.mark.parametrize(
    ("name", "width"),
    [(name, width) for name in tables.names() for width in WIDTHS if (name, width) != ("redis", 80)],
)
def test_operations_fit_the_terminal(name: str, width: int, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each identifier is whole, and no line is wider than the terminal unless one word alone is."""
    monkeypatch.setenv("COLUMNS", str(width))
    text = invoke("explain", "--operations", name).stdout
    assert all(len(line) <= width or " " not in line.strip() for line in text.splitlines())
    entries = tables.find(name)
    starts = {line.partition("  ")[0].rstrip() for line in text.splitlines()}
    assert {entry.id for entry in entries} <= starts
    assert "…" not in text


@pytest.mark.parametrize("name", ["cloud_storage.grpc", "memorystore", "resource_manager"])
def test_a_pipe_gets_a_row_on_one_line(name: str, invoke: Invoke) -> None:
    """Without a terminal each operation has one line, however long it is, so that grep finds all of it."""
    header, *rows, empty, _ = invoke("explain", "--operations", name).stdout.splitlines()
    entries = tables.find(name)
    assert (header.split()[:2], empty) == (["operation", "safe"], "")
    assert [row.partition("  ")[0].rstrip() for row in rows] == [entry.id for entry in entries]
    assert all(entry.effect in row or entry.effect == "none" for entry, row in zip(entries, rows, strict=True))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("profile", ["cloud_storage", "ci", "cloud_storage.python_client"])
def test_a_schedule_fits_the_terminal(
    profile: str, width: int, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line about the policy, the table with its chart, and the end are wrapped between words."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = invoke("schedule", profile, "--chart").stdout.splitlines()
    assert max(map(len, lines)) <= width
    wide = invoke("schedule", profile, "--chart").stdout.split()
    monkeypatch.delenv("COLUMNS")
    assert [word for word in wide if word.isalpha()] == [
        word for word in invoke("schedule", profile, "--chart").stdout.split() if word.isalpha()
    ]


def test_help_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The help of each command has lines of 80 columns at most, exit codes and examples included."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in COMMANDS:
        lines = CliRunner().invoke(app, [name, "--help"], prog_name="forbear").stdout.splitlines()
        assert [line for line in lines if len(line) > 80] == []
        assert lines[0].startswith(f"Usage: forbear {name} ")


def test_the_narrowest_terminal_stacks_the_cells(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """If columns do not fit, the other cells follow the first one, indented and with their headers."""
    monkeypatch.setenv("COLUMNS", "20")
    assert invoke("schedule", "--attempts", "2", "--timeout", "9").stdout.splitlines() == [
        "default: steps of 1",
        "s, times 2, at most",
        "64 s; jitter: full;",
        "at most 2 attempts,",
        "timeout 9 s",
        "",
        "1",
        "    wait before it:",
        "    0 to 1 s",
        "    all waits so",
        "    far: 0 to 1 s",
        "",
        "ends after 1 retry:",
        "limit of 2 attempts",
        "reached",
    ]


def test_a_terminal_has_colours_and_a_width(env: dict[str, str]) -> None:
    """A real terminal of 60 columns gets wrapped lines and styles; with NO_COLOR it gets no escape sequence."""
    command = [*FORBEAR, "schedule", "cloud_storage", "--attempts", "2"]
    env |= {"TERM": "xterm"}
    code, text = on_a_terminal(command, env, 60, both=True)
    assert code == 0
    assert text.startswith("\x1b[1mcloud_storage\x1b[0m: steps of 2 s, times 2, at most 64 s; jitter:\r\nequal;")
    code, plain = on_a_terminal(command, env | {"NO_COLOR": "1"}, 60, both=True)
    assert (code, "\x1b" in plain) == (0, False)
    assert [len(line) <= 60 for line in plain.splitlines()] == [True] * len(plain.splitlines())


@pytest.mark.parametrize("width", WIDTHS)
def test_an_explanation_fits_the_terminal(width: int, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts, remarks and waits are wrapped between words; the later lines of a fact are indented."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = invoke("explain", "redis", "SET", "key", "value", "NX").stdout.splitlines()
    assert max(map(len, lines)) <= width
    conditions = next(number for number, line in enumerate(lines) if line.startswith("conditions  none of NX"))
    assert lines[conditions + 1].startswith(" " * 12)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", ""), ("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_finding_has_the_colours_that_the_user_wants(
    name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal, a finding of the audit has colours, but none with NO_COLOR or on a dumb terminal."""
    (tmp_path / "a.py").write_text("from tenacity import retry\n\n\n@retry\ndef f():\n    return g()\n")
    (finding, *_) = audit([tmp_path], settings=AuditSettings(select=tuple(RULES))).findings
    for variable in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_finding(finding)
    assert ("\x1b" in capsys.readouterr().out) is (value == "")


def test_a_pipe_has_no_colours(finish: Finish) -> None:
    """A pipe gets no escape sequence on stdout or stderr, and the exit code of a wrong name is 2."""
    done = finish("schedule", "cloud_storage", FORCE_COLOR="")
    assert (done.returncode, "\x1b" in done.stdout, done.stderr) == (0, False, "")
    done = finish("schedule", "perl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no such profile: perl\nhint: ")
