"""`forbear simulate` and its commands: the table, the chart, the files, and what a wrong scenario gets."""

import csv
import json
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from forbear.cli.app import app
from forbear_simulate import SimulationInterrupted, simulate
from forbear_simulate.cli.chart import ASCII, HEIGHT, WIDTH, Curves, draw
from forbear_simulate.cli.options import EXAMPLE
from forbear_simulate.cli.texts import figure_text, time_text
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.scenario.reading import read_mapping
from forbear_testkit import ROOT
from forbear_testkit.cli.running import Invoke

PAGE = (ROOT / "docs" / "simulate.md").read_text(encoding="utf-8")
SMALL = ("--set", "duration=20s", "--set", "clients.rate=20/s", "--set", "step=500ms")
CHANGES = ("service.workers=2", "clients.rate=14/s", "clients.attempt_timeout=5s", "duration=1m", "step=1s")
FAST = [word for change in CHANGES for word in ("--set", change)]
"""A fleet that is metastable, too, and that triggers are tried on quickly."""
FILE = """
duration = "20s"
step = "500ms"
windows = [{ start = "5s", length = "5s" }]
[clients]
rate = "20/s"
policy = "mobile"
"""


def test_without_a_file(invoke: Invoke) -> None:
    """The table has values with units and meanings, the chart an axis and the trigger; limits go to stderr."""
    done = invoke("simulate", "run")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "80 calls/s from 500 clients; a service for 100 requests/s; refuse from 30s to 1m"
    assert lines[1] == "2m of virtual time, cohort engine"
    rows = {line.split("   ")[0]: line for line in lines[4:16]}
    assert "9 600     new calls" in rows["calls"]
    assert rows["recovery"].split()[1] == "never"
    assert "budget refusals" not in rows
    assert "p50" not in rows
    assert "█ goodput per second" in done.stdout
    assert "1m30s" in done.stdout
    assert done.stderr.startswith("not modelled:\n- networks: ")


