"""A forecast as a picture; the one file that needs matplotlib."""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from forbear.cli.forecast import Forecast
from forbear.cli.output import BadInput

_BAND, _LINE = "#9ecae1", "#3182bd"


def draw(found: Forecast, title: str, timeout: float | None, file: Path) -> None:
    """Draw the ranges of each wait and of all waits so far; the suffix of `file` decides the format."""
    numbers = [retry.number for retry in found.retries]
    figure = Figure(figsize=(8, 6), layout="constrained")
    figure.suptitle(title, fontsize="medium")  # pyright: ignore[reportUnknownMemberType]
    waits, totals = figure.subplots(2, 1, sharex=True)
    for axes, ranges, label in (
        (waits, [retry.wait for retry in found.retries], "wait before it (s)"),
        (totals, [retry.total for retry in found.retries], "all waits so far (s)"),
    ):
        low, high = [pair[0] for pair in ranges], [pair[1] for pair in ranges]
        axes.fill_between(numbers, low, high, color=_BAND)
        axes.plot(numbers, low, ".-", numbers, high, ".-", color=_LINE)
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    totals.set_xlabel("retry")
    totals.xaxis.set_major_locator(MaxNLocator(integer=True))
    if timeout is not None:
        totals.axhline(timeout, color="gray", linestyle="--", label="timeout")
        totals.legend()
    for axes in (waits, totals):
        axes.set_ylim(bottom=0)
    try:
        figure.savefig(file)  # pyright: ignore[reportUnknownMemberType]
    except ValueError as error:
        raise BadInput(f"cannot draw to {file}: {error}", "name a file that ends in .png or .svg") from None
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}", "choose another folder or name") from None
