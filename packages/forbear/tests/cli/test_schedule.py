"""`forbear schedule`: the numbers of the sources, in every form."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.cli.kit.forecast import MOST, forecast
from forbear.core.backoff import JITTERS, Constant, Exponential
from forbear.core.decide import Wait, decide
from forbear.core.limits import Limits
from forbear.core.verdict import TRANSIENT
from forbear_testkit.cli.running import Finish, Invoke


def read(invoke: Invoke, *args: str) -> Any:
    """Return the JSON that `forbear schedule --json` prints."""
    done = invoke("schedule", *args, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_the_default(invoke: Invoke) -> None:
    """Without a name it is what `forbear.retry` does: full jitter under 1, 2, 4, 8 s, five attempts in a minute."""
    document = read(invoke)
    assert document["profile"] == "default"
    assert document["limits"] == {"attempts": 5, "timeout": 60}
    assert [retry["wait"] for retry in document["retries"]] == [[0, 1], [0, 2], [0, 4], [0, 8]]
    assert [retry["total"] for retry in document["retries"]] == [[0, 1], [0, 3], [0, 7], [0, 15]]
    assert document["end"]["earliest"] == {"retries": 4, "text": "default limit of 5 attempts reached"}


@pytest.mark.parametrize(("cap", "retries", "last"), [("64", 14, [575, 581]), ("32", 22, [575, 580])])
def test_cloud_storage_as_documented(cap: str, retries: int, last: list[float], invoke: Invoke) -> None:
    """The source's table: 1 to 2, 2 to 3, 4 to 5 s and so on; ten minutes hold 14 retries with cap 64, 22 with 32."""
    document = read(invoke, "cloud_storage.documented", "--maximum", cap)
    assert [retry["wait"] for retry in document["retries"][:5]] == [[1, 2], [2, 3], [4, 5], [8, 9], [16, 17]]
    assert {end["retries"] for end in document["end"].values()} == {retries}
    assert document["retries"][-1]["total"] == last


def test_cloud_storage_as_recommended(invoke: Invoke) -> None:
    """Retry n waits 2**n to 2**(n+1) s below the cap; how many fit into ten minutes depends on the draws."""
    document = read(invoke, "cloud_storage")
    assert [retry["wait"] for retry in document["retries"][:7]] == [
        [1, 2], [2, 4], [4, 8], [8, 16], [16, 32], [32, 64], [32, 64],
    ]  # fmt: skip
    assert document["end"]["earliest"]["retries"] == 13
    assert document["end"]["latest"]["retries"] == 22
    assert [retry["certain"] for retry in document["retries"]] == [True] * 13 + [False] * 9


def test_options_change_the_profile(invoke: Invoke) -> None:
    """Options that are absent leave the profile unchanged."""
    document = read(invoke, "cloud_storage", "--attempts", "3", "--timeout", "1m", "--jitter", "none")
    assert document["backoff"] == {
        "kind": "Exponential", "initial": 2, "multiplier": 2, "maximum": 64, "jitter": "none", "spread": 1,
    }  # fmt: skip
    assert [retry["wait"] for retry in document["retries"]] == [[2, 2], [4, 4]]
    document = read(invoke, "--constant", "500ms", "--attempts", "none", "--timeout", "2")
    assert [retry["total"] for retry in document["retries"]] == [[0.5, 0.5], [1, 1], [1.5, 1.5], [2, 2]]


def test_decorrelated_waits_follow_each_other(invoke: Invoke) -> None:
    """The longest wait is three times the longest before it, the shortest always the initial one."""
    document = read(invoke, "--jitter", "decorrelated", "--timeout", "none", "--maximum", "20")
    assert [retry["wait"] for retry in document["retries"]] == [[1, 3], [1, 9], [1, 20], [1, 20]]


def test_the_table(invoke: Invoke) -> None:
    """The table says the same in words, with what it is made of and where it ends."""
    done = invoke("schedule", "--attempts", "3")
    assert done.stdout.splitlines() == [
        "default: steps of 1 s, times 2, at most 64 s; jitter: full; at most 3 attempts, no timeout",
        "",
        "retry   wait before it   all waits so far",
        "    1   0 to 1 s         0 to 1 s",
        "    2   0 to 2 s         0 to 3 s",
        "",
        "ends after 2 retries: limit of 3 attempts reached",
    ]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("args", "end"),
    [
        (("--attempts", "1"), "ends after 0 retries: limit of 1 attempt reached"),
        (("--attempts", "2"), "ends after 1 retry: limit of 2 attempts reached"),
        (("cloud_storage",), "ends after 13 to 22 retries: timeout of 600 s would be passed by the next wait of 64 s"),
        (
            ("--attempts", "none", "--timeout", "120", "--maximum", "60"),
            (
                "ends after 6 retries at the earliest, 8 with medium waits, more if the waits are short: "
                "timeout of 120 s would be passed by the next wait of 60 s"
            ),
        ),
        (("--constant", "0", "--attempts", "none"), f"does not end within {MOST} retries"),
    ],
)
def test_the_end_in_words(args: tuple[str, ...], end: str, invoke: Invoke) -> None:
    """The last line says where the run ends and why, as far as that can be known."""
    assert invoke("schedule", *args).stdout.splitlines()[-1] == end


