"""Make the tables of docs/comparison.md from stored figures, and measure those anew.

`python -m docs.generate.comparison` measures what the libraries do and what they cost, which takes some minutes on an
idle machine, and writes the figures beside this file. `python -m docs.generate` then writes the tables.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from docs.generate.markdown import between, table, text

FIGURES = Path(__file__).parent / "comparison.json"
_MARK = "<!-- {} {}: `python -m docs.generate.comparison` measures it, `make reference` writes this table -->"
_BEHAVIOUR = _MARK.format("begin", "behaviour"), _MARK.format("end", "behaviour")
_COST = _MARK.format("begin", "cost"), _MARK.format("end", "cost")
_GOALS = _MARK.format("begin", "goals"), _MARK.format("end", "goals")
_COLUMNS = {"happy": "success", "failures": "failures", "import": "import"}
"""The columns of the table of costs, by their benchmarks."""
_MEASURED = (
    "happy", "happy-async", "failures", "failures-async", "failures-logged", "blocks", "build", "derive", "import",
    "memory", "evidence", "httpx-loopback", "requests-loopback", "aiohttp-loopback", "redis", "botocore-loopback",
)  # fmt: skip
_LIBRARIES = ("tenacity", "stamina", "redress", "google-api-core", "httpx-retries", "aiohttp-retry")


def filled(page: str) -> str:
    """Return the text of a page with its tables made anew; raises ValueError if it has no place for them."""
    return between(between(between(page, *_BEHAVIOUR, _behaviour()), *_COST, _cost()), *_GOALS, _goals())


@cache
def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return stored


def measured_behaviour() -> dict[str, dict[str, Any]]:
    """Let all contenders meet a failing server, and return what it counted."""
    from benchmarks.comparison import CONTENDERS, behaviour

    return {name: behaviour(name)._asdict() for name in CONTENDERS}


def _measured_cost() -> dict[str, Any]:
    """Run the benchmarks: the costs of all libraries, and what forbear reaches of its goals."""
    made, machine = dict[str, Any](), ""
    for name in _MEASURED:
        done = subprocess.run(  # noqa: S603 - a process each: what others have loaded or used would count
            [sys.executable, "-m", "benchmarks", "--json", "--only", name], stdout=subprocess.PIPE, check=True
        )
        found = json.loads(done.stdout)
        made[name], machine = found["benchmarks"][0], found["machine"]
    cost: dict[str, dict[str, float]] = {name: {} for name in ("forbear", *_LIBRARIES[:4])}
    for name, costs in cost.items():
        for benchmark, column in _COLUMNS.items():
            figures = made[benchmark]["figures"][name]
            yardstick = next(key for key in reversed(figures) if key.startswith("ratio to "))
            costs[column] = round(figures[yardstick], 3)
    goals = [
        [each["title"], target["contender"], target["against"] or each["unit"], *map(target.get, _BOUNDS)]
        for each in made.values()
        for target in each["targets"]
    ]
    return {"cost": cost, "goals": goals, "machine": machine}


_BOUNDS = ("limit", "median", "low", "high", "judged")


def _behaviour() -> Iterator[str]:
    headers = (
        "", "an upload whose response is lost", "an upload with a condition, after a 503", "a download that breaks",
        "wait after `Retry-After: 20`", "requests of two layers in an outage",
    )  # fmt: skip
    rows = (
        (
            f"**{name}**" if name.startswith("forbear") else name,
            f"written {_times(each['executed'])}",
            "succeeds" if each["recovered"] else "fails",
            "whole" if each["delivered"] else "broken",
            f"{each['waited']:g} s",
            str(each["sent"]),
        )
        for name, each in _stored()["behaviour"].items()
    )
    yield from table(headers, rows)
    listed = ", ".join(f"{name} {number}" for name, number in _stored()["versions"].items())
    yield from text(f"Versions: {listed}.")


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _cost() -> Iterator[str]:
    headers = ("", "a success at once", "three failures, then success", "import")
    rows = (
        (
            f"**{name}**" if name == "forbear" else name,
            *(_ratio(each[column]) for column in ("success", "failures", "import")),
        )
        for name, each in _stored()["cost"].items()
    )
    yield from table(headers, rows)


def _goals() -> Iterator[str]:
    rows = (
        (
            title if who == "forbear" else f"{title}: {who.removeprefix('forbear, ')}",
            f"{_number(median)} {_unit(unit)}",
            f"{_number(low)} to {_number(high)}",
            f"{limit:g}",
            "" if judged == "met" else judged.lower(),
        )
        for title, who, unit, limit, median, low, high, judged in _stored()["goals"]
    )
    yield from table(("", "forbear", "range", "goal", ""), rows)
    yield from text(f"Machine: {_stored()['machine']}. The range holds the true median with 95 % certainty.")


def _unit(unit: str) -> str:
    return {"us": "µs"}.get(unit, unit) if unit in ("us", "ns", "ms", "kB") else f"\N{MULTIPLICATION SIGN} {unit}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def main() -> None:
    """Measure everything and store it."""
    measured = {
        "versions": {name: version(name) for name in _LIBRARIES},
        "behaviour": measured_behaviour(),
        **_measured_cost(),
    }
    FIGURES.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
