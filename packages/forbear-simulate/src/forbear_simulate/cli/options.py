"""The common part of the commands: the options of a scenario and an engine, a progress bar, errors with cures."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from forbear.cli.kit.completion import complete_profile
from forbear.cli.kit.output import BadInput

if TYPE_CHECKING:
    from forbear_simulate import Scenario
    from forbear_simulate.analysis.runs import Engine

F = TypeVar("F", bound=Callable[..., Any])

EXAMPLE: dict[str, Any] = {
    "duration": "2m",
    "step": "500ms",
    "clients": {"rate": "80/s", "count": 500, "attempt_timeout": "1s"},
    "service": {"workers": 10, "time": "100ms"},
    "windows": [{"kind": "refuse", "start": "30s", "length": "30s"}],
}
"""The scenario without a file: 80 calls per second to a service for 100, which refuses all for half a minute."""

file_argument = click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[FILE]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
plot_option = click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also draw a plot."
)
compare_option = click.option(
    "--compare",
    multiple=True,
    metavar="NAME",
    help="Show another policy beside the first; or another value, as KEY=VALUE. Repeatable.",
    shell_complete=complete_profile,
)


def scenario_options(function: F) -> F:
    """Add the options that change a scenario: `changes` and `policy`."""
    policy = click.option(
        "--policy",
        metavar="NAME",
        help="The policy of the clients, as in `forbear schedule`.",
        shell_complete=complete_profile,
    )
    changes = click.option(
        "--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change one value of the scenario."
    )
    return changes(policy(function))


def engine_options(function: F) -> F:
    """Add the options of several runs: `engine`, `runs`, `seed` and `workers`."""
    workers = click.option(
        "--workers", type=click.IntRange(1), metavar="N", help="Processes for --runs. Default: one per core."
    )
    runs = click.option(
        "--runs", type=click.IntRange(1), default=1, show_default=True, help="Runs of the exact engine."
    )
    return engine_option(runs(seed_option(workers(function))))


engine_option = click.option(
    "--engine",
    type=click.Choice(["cohort", "exact"]),
    help="Means of a large fleet, or each call with chance. Default: cohort; exact with --runs.",
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same numbers."
)


def engine_of(engine: str | None, runs: int = 1) -> "Engine":
    """Return the engine to use: only the exact one can have several runs."""
    return "exact" if engine == "exact" or (engine is None and runs > 1) else "cohort"


def read_scenario(file: Path | None, options: "tuple[str, ...]", policy: str | None) -> "Scenario":
    """Return the scenario of `file`, or the example, changed by `options`; BadInput if the file cannot be read."""
    from forbear_simulate import read_file, read_mapping

    changes = (*(() if policy is None else (f"clients.policy={policy}",)), *options)
    try:
        return read_mapping(EXAMPLE, changes) if file is None else read_file(file, changes)
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}", "name another file") from None


def read_scenarios(
    file: Path | None, changes: tuple[str, ...], policy: str | None, compare: tuple[str, ...]
) -> "dict[str, Scenario]":
    """Return the scenarios to compare by name: that of the policy, or the `KEY=VALUE` in which one differs."""
    first = read_scenario(file, changes, policy)
    scenarios = {policy or first.clients.policy.name or "the policy of the file": first}
    for name in compare:
        if name in scenarios:
            raise BadInput(f"`--compare {name}` is there already", "name another one")
        if "=" in name:
            scenarios[name] = read_scenario(file, (*changes, name), policy)
        else:
            scenarios[name] = read_scenario(file, changes, name)
    return scenarios


def check_plot_file(plot: Path | None, file: Path | None) -> None:
    """Raise BadInput for a plot that cannot be written, before anything is simulated."""
    if plot is not None:
        from forbear.cli.kit.output import check_plot

        check_plot(plot, () if file is None else (file,))


@contextmanager
def translate_errors(**renamed: str) -> Generator[None]:
    """Raise BadInput in place of a ScenarioError, whose cure is the hint.

    `renamed` are the parameters that the command line calls something else, such as key="`KEY`". An interruption of
    one of many simulations ends the command, since nothing is known yet.
    """
    from forbear_simulate import ScenarioError, SimulationInterrupted

    try:
        yield
    except ScenarioError as error:
        text = str(error)
        for name, shown in renamed.items():
            text = text.replace(f"`{name}`", shown)
        message, _, cure = text.rpartition("; ")
        raise BadInput(message or cure, cure if message else None) from None
    except SimulationInterrupted:
        raise click.Abort from None


@contextmanager
def progress(runs: int, *, slow: bool) -> "Generator[Callable[[int, int], None] | None]":
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
