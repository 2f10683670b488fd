"""A first look at an installed package: run by a Python that has the package and nothing of this repository.

`python -I smoke.py PACKAGE` imports every module of a package without extras, and uses it. A module that cannot be
imported must name the extra, or the package of ours, that it needs. `python -I smoke.py commands` says the version by
each way to start the command line, and shows the help of each command.
"""

import importlib
import importlib.metadata
import pkgutil
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

# Loaded by pytest, by the command line or by `audit --fix`, which say themselves what is missing.
STARTED_BY_OTHERS = re.compile(
    r"forbear\.cli\.|forbear_\w+\.cli\b|forbear_cloud\.command$|forbear_audit\.storm\.(?:options$|plugin$|wire\.)"
)


def imports(package: str) -> None:
    """Import every module; end the program if one fails without naming an extra."""
    root = Path(str(importlib.import_module(package).__file__)).parent
    if not root.is_relative_to(sysconfig.get_path("purelib")):
        sys.exit(f"error: {package} is imported from {root}, which is not where it was installed")
    if not (root / "py.typed").is_file():
        sys.exit(f"error: py.typed, the marker for type checkers, is missing in {package}")
    loaded, needing, bad = walk(package, root)
    if bad:
        sys.exit("error: without extras these modules fail and name no extra:\n" + "\n".join(bad))
    print(f"{package}: {loaded} modules imported without extras, {needing} name the extra that they need")


def walk(package: str, root: Path) -> tuple[int, int, list[str]]:
    """Import every module below `root`; return how many load, how many name an extra, and the errors of the rest."""
    distribution = package.replace("_", "-")
    extras = set(importlib.metadata.metadata(distribution).get_all("Provides-Extra") or ())
    loaded, needing, bad = 0, 0, list[str]()
    for module in pkgutil.walk_packages([str(root)], f"{package}.", onerror=lambda name: None):
        if STARTED_BY_OTHERS.match(module.name) or module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
            loaded += 1
        except ImportError as error:
            named = set(re.findall(rf"{distribution}\[([a-z0-9-]+)\]", str(error)))
            needing += 1
            if not named or not named <= extras:
                bad.append(f"{module.name}: {error}")
    return loaded, needing, bad


def use_forbear() -> None:
    """Retry a function."""
    import forbear

    failures = [ConnectionResetError()]

    @forbear.retry(on=ConnectionError, backoff=forbear.Constant(0.001))
    def read() -> str:
        if failures:
            raise failures.pop()
        return "read"

    assert read() == "read"
    assert not [name for name in sys.modules if name.startswith("forbear_")]


def use_transfer() -> None:
    """Read an address."""
    from forbear_transfer import Url

    assert str(Url("my-bucket", "a.txt")) == "gs://my-bucket/a.txt"


def use_cloud() -> None:
    """Ask a cloud for a bucket, without forbear."""
    import urllib.request

    from forbear_cloud import Cloud

    with Cloud() as cloud:
        cloud.store.create_bucket("my-bucket")
        with urllib.request.urlopen(f"{cloud.url}/storage/v1/b/my-bucket", timeout=20) as response:
            assert response.status == 200
    assert "forbear" not in sys.modules


def use_audit() -> None:
    """Find a POST that is repeated."""
    import tempfile

    from forbear_audit import audit

    with tempfile.TemporaryDirectory() as name:
        Path(name, "loop.py").write_text(
            "import tenacity, requests\n\n@tenacity.retry\ndef f():\n    requests.post('u')\n"
        )
        assert "UNSAFE" in {finding.rule for finding in audit([name]).findings}


def use_simulate() -> None:
    """Simulate a minute."""
    from forbear_simulate import Scenario, simulate

    assert simulate(Scenario(duration=60.0)).figures.calls > 0


def commands() -> None:
    """Ask each way to start the command line for the version, and each command for its help."""
    version = importlib.metadata.version("forbear")
    program = Path(sysconfig.get_path("scripts")) / "forbear"
    for way in ([str(program)], [sys.executable, "-I", "-m", "forbear"]):
        done = subprocess.run([*way, "--version"], capture_output=True, text=True, check=False)
        if (done.returncode, done.stdout) != (0, f"forbear {version}\n"):
            sys.exit(f"error: {' '.join(way)} --version: {done.returncode}, {done.stdout}{done.stderr}")
    from forbear.cli.app import COMMANDS

    for name in COMMANDS:
        done = subprocess.run([str(program), name, "--help"], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"error: forbear {name} --help: {done.returncode}, {done.stdout}{done.stderr}")
    print(f"forbear {version}: {len(COMMANDS)} commands start")


USES: dict[str, Callable[[], None]] = {
    "forbear": use_forbear,
    "forbear_audit": use_audit,
    "forbear_cloud": use_cloud,
    "forbear_simulate": use_simulate,
    "forbear_transfer": use_transfer,
}


if __name__ == "__main__":
    if sys.argv[1:] == ["commands"]:
        commands()
    else:
        imports(sys.argv[1])
        USES[sys.argv[1]]()
