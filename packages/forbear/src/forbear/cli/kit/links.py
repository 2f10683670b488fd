"""Links in folders whose files are of others: what a command writes there must not lead out of them."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_MOST = 40  # links of one path, as Linux has it


def leads_out(file: Path, read: Iterable[Path] = ()) -> tuple[Path, Path] | None:
    """Return the link and the file that it leads to if a link in a folder of others leads out of that folder.

    The folders of others are those of what is `read`, the current folder if it holds that, and the Git repositories
    around them. Whoever wrote them may have made the link, and would choose which file is overwritten. A link
    elsewhere, such as /dev/stdout, is the user's own.
    """
    folders, target = {*_folders(read)}, real(file)
    for link in _links(file):
        if any(link.is_relative_to(folder) and not target.is_relative_to(folder) for folder in folders):
            return link, target
    return None


def real(path: Path) -> Path:
    """Return the absolute path without links; `Path.resolve` raises RuntimeError for a circle of links."""
    return Path(os.path.realpath(path))


def _folders(read: Iterable[Path]) -> Iterator[Path]:
    here = real(Path())
    folders = [real(path if path.is_dir() else path.parent) for path in read]
    yield from folders
    if any(folder.is_relative_to(here) for folder in folders):
        yield here
    for folder in (here, *folders):
        yield from (one for one in (folder, *folder.parents) if os.path.lexists(one / ".git"))


def _links(file: Path) -> Iterator[Path]:
    """Yield the links on the way to a file: each by the real path of the folder in which it stands."""
    here, parts, seen = real(Path()), [*file.parts][::-1], 0
    while parts and seen < _MOST:
        part = parts.pop()
        place = here.parent if part == os.pardir else here / part  # a root takes the place of `here`
        if place.is_symlink():
            yield place
            seen += 1
            parts += [*place.readlink().parts][::-1]
        else:
            here = place
