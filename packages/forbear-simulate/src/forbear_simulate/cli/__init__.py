"""`forbear simulate`: what a fleet of clients does to a service, by a policy, in virtual time."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from forbear.cli.kit.completion import complete_profile
from forbear.cli.kit.output import BadInput, check_links, tell
from forbear_simulate.cli.answers import show_values, show_verdicts, values_document, verdict_document
from forbear_simulate.cli.example import EXAMPLE
from forbear_simulate.cli.gallery import ALL, show_gallery
from forbear_simulate.cli.modes import check_modes

if TYPE_CHECKING:
    from collections.abc import Callable

    from forbear_simulate import FleetOutcome, Scenario
    from forbear_simulate.runs import Engine
    from forbear_simulate.verdict import FleetVerdict

_EPILOG = "Exit codes: 0 ok, 1 failed, 2 usage or bad input, 130 interrupted: what is known is printed before."


@click.command(epilog=_EPILOG)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change one value of the scenario.")
@click.option(
    "--policy",
    metavar="NAME",
    help="The policy of the clients, as in `forbear schedule`.",
    shell_complete=complete_profile,
)
@click.option(
    "--compare",
    multiple=True,
    metavar="NAME",
    help="Show another policy beside the first; or another value, as KEY=VALUE. Repeatable.",
    shell_complete=complete_profile,
)
@click.option(
    "--engine",
    type=click.Choice(["cohort", "exact"]),
    help="Means of a large fleet, or each call with chance. Default: cohort; exact with --runs.",
)
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help="Runs of the exact engine.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same numbers.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes for --runs. Default: one per core.")
@click.option("--verdict", "judge", is_flag=True, help="Say whether the fleet is stable, vulnerable or metastable.")
@click.option("--find", "key", metavar="KEY", help="Find the values of KEY with which --such-that holds.")
@click.option("--such-that", metavar="LIMIT", help="A limit on a figure, such as 'recovery < 60 s'.")
@click.option("--map", "draw_map", is_flag=True, help="Try triggers of many sizes and lengths; show which ones stay.")
@click.option("--sweep", metavar="KEY=FROM..TO", help="Show success and load against the values of KEY.")
@click.option(
    "--gallery",
    is_flag=False,
    flag_value=ALL,
    metavar="[NAME]",
    help="Run published studies, or one, and compare their figures with ours.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "table", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the bins.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also draw a plot.")
@click.pass_context
def command(
    context: click.Context,
    file: Path | None,
    changes: tuple[str, ...],
    policy: str | None,
    compare: tuple[str, ...],
    engine: str | None,
    runs: int,
    seed: int,
    workers: int | None,
    judge: bool,
    key: str | None,
    such_that: str | None,
    draw_map: bool,
    sweep: str | None,
    gallery: str | None,
    as_json: bool,
    table: Path | None,
    plot: Path | None,
) -> None:
    """Show what a fleet of clients does to a service.

    FILE is a scenario, in TOML or JSON (.json): the clients, their policy and budget, the service, and the times in
    which it is slow or out. Without FILE, 80 calls per second go to a service for 100 that is out for half a minute.
    docs/simulate.md has all keys with their units.

    The waits and stops are those of the library's policies, and the budgets count by its rules. The output is a table
    of figures, and a chart of goodput and of the attempts above it.
    """
    from forbear_simulate import ScenarioError, SimulationInterrupted, simulate

    check_modes(context)
    read = () if file is None else (file,)
    if table is not None:
        check_links("csv", table, read)
    if plot is not None:
        from forbear.cli.kit.plots import check_plot

        check_plot(plot, read)
    outcomes: dict[str, FleetOutcome] = {}
    scenarios: dict[str, Scenario] = {}
    verdicts: dict[str, FleetVerdict] = {}
    interrupted = False
    try:
        if gallery is not None:
            context.exit(0 if show_gallery(gallery, as_json=as_json) else 1)
        scenarios = _scenarios(file, changes, policy, compare)
        if key is not None and such_that is not None:
            _find(next(iter(scenarios.values())), key, such_that, engine, seed, as_json=as_json)
            return
        if draw_map:
            _map(next(iter(scenarios.values())), plot, as_json=as_json)
            return
        if sweep is not None:
            _sweep(scenarios, sweep, plot, engine, runs, seed, workers, as_json=as_json)
            return
        with _progress(len(scenarios) * runs, engine == "exact" or runs > 1) as advance:
            for name, scenario in scenarios.items():
                outcomes[name] = simulate(
                    scenario,
                    engine=_engine(engine, runs),
                    runs=runs,
                    seed=seed,
                    workers=workers,
                    progress=advance,
                )
        if judge:
            from forbear_simulate.verdict import verdict  # it needs numpy

            for name, scenario in scenarios.items():
                verdicts[name] = verdict(scenario)
    except ScenarioError as error:
        _refuse(error)
    except SimulationInterrupted as error:
        if key is not None or sweep is not None:
            raise click.Abort from None  # of one of many simulations: nothing is known yet
        interrupted = True
        outcomes[list(scenarios)[len(outcomes)]] = error.outcome
    except ImportError as error:
        if not isinstance(error.__cause__ or error, ModuleNotFoundError):
            raise
        hint = 'pip install "forbear[simulate]"; only --engine exact goes without it'
        raise BadInput("this needs numpy, which is not installed", hint) from None
    _print(outcomes, verdicts, as_json=as_json)
    if table is not None:
        _write(table, next(iter(outcomes.values())).csv())
    if plot is not None:
        from forbear_simulate.cli.plot import plot_outcomes

        plot_outcomes(outcomes, plot)
        tell(f"wrote the plot to {plot}")
    if interrupted:
        tell("interrupted: this is what was known until then")
        context.exit(130)


def _scenarios(
    file: Path | None, changes: tuple[str, ...], policy: str | None, compare: tuple[str, ...]
) -> "dict[str, Scenario]":
    """Return the scenarios to compare by name; raise ScenarioError, and BadInput for a file that cannot be read.

    The name is that of the policy, or the `KEY=VALUE` in which a scenario differs.
    """
    from forbear_simulate import read_file, read_mapping

    def read(*options: str) -> "Scenario":
        try:
            return read_mapping(EXAMPLE, options) if file is None else read_file(file, options)
        except OSError as error:
            raise BadInput(f"cannot read {file}: {error.strerror}", "name another file") from None

    policies = [] if policy is None else [f"clients.policy={policy}"]
    first = read(*policies, *changes)
    scenarios = {policy or first.clients.policy.name or "the policy of the file": first}
    for name in compare:
        if name in scenarios:
            raise BadInput(f"`--compare {name}` is there already", "name another one")
        is_change = "=" in name
        scenarios[name] = read(*policies, *changes, name) if is_change else read(f"clients.policy={name}", *changes)
    return scenarios


def _find(scenario: "Scenario", key: str, such_that: str, engine: str | None, seed: int, *, as_json: bool) -> None:
    """Search for the values of a key and print them; the exit code is 1 if none fits."""
    from forbear_simulate.search import find  # it needs numpy

    values = find(scenario, key, such_that=such_that, engine=_engine(engine, 1), seed=seed)
    if as_json:
        click.echo(json.dumps(values_document(values)))
    else:
        show_values(values)
    if values.value is None:
        click.get_current_context().exit(1)


def _map(scenario: "Scenario", plot: Path | None, *, as_json: bool) -> None:
    """Try triggers of many sizes and lengths, and print what follows them; plot it if there is a file."""
    from forbear_simulate.cli.phases import map_document, plot_map, show_map
    from forbear_simulate.phase import LENGTHS, SIZES, phase_map  # it needs numpy

    with _progress(len(SIZES) * len(LENGTHS), slow=True) as advance:
        tried = phase_map(scenario, SIZES, LENGTHS, progress=advance)
    if as_json:
        click.echo(json.dumps(map_document(tried)))
    else:
        show_map(tried)
    if plot is not None:
        plot_map(tried, plot)
        tell(f"wrote the plot to {plot}")


def _sweep(
    scenarios: "dict[str, Scenario]",
    text: str,
    plot: Path | None,
    engine: str | None,
    runs: int,
    seed: int,
    workers: int | None,
    *,
    as_json: bool,
) -> None:
    """Simulate each scenario with each value of one key, and print success and load; plot them if there is a file."""
    from forbear_simulate import ScenarioError
    from forbear_simulate.cli.sweeps import plot_sweeps, show_sweeps, sweeps_document
    from forbear_simulate.sweep import read_values, sweep

    key, values = read_values(text)
    kind = _engine(engine, runs)
    with _progress(len(scenarios) * len(values) * runs, slow=True) as advance:
        try:
            swept = {
                name: sweep(scenario, key, values, engine=kind, runs=runs, seed=seed, workers=workers, progress=advance)
                for name, scenario in scenarios.items()
            }
        except ScenarioError as error:
            raise ScenarioError(str(error).replace("`key`", "`sweep`")) from None  # `key` is that of --find
    if as_json:
        click.echo(json.dumps(sweeps_document(swept)))
    else:
        show_sweeps(swept)
    if plot is not None:
        plot_sweeps(swept, plot)
        tell(f"wrote the plot to {plot}")


def _engine(engine: str | None, runs: int) -> "Engine":
    """Return the engine to use: only the exact one can have several runs."""
    return "exact" if engine == "exact" or (engine is None and runs > 1) else "cohort"


def _print(outcomes: "dict[str, FleetOutcome]", verdicts: "dict[str, FleetVerdict]", *, as_json: bool) -> None:
    if not as_json:
        from forbear_simulate.cli.show import show_limits, show_outcomes

        show_outcomes(outcomes)
        show_verdicts(verdicts)
        show_limits(next(iter(outcomes.values())))
        return
    documents = {name: outcome.document() for name, outcome in outcomes.items()}
    for name, one in verdicts.items():
        documents[name]["verdict"] = verdict_document(one)
    click.echo(json.dumps({"policies": documents} if len(documents) > 1 else next(iter(documents.values()))))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}", "choose another folder or name") from None
    tell(f"wrote the bins to {file}")


@contextmanager
def _progress(runs: int, slow: bool) -> "Generator[Callable[[int, int], None] | None]":
    """Yield a function that a simulation calls after each run. On a terminal, stderr shows a bar; else nothing."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    if not slow or not screen.is_terminal:
        yield None
        return
    with Progress(SpinnerColumn(), *Progress.get_default_columns(), TimeElapsedColumn(), console=screen) as bar:
        task = bar.add_task("simulate", total=runs)

        def advance(done: int, runs: int) -> None:
            bar.advance(task)

        yield advance


def _refuse(error: Exception) -> NoReturn:
    """Raise BadInput for a ScenarioError: its cure is the hint."""
    message, _, cure = str(error).rpartition("; ")
    raise BadInput(message or cure, cure if message else None) from None
