"""Fresh virtual environments for the checks of what users install, and the Pythons of this machine."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = sorted((ROOT / "packages").iterdir(), key=lambda folder: (len(folder.name), folder.name))
"""The folders of the five packages, `forbear` first, since the others need it."""

EDITABLE = tuple(word for folder in (*PACKAGES, ROOT / "tools" / "testkit") for word in ("--editable", folder))
"""The arguments of `uv pip install` that install all of them, and what their tests share, from this repository."""

UV = Path(sysconfig.get_path("scripts")) / "uv"


def run(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Run `command` in `cwd` with `env` added to the environment; a failure ends this program with its exit code."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=surroundings(env), check=False)
    if done.returncode:
        print(f"error: exit code {done.returncode} from: {' '.join(map(str, command))}", file=sys.stderr)
        sys.exit(done.returncode if done.returncode > 0 else 1)


def surroundings(more: dict[str, str] | None = None) -> dict[str, str]:
    """Return the environment with `more`, without what leads a program to this repository or to this environment."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS")}
    return {**kept, **(more or {})}


def fresh(folder: Path, python: str | Path = sys.executable) -> Path:
    """Make a virtual environment with nothing but pip for `python` in `folder`, and return its interpreter's path."""
    run(UV, "venv", "--quiet", "--no-project", "--no-python-downloads", "--clear", "--seed", "--python", python, folder)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(python: Path, *arguments: str | Path, cwd: Path = ROOT) -> None:
    """Install what `arguments` of `uv pip install` name into the environment of `python`."""
    run(UV, "pip", "install", "--quiet", "--python", python, *arguments, cwd=cwd)


def install_locked(python: Path, *, alone: bool = False) -> None:
    """Install the locked packages of the tests into the environment of `python`, with `alone` instead of all others.

    xds-protos overwrites files of googleapis-common-protos if it is unpacked later. So the latter comes again.
    """
    locked = ROOT / "requirements" / "dev.txt"
    if alone:
        run(UV, "pip", "sync", "--quiet", "--python", python, "--require-hashes", locked)
    else:
        install(python, "--require-hashes", "-r", locked)
    install(python, "--reinstall-package", "googleapis-common-protos", "--require-hashes", "-r", locked)
