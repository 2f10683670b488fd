"""The files of plots, for all commands that have `--plot`."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from forbear.cli.kit.output import BadInput, check_links

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_plot(file: Path, read: Iterable[Path] = ()) -> None:
    """Raise BadInput for a file that cannot hold a plot, and ModuleNotFoundError without matplotlib."""
    check_links("plot", file, read)
    from matplotlib.figure import Figure

    suffix = file.suffix[1:].lower()
    if suffix not in Figure().canvas.get_supported_filetypes():
        text = f"its suffix is {file.suffix!r}" if suffix else "it has no suffix"
        raise BadInput(f"cannot plot to {file}: {text}", "name a file that ends in .png or .svg")
    if not file.parent.is_dir():
        raise BadInput(f"cannot write {file}: there is no folder {file.parent}", "choose another folder or name")


def save(figure: "Figure", file: Path) -> None:
    """Write a figure in the format of the file's suffix; raise BadInput if that fails."""
    try:
        figure.savefig(file)  # pyright: ignore[reportUnknownMemberType]
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}", "choose another folder or name") from None
