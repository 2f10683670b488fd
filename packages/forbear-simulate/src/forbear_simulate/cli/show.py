"""Print outcomes: a table of figures, a chart for each, and the list of what is not modelled."""

import sys
from collections.abc import Mapping

import click
from rich.text import Text

from forbear.cli.kit.output import columns, console, show_table, tell
from forbear_simulate.analysis.figures import figure_rules
from forbear_simulate.analysis.outcome import FleetOutcome
from forbear_simulate.analysis.recovery import trigger
from forbear_simulate.cli.chart import ASCII, UNICODE, Curves, Signs, draw
from forbear_simulate.cli.texts import figure_text, time_text
from forbear_simulate.scenario.scenario import Scenario

_SHOWN = (
    "calls", "offered_load", "goodput", "amplification", "gave_up_share", "refusals", "timeouts", "budget_refusals",
    "longest_queue", "peak_to_mean", "recovery", "drain", "p50", "p99", "longest",
)  # fmt: skip
_OPTIONAL = ("refusals", "timeouts", "budget_refusals")


def show_outcomes(outcomes: Mapping[str, FleetOutcome]) -> None:
    """Print outcomes by the name of their policy: a scenario line, one table, and a chart each."""
    first = next(iter(outcomes.values()))
    click.echo(f"{scenario_text(first.scenario)}\n{_run_text(first)}\n")
    if len(outcomes) == 1:
        _show_figures(first)
    else:
        _show_side_by_side(outcomes)
    top = max(curves_of(outcome).top for outcome in outcomes.values())
    for name, outcome in outcomes.items():
        show_chart(outcome, name if len(outcomes) > 1 else "", top)


def show_limits(outcome: FleetOutcome) -> None:
    """Print to stderr what the simulation does not model."""
    tell("not modelled:")
    for text in outcome.not_modelled:
        tell(f"- {text}")


def show_chart(outcome: FleetOutcome, title: str = "", top: float | None = None) -> None:
    """Print the chart of an outcome; `top` is the value of its top, None for its own."""
    out = console()
    chart = draw(curves_of(outcome), signs=_signs(), top=top, room=out.width)
    for line in ([Text(title, "bold")] if title else []) + chart:
        with out.capture() as captured:
            out.print(line)
        click.echo(captured.get().rstrip(), color=out.color_system is not None)
    click.echo()


def curves_of(outcome: FleetOutcome) -> Curves:
    """Return the curves of the chart of an outcome."""
    return Curves(outcome.offered_load, outcome.goodput, outcome.scenario.step, trigger(outcome.scenario))


def scenario_text(scenario: Scenario) -> str:
    """Return a line that says who calls what, and what goes wrong."""
    clients, service = scenario.clients, scenario.service
    calls = {
        "closed": f"{clients.count} clients that think for {time_text(clients.think_time)}",
        "herd": f"{clients.count} clients that call at the same time",
    }.get(clients.arrivals, f"{clients.rate:g} calls/s from {clients.count} clients")
    windows = "; ".join(
        f"{window.kind} from {time_text(window.start)} to {time_text(window.end)}" for window in scenario.windows
    )
    parts = (calls, f"a service for {service.capacity:g} requests/s", windows)
    return "; ".join(filter(None, parts))


def _run_text(outcome: FleetOutcome) -> str:
    """Return a line that says how far the simulation got, by which engine."""
    runs = f", {outcome.runs} runs" if outcome.runs > 1 else ""
    seed = f", seed {outcome.seed}" if outcome.engine == "exact" else ""
    return f"{time_text(outcome.reached)} of virtual time, {outcome.engine} engine{runs}{seed}"


def _show_figures(outcome: FleetOutcome) -> None:
    table = columns("figure", "value", "meaning")
    rules = figure_rules()
    for name in _choose_figures([outcome]):
        text = figure_text(getattr(outcome.figures, name), rules[name].unit, outcome.standard_errors[name])
        table.add_row(_words(name), text, rules[name].text)
    show_table(table)


def _show_side_by_side(outcomes: Mapping[str, FleetOutcome]) -> None:
    table = columns("figure", *outcomes)
    rules = figure_rules()
    for name in _choose_figures(list(outcomes.values())):
        texts = (
            figure_text(getattr(outcome.figures, name), rules[name].unit, outcome.standard_errors[name])
            for outcome in outcomes.values()
        )
        table.add_row(_words(name), *texts)
    show_table(table)


def _choose_figures(outcomes: list[FleetOutcome]) -> list[str]:
    """Return the figures to show: those that an outcome has, but no counts of failures that did not happen."""
    values = {name: {getattr(outcome.figures, name) for outcome in outcomes} for name in _SHOWN}
    return [name for name in _SHOWN if values[name] != {None} and (name not in _OPTIONAL or values[name] != {0})]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _signs() -> Signs:
    """Return the characters that stdout can show."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower()
    return UNICODE if encoding.startswith("utf") else ASCII
