"""The command line as a whole: how it starts, where it writes, and how it says what is wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from forbear.cli.app import COMMANDS, app
from forbear_testkit.cli.running import FORBEAR, Invoke


def test_help_lists_the_commands_and_the_exit_codes(invoke: Invoke) -> None:
    """`forbear --help` introduces every command with what its own help begins with."""
    shown = invoke("--help")
    assert shown.exit_code == 0
    for name, source in COMMANDS.items():
        assert f"  {name} " in shown.stdout
        assert source.summary in shown.stdout
        help_of_its_own = invoke(name, "--help")
        assert help_of_its_own.exit_code == 0
        assert "Exit codes:" in help_of_its_own.stdout
    assert "Exit codes: 0 ok, 1 failed, 2 usage or bad input, 130 interrupted." in shown.stdout


_LIMITS = ["Options", "Limits and backoff"]
_OF_TRANSFERS = ["Output", "Connection", "Retries"]
_COPIES = ["Which files, and how fast", "Content and metadata", "Encryption", *_OF_TRANSFERS, "Trying it out"]


@pytest.mark.parametrize(
    ("command", "headings"),
    [
        ("schedule", _LIMITS),
        ("run", _LIMITS),
        ("curl", _LIMITS),
        ("cp", ["Options", "Names", *_COPIES]),
        ("rsync", ["Options", *_COPIES]),
        ("rm", ["Options", "Names", "Which files, and how fast", *_OF_TRANSFERS]),
        ("cat", ["Options", "Names", "Encryption", *_OF_TRANSFERS]),
    ],
)
def test_the_help_lists_options_under_headings(invoke: Invoke, command: str, headings: list[str]) -> None:
    """Options that several commands share stand below a heading, the same one in each; the command's own come first."""
    shown = invoke(command, "--help").stdout.splitlines()
    found = [line.removesuffix(":") for line in shown if line[:1].isalpha() and line.endswith(":")]
    assert [heading for heading in found if heading not in ("Examples", "Usage")] == headings


def test_every_option_is_in_the_help_once(invoke: Invoke) -> None:
    """Headings hide no option: each that a command takes begins one line of its help."""
    for name in COMMANDS:
        command = app.get_command(click.Context(app), name)
        assert command is not None
        shown = invoke(name, "--help").stdout.partition("\nOptions:\n")[2].partition("\n  Exit codes")[0]
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert len(re.findall(rf"(?m)^  (-\w, )?{re.escape(option.opts[-1])}(?![\w-])", shown)) == 1, option


def test_the_version(invoke: Invoke) -> None:
    """`--version` says which version is installed."""
    assert invoke("--version").stdout.startswith("forbear ")


def test_no_command_is_loaded_before_it_is_called() -> None:
    """Starting up costs click and little else: no rich, no service, no asyncio, no server."""
    script = "import sys; import forbear.cli.app; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    unwanted = {
        "rich",
        "asyncio",
        "httpx",
        "h11",
        "matplotlib",
        "csv",
        "subprocess",
        "importlib.metadata",
        "forbear.services",
    }
    assert not unwanted & set(loaded)
    assert not {source.module for source in COMMANDS.values()} & set(loaded)


@pytest.mark.parametrize(
    ("module", "args", "hint"),
    [
        ("click", ("--help",), 'hint: pip install "forbear[cli]"'),
        ("rich", ("schedule",), 'hint: pip install "forbear[cli]"'),
        ("matplotlib", ("schedule", "--plot", "plot.png", "--csv"), 'hint: pip install "forbear[plot]"'),
        ("h11", ("cloud",), 'hint: pip install "forbear[cloud]"'),
    ],
)
def test_a_missing_package(module: str, args: tuple[str, ...], hint: str, env: dict[str, str]) -> None:
    """A missing optional package is reported in two lines, with the command that installs it and exit code 2."""
    script = f"import sys; sys.modules[{module!r}] = None; from forbear.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script, *args], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert module in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[1:] == [hint]


