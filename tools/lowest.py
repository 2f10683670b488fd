"""Run the tests of every package and extra against the lowest versions that it allows.

`python -m tools.lowest` does so for all, `python -m tools.lowest redis cli` for these. Each starts from
the locked environment; then its own requirements, and no others, go down to their lowest versions.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tools.environments import EDITABLE, ROOT, UV, fresh, install, install_locked, run, surroundings

OLDEST = "3.11"


def _requirements(package: str, extra: str | None) -> list[str]:
    """Return what a package, or an extra of it, requires of other projects, also by the extras that it includes."""
    text = (ROOT / "packages" / package / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    listed: list[str] = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    found = list[str]()
    for requirement in listed:
        sibling = re.match(r"(forbear[a-z-]*)(?:\[([a-z0-9,-]+)\])?==", requirement)
        if sibling is None:
            found.append(requirement)
        elif sibling[2] is not None:
            found += [each for inner in sibling[2].split(",") for each in _requirements(sibling[1], inner)]
    return found


def _all_requirements() -> dict[str, list[str]]:
    """Return what each package, and each extra of one, requires; by `cli` for extras of forbear, `transfer[dask]`."""
    found = dict[str, list[str]]()
    for file in sorted((ROOT / "packages").glob("*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        package: str = project["name"]
        short = package.removeprefix("forbear").removeprefix("-")
        names = {
            None: short,
            **{extra: f"{short}[{extra}]" if short else extra for extra in project.get("optional-dependencies", {})},
        }
        for extra, name in names.items():
            if requirements := _requirements(package, extra):
                found[name] = requirements
    return found


EXTRAS = _all_requirements()
"""The requirements of each extra of forbear, of each sibling, and of its extras: all that is tested."""


def _tests(package: str, paths: str, without: str = "") -> tuple[str, ...]:
    """Return arguments of pytest for tests of a package; both lists are separated by spaces."""
    folder = f"packages/{package}/tests"
    return (
        *(f"{folder}/{path}" for path in paths.split()),
        *(f"--{'deselect' if '::' in path else 'ignore'}={folder}/{path}" for path in without.split()),
    )


# The tests that use the libraries the most, in a minute or two.
TESTS = {
    "aiobotocore": _tests("forbear", "clients/test_aiobotocore.py"),
    "aiohttp": _tests("forbear", "clients/test_aiohttp.py clients/test_aiohttp_bodies.py"),
    "audit": _tests("forbear-audit", "fixes test_engine.py cli/test_hook.py rules/test_checks.py"),
    "boto3": _tests("forbear", "clients/botocore"),
    "cli": (
        *_tests("forbear", "cli/test_explain.py cli/run/test_streams_output.py cli/kit/test_values.py"),
        *_tests("forbear-transfer", "cli/shared/test_screen.py cli/shared/test_options.py"),
    ),
    "cloud": _tests("forbear-cloud", "http/test_content.py test_server.py http/test_connection.py"),
    "google": _tests(  # without the asyncio client, which 3.4 does not have
        "forbear",
        "clients/google",
        without="clients/google/test_storage_asyncio.py clients/google/test_gapic_retries.py",
    ),
    "grpc": _tests("forbear", "grpc clients/google/test_grpc_interceptors.py clients/google/test_grpc_vouch.py"),
    "httpx": _tests(
        "forbear",
        "clients/test_httpx_bodies.py clients/test_httpx_clients.py clients/test_httpx_connections.py "
        "clients/test_httpx_downloads.py clients/test_httpx_faults.py clients/test_httpx_setup.py",
    ),
    "httpx2": _tests(
        "forbear",
        "clients/test_httpx_setup.py clients/every_client/test_downloads_over.py "
        "clients/every_client/test_repeatable.py clients/every_client/test_nested.py",
    ),
    "opentelemetry": _tests("forbear", "observe/test_opentelemetry.py observe/test_shared_budgets.py"),
    "plot": _tests("forbear", "cli/test_schedule.py"),
    "prometheus": _tests("forbear", "observe/test_prometheus.py observe/test_shared_budgets.py"),
    "redis": _tests("forbear", "clients/redis shared_budget/test_budget.py"),
    "requests": _tests("forbear", "clients/test_requests.py clients/every_client/test_downloads_over.py"),
    "simulate": _tests("forbear-simulate", "engines/test_cohort.py engines/test_exact.py analysis/test_runs.py"),
    "simulate[plot]": _tests("forbear-simulate", "cli/test_run.py"),
    "structlog": _tests("forbear", "observe/test_structlog.py"),
    "transfer": _tests(
        "forbear-transfer",
        "storage/test_credentials.py downloads/test_download.py wire uploads/test_upload.py test_checksum.py",
    ),
    "transfer[curl]": _tests("forbear-transfer", "cli/curl"),
    "transfer[dask]": _tests("forbear-transfer", "test_execution.py"),
    "trio": _tests("forbear", "run testing/test_virtual_clock_event_loops.py"),
    "urllib3": _tests("forbear", "clients/test_urllib3.py clients/every_client/test_downloads_over.py"),
    "valkey": _tests("forbear", "clients/redis shared_budget/test_budget.py"),
}

# What goes down with an extra: an SDK works with one API only, and newer parsers warn of what old libraries call.
BESIDE = {"opentelemetry": ("opentelemetry-sdk",), "plot": ("pyparsing<3.3",), "simulate[plot]": ("pyparsing<3.3",)}

# What Google's libraries say of older companions; elsewhere a warning is an error.
QUIET = ("-W", "ignore::FutureWarning")


def lowest(extra: str) -> list[str]:
    """Return the requirements of `extra` at the lowest versions that it allows on the oldest Python, as `name==1.0`."""
    command: list[str | Path] = [UV, "pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate"]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--only-binary", ":all:", "--python-version", OLDEST]
    command += ["--resolution", "lowest-direct", "-"]
    done = subprocess.run(
        command, input="\n".join(EXTRAS[extra]), env=surroundings(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"error: the lowest versions of {extra} cannot be resolved:\n{done.stderr}")
    wanted = {re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower() for requirement in EXTRAS[extra]}
    return [line for line in done.stdout.splitlines() if line.partition("==")[0] in wanted]


def check(extra: str, python: Path) -> None:
    """Put the lowest versions of `extra` into the environment of `python`, and run its tests there."""
    install_locked(python, alone=True)
    install(python, "--no-deps", "--no-build-isolation", *EDITABLE)
    pins = lowest(extra)
    print(f"== {extra}: {', '.join(pins)}", flush=True)
    # Compiled here, since the compiler warns of some old libraries, and in tests a warning is an error.
    install(python, "--only-binary", ":all:", "--compile-bytecode", *pins, *BESIDE.get(extra, ()))
    # Programs that the tests start are those of this environment.
    path = f"{python.parent}:{surroundings()['PATH']}"
    words = ("-m", "pytest", "--quiet", "-n", "auto", "--dist", "loadfile", "-p", "no:cacheprovider", *QUIET)
    run(python, *words, *TESTS[extra], env={"PATH": path})


def main() -> None:
    """Check the extras that the command line names, or all of them."""
    parser = argparse.ArgumentParser(description="Test every extra at the lowest versions that it allows.")
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help=f"one of {', '.join(EXTRAS)}; default: all")
    chosen: list[str] = parser.parse_args().extras or list(EXTRAS)
    if unknown := set(chosen) - set(EXTRAS):
        parser.error(f"EXTRA must be one of {', '.join(EXTRAS)}, got {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="forbear-lowest-") as name:
        python = fresh(Path(name))
        for extra in chosen:
            check(extra, python)


if __name__ == "__main__":
    main()
