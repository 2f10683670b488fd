"""A first look at an installed forbear: run by a Python that has the package and nothing of this repository.

`python -I smoke.py` imports every module without extras. A module that cannot be imported must name the extra that it
needs. `python -I smoke.py cli` says the version by each way to start the command line.
"""

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

# Loaded by pytest, by the command line or by `audit --fix`, which say themselves what is missing.
STARTED_BY_OTHERS = (
    "forbear.audit.fixes.write",
    "forbear.cli.",
    "forbear.testing.pytest_plugin",
    "forbear.testing.storm.options",
    "forbear.testing.storm.plugin",
    "forbear.testing.storm.wire.",
)


def imports() -> None:
    """Import every module; end the program if one fails without naming an extra that the package has."""
    import forbear

    root = Path(forbear.__file__).parent
    if not root.is_relative_to(sysconfig.get_path("purelib")):
        sys.exit(f"error: forbear is imported from {root}, which is not where it was installed")
    if not (root / "py.typed").is_file():
        sys.exit("error: py.typed, the marker for type checkers, is missing")
    extras = set(importlib.metadata.metadata("forbear").get_all("Provides-Extra") or ())
    loaded, needing, bad = 0, 0, list[str]()
    for module in pkgutil.walk_packages(forbear.__path__, "forbear.", onerror=lambda name: None):
        if module.name.startswith(STARTED_BY_OTHERS) or module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
            loaded += 1
        except ImportError as error:
            named = set(re.findall(r"forbear\[([a-z0-9-]+)\]", str(error)))
            needing += 1
            if not named or not named <= extras:
                bad.append(f"{module.name}: {error}")
    if bad:
        sys.exit("error: without extras these modules fail and name no extra:\n" + "\n".join(bad))
    print(f"{loaded} modules imported without extras, {needing} name the extra that they need")


def command_line() -> None:
    """Ask each way to start the command line for the version; end the program if one says another."""
    version = importlib.metadata.version("forbear")
    program = Path(sysconfig.get_path("scripts")) / "forbear"
    ways: list[list[str]] = [[str(program)]]
    if importlib.util.find_spec("forbear.__main__"):
        ways.append([sys.executable, "-I", "-m", "forbear"])
    for way in ways:
        done = subprocess.run([*way, "--version"], capture_output=True, text=True, check=False)
        if (done.returncode, done.stdout) != (0, f"forbear {version}\n"):
            sys.exit(f"error: {' '.join(way)} --version: {done.returncode}, {done.stdout}{done.stderr}")
    print(f"forbear {version}, started in {len(ways)} way{'s' * (len(ways) > 1)}")


if __name__ == "__main__":
    command_line() if sys.argv[1:] == ["cli"] else imports()
