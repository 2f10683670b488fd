"""Run the tests of each package beside no sibling but those that its tests need.

`python -m tools.houses` does so for all, `python -m tools.houses forbear-audit` for one. First the tests of the core
run with forbear, pytest and hypothesis, and nothing else.
"""

import argparse
import os
import tempfile
from pathlib import Path

from tools.environments import PACKAGES, ROOT, fresh, install, install_locked, run, surroundings

NEIGHBOURS = {
    "forbear": ("forbear-cloud",),
    "forbear-audit": ("forbear", "forbear-cloud"),
    "forbear-cloud": ("forbear",),  # for its command
    "forbear-simulate": ("forbear", "forbear-cloud"),
    "forbear-transfer": ("forbear", "forbear-cloud"),
}
"""The packages beside which the tests of each run: forbear, which it needs, and the embedded cloud."""

CORE = ("hypothesis", "pytest")
"""All that the tests of the core need."""

WORDS = ("-m", "pytest", "--quiet", "-p", "no:cacheprovider")


def check_core(python: Path) -> None:
    """Run the tests of the core in an environment that has little more than they."""
    install(python, "--constraint", "requirements/dev.txt", "hatchling", "editables", *CORE)
    _install(python, "forbear")
    run(python, *WORDS, "packages/forbear/tests/core")


def check(package: str, python: Path) -> None:
    """Run the tests of a package, with all third parties of the tests, but without its other siblings."""
    install_locked(python, alone=True)
    _install(python, package, *NEIGHBOURS[package])
    run(python, *WORDS, "-n", "auto", "--dist", "loadfile", f"packages/{package}/tests", env=_path(python))


def _install(python: Path, *packages: str) -> None:
    folders = [folder for folder in PACKAGES if folder.name in packages] + [ROOT / "tools" / "testkit"]
    editable = [word for folder in folders for word in ("--editable", str(folder))]
    install(python, "--no-deps", "--no-build-isolation", *editable)


def _path(python: Path) -> dict[str, str]:
    """Return the environment in which programs that tests start are those of `python`."""
    return {"PATH": f"{python.parent}{os.pathsep}{surroundings()['PATH']}"}


def main() -> None:
    """Check the packages that the command line names, or the core and all packages."""
    parser = argparse.ArgumentParser(description="Run the tests of each package without its siblings.")
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"one of {', '.join(NEIGHBOURS)}; default: all")
    chosen: list[str] = parser.parse_args().packages
    if unknown := set(chosen) - set(NEIGHBOURS):
        parser.error(f"PACKAGE must be one of {', '.join(NEIGHBOURS)}, got {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="forbear-houses-") as name:
        if not chosen:
            print("== the core", flush=True)
            check_core(fresh(Path(name) / "core"))
        python = fresh(Path(name) / "package")
        for package in chosen or NEIGHBOURS:
            print(f"== {package}", flush=True)
            check(package, python)


if __name__ == "__main__":
    main()
