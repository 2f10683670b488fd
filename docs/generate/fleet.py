"""Make the table of docs/fleet.md and the page of the gallery from stored figures, and measure those anew.

`python -m docs.generate.fleet` simulates everything, which takes a minute, and writes the figures beside this file and
the pictures of docs/fleet. `python -m docs.generate` then writes the pages.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from docs.generate.markdown import between, code, table, text
from forbear.cli.app import app
from forbear.core.backoff import Exponential
from forbear_simulate.analysis.defaults import GOALS, PolicyFigures, figures_of_policy, list_policies
from forbear_simulate.engines.cohort import simulate_cohort
from forbear_simulate.gallery import STUDIES, Comparison, Study
from forbear_simulate.gallery.own_jitter import herd
from forbear_simulate.gallery.studies import show_figure, text_of_error, text_of_published

_HERE = Path(__file__).parent
DEFAULTS, GALLERY = _HERE / "fleet.csv", _HERE / "gallery.csv"
PICTURES = _HERE.parent / "fleet"
_MARK = "<!-- {} defaults: `make fleet` measures them, `make reference` writes this table -->"
BEGIN, END = _MARK.format("begin"), _MARK.format("end")


def filled(page: str) -> str:
    """Return the text of a page with its table of defaults made anew; raises ValueError if it has no place for one."""
    return between(page, BEGIN, END, _defaults())


def stored_figures() -> dict[str, PolicyFigures]:
    """Return the stored figures of the shipped policies by name."""
    with DEFAULTS.open(encoding="utf-8", newline="") as file:
        return {name: PolicyFigures(*map(float, figures)) for name, *figures in list(csv.reader(file))[1:]}


def stored_comparisons() -> dict[str, list[Comparison]]:
    """Return the stored comparisons of the gallery by the name of their study."""
    comparisons: dict[str, list[Comparison]] = {}
    with GALLERY.open(encoding="utf-8", newline="") as file:
        for study, name, published, ours, error, unit, relation in list(csv.reader(file))[1:]:
            figures: Any = (name, float(published), float(ours), float(error), unit, relation)
            comparisons.setdefault(study, []).append(Comparison(*figures))
    return comparisons


def row_of(name: str, figures: PolicyFigures) -> tuple[str, ...]:
    """Return the row of a policy as it is stored."""
    return (name, *(f"{round(figure, 6):.4g}" for figure in astuple(figures)))


def rows_of(study: Study) -> list[tuple[str, ...]]:
    """Simulate a study and return its rows as they are stored."""
    return [
        (study.name, each.name, f"{each.published:g}", f"{each.ours:.5g}", f"{each.error:g}", each.unit, each.relation)
        for each in study.run()
    ]


def measured_defaults() -> str:
    """Simulate all shipped policies and return the stored form of their figures."""
    head = ("policy", *(field.name for field in fields(PolicyFigures)))
    return _csv([head, *(row_of(name, figures_of_policy(policy)) for name, policy in list_policies().items())])


def measured_gallery() -> str:
    """Simulate all studies and return the stored form of their comparisons."""
    head = ("study", "figure", "published", "ours", "error", "unit", "relation")
    return _csv([head, *(row for study in STUDIES.values() for row in rows_of(study))])


def gallery() -> Iterator[str]:
    """Yield the lines of the page of the gallery."""
    yield from ("# Gallery of simulations: reference", "")
    yield from text(
        """`make reference` generates this page from the studies of forbear and from stored figures. Do not edit it by
        hand.""",
        """Each study repeats a published result with the simulator of forbear, and states the error within which our
        figure has to lie. `forbear simulate gallery` runs them, all in a few seconds, and
        `forbear simulate gallery NAME` runs one. [Fleets](../fleet.md) says what follows from them.""",
    )
    stored = stored_comparisons()
    for study in STUDIES.values():
        yield from (f"## {study.name}", "")
        yield from text(f"**{study.title}.**", study.shows, f"*Source:* {study.source}.")
        yield from text(f"*The published figures:* {study.published}", f"*Our model:* {study.model}")
        yield from table(("figure", "published", "ours", "error", "holds"), map(_row, stored[study.name]))


def _row(each: Comparison) -> tuple[str, ...]:
    return (
        each.name,
        text_of_published(each),
        show_figure(each.ours, each.unit),
        text_of_error(each),
        "yes" if each.holds else "**no**",
    )


def _defaults() -> Iterator[str]:
    """Yield the lines of the table of defaults."""
    headers = (
        "policy", "peak-to-mean", "drain at p99", "gave up in the outage", "brown-out: load", "with budget",
        "herd: all done", "gave up", "with budget", "misses",
    )  # fmt: skip
    policies = list_policies()
    rows = (_defaults_row(name, figures) for name, figures in stored_figures().items() if name in policies)
    yield from table(headers, rows)


def _defaults_row(name: str, figures: PolicyFigures) -> tuple[str, ...]:
    misses = ", ".join({"drain": f"drain (goal {GOALS['drain']:.0f} s)"}.get(each, each) for each in figures.misses)
    return (
        code(name),
        f"{figures.peak:.2f}",
        f"{figures.drain:.0f} s",
        f"{figures.outage_gave_up:.0%}",
        f"{figures.brown_out:.2f}",
        f"{figures.brown_out_budget:.2f}",
        f"{figures.herd:.0f} s",
        f"{figures.herd_gave_up:.0%}",
        f"{figures.herd_budget:.2f}",
        misses or "none",
    )


def _csv(rows: Iterable[tuple[str, ...]]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def draw_pictures(folder: Path) -> None:
    """Draw the pictures of docs/fleet.md into a folder: jitter.png, and budget.png by the command that the page has."""
    _draw_jitter(folder / "jitter.png")
    command = ["simulate", "run", str(PICTURES / "budget.toml"), "--compare", "budget=brooker", "--plot"]
    done = CliRunner().invoke(app, [*command, str(folder / "budget.png")], catch_exceptions=False)
    if done.exit_code:
        raise RuntimeError(done.output)


def _draw_jitter(file: Path) -> None:
    """Draw the attempts after an outage of 60 s, with the documented formula and with full jitter."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained", dpi=80)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, jitter in zip(panels, ("documented", "full"), strict=True):
        series = simulate_cohort(herd(Exponential(1, 2, 32, jitter), 60, 400))  # type: ignore[arg-type]
        width = round(1 / series.step)
        load = [a + b for a, b in zip(series.first_attempts, series.retries, strict=True)]
        seconds = [sum(load[i : i + width]) for i in range(0, len(load), width)]
        goodput = [sum(series.successes[i : i + width]) for i in range(0, len(load), width)]
        axes.axvspan(0, 60, color="#bbbbbb", alpha=0.4, label="outage", linewidth=0)
        axes.plot(range(30, 400), seconds[30:], color="#d62728", label="attempts", linewidth=1)
        axes.plot(range(30, 400), goodput[30:], color="#2ca02c", label="goodput", linewidth=1.5)
        axes.set_title(f"{jitter} jitter, maximum 32 s", loc="left", fontsize="small")
        axes.set_ylabel("per second")
        axes.set_xlim(30, 400)
        axes.set_ylim(0, 2000)
        axes.grid(alpha=0.3)
    panels[0].legend(loc="upper right")
    panels[1].set_xlabel("time (s)")
    figure.savefig(file)  # pyright: ignore[reportUnknownMemberType]


def main() -> None:
    """Measure everything, and write the figures and the pictures."""
    GALLERY.write_text(measured_gallery(), encoding="utf-8")
    DEFAULTS.write_text(measured_defaults(), encoding="utf-8")
    draw_pictures(PICTURES)


if __name__ == "__main__":
    main()