BAD_INPUT = [
    ((), "Usage: forbear"),
    (("explian",), "error: no such command: explian\nhint: did you mean explain? the commands are run, "),
    (("nothing-like-it",), "error: no such command: nothing-like-it\nhint: the commands are run, "),
    (("--bogus",), "error: no such option '--bogus'\nhint: see `forbear --help`\n"),
    (("run",), "error: missing argument 'COMMAND...'\nhint: see `forbear run --help`\n"),
    (
        ("explain", "--operations"),
        "error: option '--operations' requires an argument\nhint: see `forbear explain --help`\n",
    ),
    (("run", "--attempt", "3", "true"), "hint: did you mean `--attempts` or `--attempt-timeout`?\n"),
    (("run", "--timeout", "-5", "true"), "error: invalid value for `--timeout`: a duration must be more than zero"),
    (("run", "--jitter", "gaussian", "true"), "error: invalid value for `--jitter`: 'gaussian' is not one of"),
    (
        ("run", "--attempts", "0", "true"),
        "error: invalid value for `--attempts`: a count must be a whole number from 1",
    ),
    (("run", "--attempts", "none", "true"), "error: `--attempts` and `--timeout` must not both be none"),
    (("run", "--attempts", "none", "--timeout", "none", "true"), "hint: give one of them a limit\n"),
    (("run", "--constant", "1", "--jitter", "full", "true"), "error: `--constant` does not go with `--jitter`\n"),
    (
        ("run", "--initial", "100", "true"),
        "error: `--maximum` must be at least `--initial`, which is 100.0, got 64.0\n",
    ),
    (("run", "--multiplier", "0.5", "true"), "error: `--multiplier` must be 1 or more and finite, got 0.5\n"),
    (("run", "--multiplier", "nan", "true"), "error: `--multiplier` must be a number, got nan\n"),
    (("run", "--on", "0", "true"), "error: invalid value for `--on`: exit codes must be from 1 to 255"),
    (("schedule", "bogus"), "error: no such profile: bogus\nhint: the profiles are default, cloud_storage, "),
    (("schedule", "cloud_storage.bogus"), "error: no such profile: cloud_storage.bogus\n"),
    (("schedule", "cloud_storage", "--timeout", "none"), "error: `--attempts` and `--timeout` must not both be none"),
    (("schedule", "--json", "--csv"), "error: `--json` does not go with `--csv`\nhint: leave one of them out\n"),
    (("schedule", "--plot", "plot.bogus"), "hint: name a file that ends in .png or .svg\n"),
    (("schedule", "--plot", "no/such/folder/plot.png"), "error: cannot write no/such/folder/plot.png: there is no"),
]


@pytest.mark.parametrize(
    ("args", "text"), BAD_INPUT, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_bad_input(args: tuple[str, ...], text: str, invoke: Invoke) -> None:
    """Bad input is refused in words, with a cure and exit code 2, on stderr."""
    done = invoke(*args)
    assert done.exit_code == 2
    assert text in done.stderr


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (("run", "--initial", "100", "true"), ["--maximum", "--initial"]),
        (("run", "--multiplier", "0.5", "true"), ["--multiplier"]),
        (("schedule", "--multiplier", "nan"), ["--multiplier"]),
        (("schedule", "--initial", "2m"), ["--maximum", "--initial"]),
        (("export", "grpc", "--maximum", "1ms"), ["--maximum", "--initial"]),
        (("export", "grpc", "--multiplier", "inf"), ["--multiplier"]),
        (("export", "boto", "--profile", "iam"), ["--profile"]),
        (("explain", "--csv", "GET", "https://h/"), ["--csv"]),
        (("explain", "--json-fields", "1", "grpc", "a.B/C"), ["--json-fields"]),
        (("cp", "--exclude", "(", "a", "gs://b/"), ["--exclude"]),
        (("cp", "--retry", "initial=100", "a", "gs://b/"), ["--retry maximum=", "--retry initial="]),
        (("cp", "--embedded", "a", "b", "gs://bkt/x"), ["TARGET"]),
        (("rsync", "--exclude", "(", "a", "gs://b/"), ["--exclude"]),
        (("rsync", "--embedded", "gs://bkt", "gs://bkt/x"), ["SOURCE", "TARGET"]),
        (("rsync", "--retry", "multiplier=0", ".", "gs://b/"), ["--retry multiplier="]),
        (("cloud", "--host", "0.0.0.0"), ["--host"]),
        (("cloud", "--bucket", "A"), ["--bucket"]),
    ],
    ids=" ".join,
)
def test_errors_name_options(
    args: tuple[str, ...], options: list[str], invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error text names the options and arguments of the command, never parameters of the library."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).write_text("")
    done = invoke(*args)
    assert done.exit_code == 2
    assert re.findall("`([^`]*)`", done.stderr.splitlines()[0]) == options


def test_hints_name_options(invoke: Invoke, tmp_path: Path) -> None:
    """A hint of the library names the option of the command as well."""
    done = invoke("cp", "--embedded", str(tmp_path), "gs://bkt/")
    assert done.exit_code == 1
    assert "hint: copy folders with `--recursive`\n" in done.stderr


def test_colours_are_for_terminals() -> None:
    """Errors are coloured on a terminal unless NO_COLOR is set, and never elsewhere."""
    for env, color, coloured in (({}, True, True), ({"NO_COLOR": "1"}, True, False), ({}, False, False)):
        done = CliRunner(env={"NO_COLOR": None, **env}).invoke(app, ["rum"], color=color)
        assert ("\x1b[" in done.stderr) == coloured


def test_a_reader_that_has_seen_enough(env: dict[str, str]) -> None:
    """When stdout is closed early, the program ends quietly."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*FORBEAR, "schedule"], stdout=writer, stderr=subprocess.PIPE, env=env, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_full_disk(env: dict[str, str]) -> None:
    """When stdout cannot be written, one line says why."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*FORBEAR, "schedule"], stdout=full, stderr=subprocess.PIPE, env=env, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "error: No space left on device\n")


def test_closed_stdout(env: dict[str, str]) -> None:
    """A closed stdout is no error."""
    command = " ".join((*FORBEAR, "schedule >&-"))
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
