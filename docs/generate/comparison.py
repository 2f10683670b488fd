"""Make the tables of docs/comparison.md from stored figures, and measure those anew.

`python -m docs.generate.comparison` measures what the libraries do and what they cost, which takes a minute, and writes
the figures beside this file. `python -m docs.generate` then writes the tables.
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
_LIBRARIES = ("tenacity", "stamina", "redress", "google-api-core", "httpx-retries", "aiohttp-retry")


def filled(page: str) -> str:
    """Return the text of a page with its two tables made anew; raises ValueError if it has no place for them."""
    return between(between(page, *_BEHAVIOUR, _behaviour()), *_COST, _cost())


@cache
def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return stored


def measured_behaviour() -> dict[str, dict[str, Any]]:
    """Let all contenders meet a failing server, and return what it counted."""
    from benchmarks.comparison import CONTENDERS, behaviour

    return {name: behaviour(name)._asdict() for name in CONTENDERS}


def _measured_cost() -> dict[str, dict[str, float]]:
    names = {"happy": "success", "failures": "failures", "import": "import"}
    only = [word for name in names for word in ("--only", name)]
    done = subprocess.run(  # noqa: S603 - a process of its own: what is loaded here would count
        [sys.executable, "-m", "benchmarks", "--json", *only], stdout=subprocess.PIPE, check=True
    )
    measured: dict[str, dict[str, float]] = {name: {} for name in ("forbear", *_LIBRARIES[:4])}
    for made in json.loads(done.stdout)["benchmarks"]:
        for name, cost in measured.items():
            figures = made["figures"][name]
            yardstick = next(key for key in reversed(figures) if key.startswith("ratio to "))
            cost[names[made["name"]]] = round(figures[yardstick], 3)
    return measured


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


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def main() -> None:
    """Measure everything and store it."""
    measured = {
        "versions": {name: version(name) for name in _LIBRARIES},
        "behaviour": measured_behaviour(),
        "cost": _measured_cost(),
    }
    FIGURES.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