def test_csv_has_the_same_numbers(invoke: Invoke) -> None:
    """CSV has a line for each retry and a header."""
    rows = list(csv.DictReader(invoke("schedule", "cloud_storage", "--csv").stdout.splitlines()))
    retries = read(invoke, "cloud_storage")["retries"]
    assert [[float(row["wait_low"]), float(row["wait_high"])] for row in rows] == [retry["wait"] for retry in retries]
    assert [[float(row["total_low"]), float(row["total_high"])] for row in rows] == [
        retry["total"] for retry in retries
    ]
    assert rows[0]["certain"] == "true"


def test_a_plot_is_drawn(invoke: Invoke, tmp_path: Path) -> None:
    """The picture is written beside the table, in the format that the name asks for."""
    for name, start in (("plot.svg", b"<?xml"), ("plot.png", b"\x89PNG")):
        done = invoke("schedule", "cloud_storage", "--plot", str(tmp_path / name))
        assert done.stderr == f"wrote the plot to {tmp_path / name}\n"
        assert (tmp_path / name).read_bytes().startswith(start)


def test_the_chart(invoke: Invoke) -> None:
    """A bar shows the shortest wait and its random part; all bars have one scale, and lines have 80 columns."""
    lines = invoke("schedule", "cloud_storage.documented", "--attempts", "5", "--chart").stdout.splitlines()
    bars = [line.split("   ")[-1].strip() for line in lines[3:7]]
    assert bars == ["█" * low + "░" * (high - low) for low, high in ((4, 8), (8, 12), (16, 20), (32, 36))]
    assert "█ the shortest wait, ░ its random part" in lines


def test_the_chart_of_waits_of_zero(invoke: Invoke) -> None:
    """Waits of zero have empty bars, and a wait that is tiny beside the others keeps one sign."""
    lines = invoke("schedule", "--constant", "0", "--attempts", "3", "--chart").stdout.splitlines()
    assert lines[3:5] == ["    1   0 s              0 s", "    2   0 s              0 s"]
    args = ("--jitter", "none", "--attempts", "12", "--timeout", "1h", "--maximum", "900")
    assert invoke("schedule", *args, "--chart").stdout.splitlines()[3].endswith("1 s                ░")


@pytest.mark.parametrize("form", ["--json", "--csv"])
def test_the_chart_is_for_people(form: str, invoke: Invoke) -> None:
    """Programs get no bars: the options exclude each other."""
    done = invoke("schedule", "--chart", form)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"error: `--chart` does not go with `{form}`\nhint: leave one of them out\n"


@pytest.mark.parametrize("name", ["plot.xyz", "plot", "missing/plot.png"])
def test_a_plot_that_fails_prints_nothing_else(name: str, invoke: Invoke, tmp_path: Path) -> None:
    """A wrong suffix or folder is reported before any output."""
    done = invoke("schedule", "--plot", str(tmp_path / name))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(("error: cannot plot to ", "error: cannot write "))


def test_a_plot_without_matplotlib(finish: Finish, tmp_path: Path) -> None:
    """The missing package is reported with the extra that installs it, before any output."""
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('no', name='matplotlib')")
    done = finish("schedule", "--plot", str(tmp_path / "plot.png"), PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ('error: this needs matplotlib, which is not installed\nhint: pip install "forbear[plot]"\n')


@given(
    st.one_of(
        st.builds(
            Exponential,
            initial=st.floats(0.01, 10),
            multiplier=st.floats(1, 5),
            maximum=st.floats(10, 100),
            jitter=st.sampled_from(JITTERS),
        ),
        st.builds(Constant, st.floats(0.01, 10), st.floats(0, 3)),
    ),
    st.builds(Limits, st.none() | st.integers(1, 12), st.floats(0.5, 500)),
    st.lists(st.floats(0, 1, exclude_max=True), min_size=12, max_size=12),
)
def test_no_run_leaves_the_forecast(backoff: Exponential | Constant, limits: Limits, draws: list[float]) -> None:
    """Whatever is drawn, the first waits of a run are in the ranges, and it has no fewer retries than foreseen."""
    found = forecast(limits, backoff)
    elapsed, previous = 0.0, None
    for number, u in enumerate(draws, start=1):
        step = decide(
            limits, backoff, TRANSIENT, attempt=number, elapsed=elapsed, u=u, repeatable=True, previous=previous
        )
        if not isinstance(step, Wait):
            assert found.earliest.retries is not None
            assert number - 1 >= found.earliest.retries
            break
        elapsed, previous = elapsed + step.delay, step.delay
        if number <= len(found.retries):
            retry = found.retries[number - 1]
            assert retry.wait[0] - 1e-6 <= step.delay <= retry.wait[1] + 1e-6
            assert retry.total[0] - 1e-6 <= elapsed <= retry.total[1] + 1e-6
