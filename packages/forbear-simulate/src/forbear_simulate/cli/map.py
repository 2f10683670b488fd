"""`forbear simulate map`: the triggers, by size and length, after which the goodput stays down."""

import json
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forbear.cli.kit.output import columns, save_plot, show_table, tell
from forbear_simulate.cli.options import (
    check_plot_file,
    file_argument,
    json_option,
    plot_option,
    progress,
    read_scenario,
    scenario_options,
    translate_errors,
)
from forbear_simulate.cli.texts import figure_text, time_text

if TYPE_CHECKING:
    from forbear_simulate.analysis.phase import PhaseMap


@click.command("map")
@file_argument
@scenario_options
@json_option
@plot_option
def map_triggers(
    file: Path | None, changes: tuple[str, ...], policy: str | None, as_json: bool, plot: Path | None
) -> None:
    """Show after which triggers the goodput stays down.

    Triggers of many sizes and lengths are tried.
    """
    check_plot_file(plot, file)
    with translate_errors():
        scenario = read_scenario(file, changes, policy)
        from forbear_simulate.analysis.phase import LENGTHS, SIZES, phase_map

        with progress(len(SIZES) * len(LENGTHS), slow=True) as advance:
            tried = phase_map(scenario, SIZES, LENGTHS, progress=advance)
    if as_json:
        click.echo(json.dumps(map_document(tried)))
    else:
        show_map(tried)
    if plot is not None:
        plot_map(tried, plot)
        tell(f"wrote the plot to {plot}")


def show_map(tried: "PhaseMap") -> None:
    """Print a table with a row for each size and a column for each length of a trigger, and the boundary in words."""
    click.echo("the time until the goodput is back, after a trigger that takes a share of the capacity for a time\n")
    table = columns("share", *(time_text(length) for length in tried.lengths))
    for size, row in zip(tried.sizes, tried.recovery, strict=True):
        cells = (
            f"[bold red]{text}[/]" if text == "never" else text for text in (figure_text(n, "seconds") for n in row)
        )
        table.add_row(f"{size:.0%}", *cells)
    show_table(table)
    click.echo(boundary_text(tried))
    click.echo()


def boundary_text(tried: "PhaseMap") -> str:
    """Return a sentence about the boundary at which load times attempts is the capacity."""
    text = (
        f"{tried.load:g} calls/s with {tried.attempts:g} attempts each are {tried.worst_load:g} requests/s, "
        f"the capacity is {tried.capacity:g}"
    )
    if tried.boundary is None:
        return f"{text}: retries alone can keep the service overloaded"
    return f"{text}: retries alone keep the service overloaded while a trigger takes more than {tried.boundary:.0%}"


def map_document(tried: "PhaseMap") -> dict[str, Any]:
    """Return a map as a document for JSON: one list for each size, with the time for each length."""
    return {
        "sizes": list(tried.sizes),
        "lengths": list(tried.lengths),
        "recovery": [["never" if isinf(time) else time for time in row] for row in tried.recovery],
        "load": tried.load,
        "capacity": tried.capacity,
        "attempts": tried.attempts,
        "overload": tried.overload,
        "boundary": tried.boundary,
    }


def plot_map(tried: "PhaseMap", file: Path) -> None:
    """Plot the map: light where the goodput comes back at once, dark where late, red where never.

    A line is the size at which a trigger is an overload, another one the boundary of load times attempts. Raises
    BadInput as `plot_outcomes` does.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes: Any = figure.subplots()
    longest = max((time for row in tried.recovery for time in row if not isinf(time)), default=0.0) or 1.0
    colors = [
        [(0.84, 0.15, 0.16) if isinf(time) else (1 - 0.8 * time / longest,) * 3 for time in row]
        for row in tried.recovery
    ]
    axes.imshow(colors, origin="lower", aspect="auto")
    for y, row in enumerate(tried.recovery):
        for x, time in enumerate(row):
            dark = isinf(time) or time > longest / 2
            text = figure_text(time, "seconds")
            axes.text(x, y, text, ha="center", va="center", fontsize="small", color="white" if dark else "black")
    axes.set_xticks(range(len(tried.lengths)), [time_text(length) for length in tried.lengths])
    axes.set_yticks(range(len(tried.sizes)), [f"{size:.0%}" for size in tried.sizes])
    axes.set_xlabel("length of the trigger")
    axes.set_ylabel("share of the capacity that it takes")
    for size, style, label in (
        (tried.overload, "--", "what is left is the load"),
        (tried.boundary, ":", "what is left is load · attempts"),
    ):
        if size is not None:
            axes.axhline(_place(size, tried.sizes), linestyle=style, color="blue", label=label)
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")  # pyright: ignore[reportUnknownMemberType]
    figure.suptitle(boundary_text(tried), fontsize="small", wrap=True)  # pyright: ignore[reportUnknownMemberType]
    save_plot(figure, file)


def _place(size: float, sizes: tuple[float, ...]) -> float:
    """Return where a size lies on an axis whose rows are the `sizes`, in rows from 0."""
    for i in range(1, len(sizes)):
        if size <= sizes[i] or i == len(sizes) - 1:
            return i - 1 + (size - sizes[i - 1]) / (sizes[i] - sizes[i - 1])
    return 0.0
