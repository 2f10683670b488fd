"""Make the tables of docs/what-sdks-repeat.md from stored figures, which `make sdk-repeats` measures.

The clients are measured in an environment of their own (tools/sdk_repeats). The quota of AWS is simulated here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import forbear
from docs.generate.markdown import between, code, table, text
from forbear_simulate import ClientBudget, Clients, Scenario, Server, Window, simulate

FIGURES = Path(__file__).parent / "sdk_repeats.json"
_MARK = "<!-- {} {}: `make sdk-repeats` measures it, `make reference` writes it -->"
_MARKS = {name: (_MARK.format("begin", name), _MARK.format("end", name)) for name in ("summary", "clients", "quota")}
_MODES = ("default", "forbear")
_FAULTS = {"lost": "response lost", "503": "503"}

_RATE, _SECONDS = 200.0, 60.0


def filled(page: str) -> str:
    """Return the text of a page with its tables made anew; raises ValueError if it has no place for them."""
    for name, lines in (("summary", _summary()), ("clients", _clients()), ("quota", _quota())):
        page = between(page, *_MARKS[name], lines)
    return page


@cache
def stored() -> dict[str, Any]:
    """Return the stored figures."""
    figures: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return figures


def store(measured: Mapping[str, Any]) -> None:
    """Write figures, each library on a line."""
    libraries = ",\n".join(json.dumps(library) for library in measured["libraries"])
    rest = json.dumps({name: value for name, value in measured.items() if name != "libraries"})
    FIGURES.write_text(f'{rest[:-1]}, "libraries": [\n{libraries}\n]}}\n', encoding="utf-8")


def measured_quota(processes: Iterable[int] = (10, 100, 1000, 10_000)) -> list[dict[str, float]]:
    """Simulate an outage of a minute for fleets of so many processes, and return the requests for each call.

    They are those without a quota ("none"), with AWS's in each process ("quota"), and with one bucket ("shared").
    """
    quota = forbear.budgets.Budget.aws()
    shared = forbear.budgets.SharedBudget("redis://127.0.0.1:1", "aws", capacity=500 / 14, deposit=1 / 14)
    budgets = {
        "none": None,
        "quota": ClientBudget(quota, per="client"),
        "shared": ClientBudget(shared, per="fleet"),
    }
    return [
        {"processes": count, "calls": _RATE * _SECONDS / count}
        | {name: round(_load(count, budget), 3) for name, budget in budgets.items()}
        for count in processes
    ]


def _load(processes: int, budget: ClientBudget | None) -> float:
    """Return the requests for each call in the outage, which follows on a healthy minute."""
    waits = forbear.Exponential(0.05, 2, 20, "full")
    policy = forbear.retry(OSError, attempts=3, timeout=None, backoff=waits)
    scenario = Scenario(
        2 * _SECONDS,
        0.1,
        Clients("regular", _RATE, count=processes, policy=policy),
        Server(workers=1000, time=0.01),
        (Window("refuse", _SECONDS, _SECONDS),),
        budget,
    )
    bins = simulate(scenario, engine="cohort", workers=1).bins
    half = len(bins["retries"]) // 2
    return 1 + sum(bins["retries"][half:]) / sum(bins["first_attempts"][half:])


def _summary() -> Iterator[str]:
    headers = (
        "client",
        "operations",
        "executed twice by default",
        "of these, with an effect",
        "with forbear, with an effect",
    )
    yield from table(headers, map(_summary_row, stored()["libraries"]))


def _summary_row(library: Mapping[str, Any]) -> tuple[str, ...]:
    operations = library["operations"]
    twice = [each for each in operations if _is_twice(each["default"])]
    harmful = [each for each in twice if each["second"]]
    ours = [each for each in operations if each["second"] and _is_twice(each["forbear"])]
    counts = (len(operations), len(twice), len(harmful), len(ours))
    return (f"[{library['name']}](#{library['name']})", *map(str, counts))


def _is_twice(trials: Mapping[str, Mapping[str, Any]]) -> bool:
    return any(trial["executed"] > 1 for trial in trials.values())


def _clients() -> Iterator[str]:
    for library in stored()["libraries"]:
        yield from (f"### {library['name']}", "")
        versions = ", ".join(f"{name} {version}" for name, version in library["versions"].items())
        yield from text(
            f"{versions}. The line that turns its retries off: {code(library['off'])}. "
            f"The one for forbear: {code(library['forbear'])}."
        )
        faults = [fault for fault in _FAULTS if fault in library["operations"][0]["default"]]
        headers = (
            "operation",
            *(f"{mode}, {_FAULTS[fault]}" for mode in _MODES for fault in faults),
            "a second execution",
        )
        rows = (
            (
                code(each["name"]),
                *(_outcome(each[mode][fault]) for mode in _MODES for fault in faults),
                each["second"] or "no further effect",
            )
            for each in library["operations"]
        )
        yield from table(headers, rows)
        if library["note"]:
            yield from text(library["note"])


def _outcome(trial: Mapping[str, Any]) -> str:
    executed = {1: "once", 2: "**twice**"}.get(trial["executed"], f"**{trial['executed']} times**")
    if trial["error"] is not None:
        return f"{executed}, fails"
    return f"{executed}, sent twice" if trial["sent"] > trial["executed"] else executed


def _quota() -> Iterator[str]:
    headers = (
        "processes",
        "calls of each in the minute",
        "no quota",
        "AWS's quota in each process",
        "one shared bucket",
    )
    rows = (
        (
            f"{each['processes']:,}".replace(",", " "),
            f"{each['calls']:g}",
            *(f"{each[name]:.2f} \N{MULTIPLICATION SIGN}" for name in ("none", "quota", "shared")),
        )
        for each in stored()["quota"]
    )
    yield from table(headers, rows)
