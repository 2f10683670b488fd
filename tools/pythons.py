"""Run a sample of the tests on every supported Python of this machine, with and without the global lock.

`python -m tools.pythons` looks for them by uv, on PATH, among those of pyenv and in `PYTHONS`, which may list paths of
interpreters. It downloads none: a Python that is not here is named and left out. The packages are the locked ones.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shutil import which

from tools.environments import ROOT, UV, fresh, install, run, surroundings

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.13t", "3.14t")
"""The supported versions; `t` is the build without the global lock."""

SAMPLE = ("tests/core", "tests/http", "tests/run")
ADAPTERS = (
    "tests/clients/test_httpx_clients.py",
    "tests/clients/test_httpx_faults.py",
    "tests/clients/test_urllib3.py",
)

# For a build without the lock many libraries have no wheels: there the sample needs no more than these.
FEW = ("anyio", "hatchling", "editables", "hypothesis", "pytest", "pytest-xdist", "trio")
UNTRIED = tuple(f"tests/run/test_{name}.py" for name in ("budgets_of_others", "budget_rules", "first_attempts"))

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
    command: list[str | Path] = [
        UV,
        "python",
        "find",
        "--quiet",
        "--no-project",
        "--no-python-downloads",
        "--system",
        version,
    ]
    command += ["--no-python-downloads", version]
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


def check(version: str, python: Path) -> None:
    """Install what is locked into the environment of `python`, and run the sample there."""
    words = ["-m", "pytest", "--quiet", "-n", "auto", "--dist", "loadfile", "-p", "no:cacheprovider"]
    if not version.endswith("t"):
        install(python, "--require-hashes", "-r", "requirements/dev.txt")
        install(python, "--no-deps", "--no-build-isolation", "--editable", ROOT)
        run(python, *words, *SAMPLE, *ADAPTERS)
        return
    install(python, "--constraint", "requirements/dev.txt", *FEW)
    install(python, "--no-deps", "--no-build-isolation", "--editable", ROOT)
    without = [f"--ignore={path}" for path in UNTRIED]
    run(python, *words, *SAMPLE, *without, env={"FORBEAR_FEW_LIBRARIES": "1"})


def main() -> None:
    """Check every version that is here; fail at the first that does not pass."""
    with tempfile.TemporaryDirectory(prefix="forbear-pythons-") as name:
        for version in VERSIONS:
            program = interpreter(version)
            if program is None:
                print(f"== Python {version}: not on this machine, left out", flush=True)
                continue
            print(f"== Python {version}: {program}", flush=True)
            check(version, fresh(Path(name) / version, program))


if __name__ == "__main__":
    main()
