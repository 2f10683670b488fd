"""The user's part of the stack of a call: the frames that belong neither to forbear nor to a library.

A package that is installed from the project, as by tox, is the user's code; its frames name the project's files.
"""

import os
import sys
import sysconfig
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePath
from types import CodeType, FrameType, ModuleType
from typing import NamedTuple

_OURS = tuple(
    f"{folder}{os.sep}"
    for name in ("forbear", "forbear_audit", "forbear_cloud", "forbear_simulate", "forbear_transfer")
    if (spec := find_spec(name)) is not None
    for folder in spec.submodule_search_locations or ()
)
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} - {None})
_PACKAGES = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib")} - {None})
_CLIENTS = frozenset(
    {
        "", "aiohttp", "anyio", "boto3", "botocore", "grpc", "httpcore", "httpcore2", "httpx", "httpx2", "pluggy",
        "_pytest", "pytest_asyncio", "redis", "requests", "trio", "urllib3", "valkey",
    }
)  # fmt: skip
"""The packages whose frames lie between a test and the call that it makes by itself."""


_roots: list[Path] = [Path.cwd()]
"""The folders in which the user's code may stand, besides their `src`."""


def add_roots(*folders: Path) -> None:
    """Take the code in these folders and their `src` for the user's, also where it runs as an installed copy."""
    _roots.extend(folder for folder in folders if folder not in _roots)
    forget_sources()


def forget_sources() -> None:
    """Look again at which files are the user's code."""
    source_of.cache_clear()
    _folders_of.cache_clear()
    _modules_of_libraries.clear()


@cache
def source_of(file: str) -> str | None:
    """Return the file of the user's code that this one is, or is an installed copy of; None for one of a library.

    If the copy differs from the code in the project, or only the copy has the file, it is returned as it is.
    """
    if file.startswith((*_OURS, "<")):
        return None
    inside = _path_in_packages(file)
    if inside is None:
        return None if file.startswith(_LIBRARIES) else file
    package = inside.parts[0]
    for folder in _folders_of(package):
        with suppress(OSError):
            if (folder / inside).read_bytes() == Path(file).read_bytes():
                return str(folder / inside)
        if (folder / inside).is_file() or (folder / package / "__init__.py").is_file():
            return file
    return None


@cache
def _folders_of(package: str) -> list[Path]:
    """Return the folders of the user's code that have a package or module of this name; most libraries have none."""
    return [folder for root in _roots for folder in (root, root / "src") if (folder / package).exists()]


class UserStack(NamedTuple):
    """The user's frames of one call.

    `frames` has the file and line of each, the innermost first. `by_test` is true if the test makes the call by itself:
    nothing but a client library is between its function and the call.
    """

    frames: tuple[tuple[str, int], ...]
    by_test: bool

    @property
    def site(self) -> str:
        """Return file:line of the innermost frame, relative to the current folder where possible; "?" without one."""
        if not self.frames:
            return "?"
        file, line = self.frames[0]
        return f"{file.removeprefix(str(Path.cwd()) + '/')}:{line}"


def user_stack(test: CodeType | None) -> UserStack:
    """Return the user's frames of the call that this thread is about to make, in the run of `test`."""
    frames: list[tuple[str, int]] = []
    between = by_test = False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        source = source_of(file)
        if source is not None:
            by_test = by_test or (not frames and not between and is_part_of(code, test))
            frames.append((source, frame.f_lineno))
        between = between or _package(file) not in _CLIENTS
        frame = frame.f_back
    return UserStack(tuple(frames), by_test or (not frames and test is not None and not between))


def is_part_of(code: CodeType, test: CodeType | None) -> bool:
    """Return whether code is that of the test, or of a function in it."""
    if test is None or code.co_filename != test.co_filename:
        return False
    return code is test or code.co_qualname.startswith(f"{test.co_qualname}.")


def is_of_library(file: str) -> bool:
    """Return whether a file is one of forbear, the standard library or an installed package."""
    return source_of(file) is None


_modules_of_libraries: dict[str, ModuleType] = {}


def modules_of_user() -> list[ModuleType]:
    """Return the loaded modules that are the user's code; each of a library is looked at once."""
    modules: list[ModuleType] = []
    for name, module in list(sys.modules.items()):
        if _modules_of_libraries.get(name) is module:
            continue
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not is_of_library(file):
            modules.append(module)
        else:
            _modules_of_libraries[name] = module
    return modules


def is_of_client(file: str) -> bool:
    """Return whether a file is one of the standard library or of a client library."""
    return file.startswith(("<", *_LIBRARIES)) and _package(file) in _CLIENTS


def _package(file: str) -> str:
    """Return the name of the installed package that a file belongs to, "" for forbear and the standard library."""
    inside = None if file.startswith(_OURS) else _path_in_packages(file)
    return "" if inside is None else inside.parts[0].removesuffix(".py")


def _path_in_packages(file: str) -> PurePath | None:
    """Return the path of an installed file from the folder of all packages, None for any other file."""
    folder = next((folder for folder in _PACKAGES if file.startswith(f"{folder}{os.sep}")), None)
    return None if folder is None else PurePath(file[len(folder) + 1 :])