def test_a_file_with_changes(invoke: Invoke, tmp_path: Path) -> None:
    """A file has the scenario, options change it, and JSON says all that the simulation knows."""
    file = tmp_path / "fleet.toml"
    file.write_text(FILE)
    done = invoke(
        "simulate", "run", str(file), "--set", "clients.rate=40/s", "--json", "--engine", "exact", "--seed", "4"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    expected = simulate(
        read_mapping(
            {
                "duration": "20s",
                "step": "500ms",
                "windows": [{"start": "5s", "length": "5s"}],
                "clients": {"rate": "40/s", "policy": "mobile"},
            }
        ),
        engine="exact",
        seed=4,
    )
    assert json.loads(done.stdout) == json.loads(json.dumps(expected.document()))
    named = invoke("simulate", "run", str(file), "--policy", "iam", "--set", "clients.policy.attempts=2", "--json")
    policy = json.loads(named.stdout)["scenario"]["clients"]["policy"]
    assert (policy["limits"]["attempts"], policy["backoff"]["initial"]) == (2, 2)


def test_side_by_side(invoke: Invoke) -> None:
    """Policies and single values are compared: a column and a chart for each, all charts with one scale."""
    done = invoke("simulate", "run", "--compare", "batch", "--compare", "clients.policy.attempts=1")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[3].split() == ["figure", "default", "batch", "clients.policy.attempts=1"]
    amplification = next(line.split() for line in lines if line.startswith("amplification"))
    assert float(amplification[1]) > 1
    assert amplification[3] == "1"
    titles = [i for i, line in enumerate(lines) if line in ("default", "batch", "clients.policy.attempts=1")]
    assert len(titles) == 3
    assert len({lines[i + 1].split("┤")[0] for i in titles}) == 1
    document = json.loads(invoke("simulate", "run", *SMALL, "--compare", "batch", "--json").stdout)
    assert set(document["policies"]) == {"default", "batch"}


def test_a_verdict(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verdict` prints the state of each fleet with its evidence, and JSON has the triggers, too."""
    monkeypatch.setattr("forbear_simulate.analysis.verdict.simulate_cohort", cache(simulate_cohort))
    done = invoke("simulate", "verdict", *FAST, "--compare", "clients.policy.attempts=1")
    assert done.exit_code == 0
    assert done.stdout.startswith("default: metastable: after a trigger, or by itself, the goodput stays down")
    assert "\nclients.policy.attempts=1: stable: the goodput comes back" in done.stdout
    assert done.stdout.count("- The load is 14 calls/s, 70% of the capacity") == 2
    document = json.loads(invoke("simulate", "verdict", *FAST, "--json").stdout)["policies"]["default"]
    assert (document["state"], document["load"], document["capacity"]) == ("metastable", 14, 20)
    assert "never" in {trigger["recovery"] for trigger in document["triggers"]}


def test_find_prints_the_values_that_keep_a_limit(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """`find` prints the values that keep a limit and all that were tried; without any, the exit code is 1."""
    monkeypatch.setattr("forbear_simulate.analysis.search.simulate", cache(simulate))
    search = ("simulate", "find", "attempts", "--such-that")
    done = invoke(*search, "recovery < 60 s")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "recovery < 60 s holds for clients.policy.attempts from 1 to 3"
    assert ["3", "0", "s", "fits"] in [line.split() for line in lines]
    assert ["4", "never"] in [line.split() for line in lines]
    document = json.loads(invoke(*search, "recovery < 60 s", "--json").stdout)
    assert (document["value"], document["fits"], document["monotone"]) == (3, [[1, 3]], True)
    assert document["tried"][3] == {"value": 4, "figure": "never", "fits": False}
    assert invoke(*search, "goodput > 79/s", *SMALL).exit_code == 1


@pytest.mark.soak
def test_a_map_of_triggers(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`map` has a row for each size and a column for each length of a trigger, and a sentence about the boundary."""
    monkeypatch.setattr("forbear_simulate.analysis.phase.SIZES", (0.1, 1.0))
    monkeypatch.setattr("forbear_simulate.analysis.phase.LENGTHS", (1.0, 60.0))
    plot = tmp_path / "map.svg"
    done = invoke("simulate", "map", *FAST, "--plot", str(plot))
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[2:5] == ["share   1s    1m", "10%     0 s   0 s", "100%    0 s   never"]
    assert lines[6].endswith("the capacity is 20: retries alone can keep the service overloaded")
    assert done.stderr == f"wrote the plot to {plot}\n"
    drawn = plot.read_text()
    assert drawn.count("<!-- never -->") == 1
    assert "<!-- what is left is the load -->" in drawn
    calm = (*FAST, "--set", "clients.rate=6/s", "--set", "clients.policy.attempts=2")
    document = json.loads(invoke("simulate", "map", *calm, "--json").stdout)
    assert (document["boundary"], document["attempts"]) == (pytest.approx(0.4), 2)
    assert [len(row) for row in document["recovery"]] == [2, 2]


def test_a_sweep(invoke: Invoke, tmp_path: Path) -> None:
    """`sweep` has a row for each value and a column for each scenario, for success and for load."""
    plot = tmp_path / "sweep.svg"
    few = (*SMALL, "--set", "windows=[]", "--set", "budget=brooker", "--compare", "clients.count=2")
    done = invoke("simulate", "sweep", "service.failure=0,0.5,1", *few, "--plot", str(plot))
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert (lines[0], lines[7]) == ("calls that succeed", "attempts per second")
    assert lines[2].split() == lines[9].split() == ["service.failure", "default", "clients.count=2"]
    assert lines[3].split() == ["0", "100.0%", "100.0%"]
    assert lines[10].split() == ["0", "20", "20"]
    assert done.stderr == f"wrote the plot to {plot}\n"
    drawn = plot.read_text()
    assert all(f"<!-- {text} -->" in drawn for text in ("service.failure", "attempts per second", "clients.count=2"))
    document = json.loads(invoke("simulate", "sweep", "service.failure=0,0.5,1", *few, "--json").stdout)
    assert (document["key"], document["values"]) == ("service.failure", [0, 0.5, 1])
    assert document["policies"]["default"]["load"][1] > document["policies"]["clients.count=2"]["load"][1] > 20


def test_several_runs(invoke: Invoke) -> None:
    """`--runs` chooses the exact engine, and every value has its standard error."""
    done = invoke("simulate", "run", *SMALL, "--runs", "2", "--workers", "1")
    assert done.exit_code == 0
    assert "20s of virtual time, exact engine, 2 runs, seed 0" in done.stdout
    assert done.stdout.count(" ± ") >= 10


def test_files_to_write(invoke: Invoke, tmp_path: Path) -> None:
    """`--csv` writes a row per bin, `--plot` a picture in the format of the suffix."""
    table, plot = tmp_path / "bins.csv", tmp_path / "fleet.svg"
    done = invoke("simulate", "run", *SMALL, "--csv", str(table), "--plot", str(plot))
    assert done.exit_code == 0
    assert f"wrote the bins to {table}\nwrote the plot to {plot}\n" in done.stderr
    assert len(list(csv.DictReader(table.read_text().splitlines()))) == 40
    drawn = plot.read_text()
    assert all(f"<!-- {text} -->" in drawn for text in ("offered load", "goodput", "default", "time (s)"))


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (
            ["run", "--set", "service.workers=0"],
            "`service.workers` must be a whole number of at least 1, got 0",
            "write",
        ),
        (
            ["run", "--set", "service.time=50"],
            "`service.time` must be more than zero seconds, got '50'",
            "write a number",
        ),
        (["run", "--set", "servce.time=50"], "`servce` must be one of the keys", "did you mean service?"),
        (["run", "--policy", ""], "`clients.policy` must be the name of a policy, got ''", "write one of default, "),
        (["run", "--set", "=5"], "`option` must be a key and a value, got '=5'", "write it as service.workers=20"),
        (["run", "--set", ""], "`option` must be a key and a value, got ''", "write it as service.workers=20"),
        (
            ["run", "--policy", "nope"],
            "`clients.policy` must be the name of a policy, got 'nope'",
            "write one of default",
        ),
        (
            ["run", "--policy", "documented_2020.x"],
            "`clients.policy` must be the name of a policy",
            "write one of default",
        ),
        (["run", "--policy", "documented"], "`clients.policy` must be the name of one policy", "write one of cloud_st"),
        (["run", "--engine", "cohort", "--runs", "2"], "`--runs` must be 1 for the cohort engine", "choose the engine"),
        (
            ["run", "--set", "clients.policy.jitter=decorrelated"],
            "`clients.policy` must be a policy whose waits",
            "choose",
        ),
        (["verdict", "--set", "clients.rate=1000/s"], "`clients.rate` must be below the capacity", "lower the rate"),
        (["find", "attempts"], "missing option '--such-that'", "see `forbear simulate find --help`"),
        (["find", "--such-that", "drain < 5 s"], "missing argument 'KEY'", "see `forbear simulate find --help`"),
        (["run", "--such-that", "drain < 5 s"], "no such option '--such-that'", "see `forbear simulate run --help`"),
        (["find", "x", "--such-that", "drain < 5 s"], "`KEY` must be a number of the scenario", "write attempts"),
        (["find", "attempts", "--such-that", "drain < 5"], "`--such-that` must be drain < a time", "correct the"),
        (["map", "--runs", "2"], "no such option '--runs'", "see `forbear simulate map --help`"),
        (
            ["sweep", "service.failure"],
            "`KEY=FROM..TO` must be a key, and a range or numbers",
            "write service.failure=",
        ),
        (
            ["sweep", "servce.failure=0..1"],
            "`KEY=FROM..TO` must be a number of the scenario, or jitter",
            "write attempts",
        ),
        (["sweep", "attempts=1..3", "--csv", "x"], "no such option '--csv'", "did you mean `--set`?"),
        (["run", "--csv", "x", "--compare", "ci"], "`--csv` does not go with `--compare`", "write one file for each"),
        (["run", "--compare", "ci", "--compare", "ci"], "`--compare ci` is there already", "name another"),
        (["run", "--plot", "/nowhere/x.png"], "cannot write /nowhere/x.png", "choose another folder"),
        (["run", "--plot", "x.nope"], "cannot plot to x.nope: its suffix is '.nope'", "name a file that ends in .png"),
        (["map", "--plot", "x"], "cannot plot to x: it has no suffix", "name a file that ends in .png"),
        (["run", "--csv", "/nowhere/x.csv"], "cannot write /nowhere/x.csv", "choose another folder"),
        (
            ["run", "nowhere.toml"],
            "invalid value for '[FILE]': File 'nowhere.toml' does not exist",
            "see `forbear simu",
        ),
    ],
)
def test_wrong_input(arguments: list[str], message: str, hint: str, invoke: Invoke) -> None:
    """An error is one line with the key, the rule and the value, and a hint with the cure; the exit code is 2."""
    name, *rest = arguments
    done = invoke("simulate", name, *SMALL, *rest)
    assert done.exit_code == 2
    error, cure = done.stderr.splitlines()[-2:]
    assert error.startswith(f"error: {message}")
    assert cure.startswith(f"hint: {hint}")


@pytest.mark.parametrize(
    ("word", "cure"),
    [
        ("fleet.toml", "write forbear simulate run fleet.toml"),
        ("runn", "write one of run, verdict, find, map, sweep, gal"),
    ],
)
def test_a_scenario_in_the_place_of_a_command(word: str, cure: str, invoke: Invoke) -> None:
    """The hint has the line that is meant."""
    done = invoke("simulate", word)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: no such command of `forbear simulate`: {word}\nhint: {cure}")


def test_ctrl_c_prints_what_is_known(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an interruption the known part is printed with a last line about it, and the exit code is 130."""
    known = simulate(read_mapping(EXAMPLE))

    def stop(*_: object, **__: object) -> None:
        raise SimulationInterrupted(known)

    monkeypatch.setattr("forbear_simulate.simulate", stop)
    done = invoke("simulate", "run", "--engine", "exact")
    assert done.exit_code == 130
    assert "9 600     new calls" in done.stdout
    assert done.stderr.endswith("interrupted: this is what was known until then\n")


@pytest.mark.parametrize("arguments", [["find", "attempts", "--such-that", "drain < 5 s"], ["sweep", "attempts=1,2"]])
def test_ctrl_c_during_many_simulations(arguments: list[str], invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """The beginning of one of many simulations is no answer: nothing is printed, and the exit code is 130."""
    known = simulate(read_mapping(EXAMPLE, ["duration=10s"]))

    def stop(*_: object, **__: object) -> None:
        raise SimulationInterrupted(known)

    monkeypatch.setattr("forbear_simulate.analysis.search.simulate", stop)
    monkeypatch.setattr("forbear_simulate.analysis.sweep.simulate", stop)
    done = invoke("simulate", *arguments)
    assert (done.exit_code, done.stdout) == (130, "")


def test_a_terminal_without_unicode() -> None:
    """The chart is made of plain characters for a stdout that cannot show blocks."""
    done = CliRunner(charset="ascii").invoke(app, ["simulate", "run", *SMALL], catch_exceptions=False)
    assert done.exit_code == 0
    assert "# goodput per second" in done.stdout
    assert done.stdout.isascii()


def test_the_first_look_of_the_page(invoke: Invoke) -> None:
    """The example in docs/simulate.md is what the command prints; numbers may differ by a tenth."""
    command, expected = re.findall(r"^```console\n\$ ([^\n]*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
    done = invoke(*shlex.split(command)[1:])
    shown, charts = done.stdout.split("\n\ndefault\n")
    table = expected.split("\n\ndefault\n")[0]
    assert re.sub(r"[\d. ]+", " ", shown) == re.sub(r"[\d. ]+", " ", table)
    numbers = [float(text.replace(" ", "")) for text in re.findall(r"\d(?: (?=\d{3}\b)|[\d.])*", shown)]
    written = [float(text.replace(" ", "")) for text in re.findall(r"\d(?: (?=\d{3}\b)|[\d.])*", table)]
    assert numbers == pytest.approx(written, rel=0.1, abs=0.5)
    assert "█" in charts
    assert done.stderr.startswith("not modelled:\n- networks: ")


def test_the_file_of_the_page(invoke: Invoke, tmp_path: Path) -> None:
    """The scenario in docs/simulate.md is one, and the changes below it can be made."""
    file = tmp_path / "fleet.toml"
    file.write_text(re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0])
    lines = re.findall(r"^    forbear (simulate run fleet.toml.*)", PAGE, re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        words = [str(file) if word == "fleet.toml" else word for word in shlex.split(line)]
        done = invoke(*words, "--set", "step=250ms", "--set", "duration=4m", "--json")
        assert done.exit_code == 0, done.stderr


def test_the_chart() -> None:
    """Goodput is filled from below, load above it is marked, and the trigger is shaded where nothing else is."""
    load, goodput = [10.0] * 10 + [20.0] * 10 + [10.0] * 20, [10.0] * 10 + [0.0] * 10 + [10.0] * 20
    lines = [line.plain for line in draw(Curves(load, goodput, 1, (10, 20)), signs=ASCII, top=40)]
    plot = [line[8:] for line in lines[:HEIGHT]]
    assert [line[10] for line in plot] == ["."] * 5 + ["+"] * 5
    assert [line[5] for line in plot] == [" "] * 7 + ["#"] * 3
    assert [line.count(".") for line in plot] == [10] * 5 + [0] * 5
    assert lines[0].startswith("    40 |")
    assert lines[HEIGHT + 1].split() == ["0s", "10s", "20s", "30s", "40s"]
    assert lines[-1].strip() == "# goodput per second   + attempts per second above it   . trigger"
    wide = draw(Curves([1.0] * 5000, [1.0] * 5000, 0.1, None), signs=ASCII)
    assert {len(line.plain) for line in wide[:HEIGHT]} == {8 + WIDTH}
    assert "trigger" not in wide[-1].plain
    assert draw(Curves([0.0] * 5, [0.0] * 5, 1, None), signs=ASCII)


def test_a_narrow_terminal() -> None:
    """The chart is as wide as the terminal, and the legend has a line for each part; below 24 columns it stays."""
    curves = Curves([10.0] * 100, [5.0] * 100, 1, (10, 20))
    lines = [line.plain for line in draw(curves, room=44)]
    assert max(map(len, lines)) == 44
    assert lines[-3:] == ["█ goodput per second", "▒ attempts per second above it", "· trigger"]
    assert len(draw(curves, room=80)) == HEIGHT + 3
    assert {len(line.plain) for line in draw(curves, room=3)[:HEIGHT]} == {24}


def test_values_are_printed_with_unit_and_error() -> None:
    """Values have their unit, a sensible number of digits, and their standard error in the same unit."""
    assert [time_text(value) for value in (0, 0.25, 45, 60, 90, 3600, 3661)] == [
        "0s", "0.25s", "45s", "1m", "1m30s", "1h", "1h1m1s",
    ]  # fmt: skip
    assert figure_text(None, "seconds") == "-"
    assert figure_text(float("inf"), "seconds") == "never"
    assert figure_text(0.175, "share", 0.001) == "17.5 % ± 0.1"
    assert figure_text(12345.6, "calls", 1234) == "12 346 ± 1 234"
    assert figure_text(0.0387, "seconds", 0.00012) == "38.7 ms ± 0.12"
    assert figure_text(106.31, "seconds") == "106.3 s"
    assert figure_text(178.24, "attempts/s") == "178.2/s"
    assert figure_text(5432.1, "attempts/s") == "5 432/s"
