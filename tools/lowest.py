"""Run the tests of every extra against the lowest versions that the extra allows.

`python -m tools.lowest` does so for all, `python -m tools.lowest redis cli` for these. Each extra starts from the
locked environment; then its own requirements, and no others, go down to their lowest versions.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tools.environments import ROOT, UV, fresh, install, run, surroundings

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
OLDEST = "3.11"

# The tests that use an extra's libraries the most, in a minute or two.
TESTS = {
    "aiohttp": ("tests/clients/test_aiohttp.py", "tests/clients/test_aiohttp_bodies.py"),
    "audit": ("tests/audit",),
    "cli": ("tests/cli/test_app.py", "tests/cli/test_cp_screen.py", "tests/cli/test_cp_options.py",
            "tests/cli/test_explain.py", "tests/cli/test_run_output.py", "tests/cli/test_values.py",
            "--deselect=tests/cli/test_app.py::test_bad_input"),  # each click words its errors otherwise
    "cloud": ("tests/testing/cloud/test_content.py", "tests/testing/cloud/test_server.py",
              "tests/testing/cloud/test_wire.py"),
    "dask": ("tests/transfer/test_execution.py",),
    "demo": ("tests/cli/test_demo.py", "tests/testing/test_valkey.py"),
    "google": ("tests/clients/google",  # without the asyncio client, which 3.4 does not have
               "--ignore=tests/clients/google/test_storage_asyncio.py",
               "--ignore=tests/clients/google/test_gapic_retries.py"),
    "grpc": ("tests/grpc", "tests/clients/google/test_grpc_interceptors.py", "tests/clients/google/test_grpc_vouch.py"),
    "httpx": ("tests/clients/test_httpx_bodies.py", "tests/clients/test_httpx_clients.py",
              "tests/clients/test_httpx_connections.py", "tests/clients/test_httpx_downloads.py",
              "tests/clients/test_httpx_faults.py", "tests/clients/test_httpx_setup.py"),
    "httpx2": ("tests/clients/test_httpx_setup.py", "tests/clients/test_downloads_over.py",
               "tests/clients/test_repeatable.py", "tests/clients/test_nested.py"),
    "opentelemetry": ("tests/observe/test_opentelemetry.py", "tests/observe/test_shared_budgets.py"),
    "plot": ("tests/cli/test_schedule.py", "tests/cli/test_simulate.py"),
    "prometheus": ("tests/observe/test_prometheus.py", "tests/observe/test_shared_budgets.py"),
    "redis": ("tests/clients/redis", "tests/shared_budget/test_budget.py"),
    "requests": ("tests/clients/test_requests.py", "tests/clients/test_downloads_over.py"),
    "simulate": ("tests/simulate/test_cohort.py", "tests/simulate/test_exact.py", "tests/simulate/test_runs.py"),
    "simulate-fast": ("tests/simulate/test_compiled.py",),
    "structlog": ("tests/observe/test_structlog.py",),
    "transfer": ("tests/transfer/test_credentials.py", "tests/transfer/test_download.py", "tests/transfer/test_wire.py",
                 "tests/transfer/test_upload_small.py", "tests/transfer/test_checksum.py"),
    "trio": ("tests/run", "tests/testing/test_event_loops.py"),
    "urllib3": ("tests/clients/test_urllib3.py", "tests/clients/test_downloads_over.py"),
    "valkey": ("tests/clients/redis", "tests/shared_budget/test_budget.py"),
}  # fmt: skip

# What goes down with an extra: an SDK works with one API only, and newer parsers warn of what old libraries call.
BESIDE = {"opentelemetry": ("opentelemetry-sdk",), "plot": ("pyparsing<3.3",)}

# What Google's libraries say of older companions; elsewhere a warning is an error.
QUIET = ("-W", "ignore::FutureWarning")


def names(extra: str) -> set[str]:
    """Return the names of the packages that `extra` requires itself or by the other extras that it includes."""
    packages = set[str]()
    for requirement in EXTRAS[extra]:
        name, others = re.match(r"([A-Za-z0-9._-]+)(?:\[([^]]*)\])?", requirement).groups()  # type: ignore[union-attr]
        if name == PROJECT["name"]:
            packages.update(*(names(other.strip()) for other in others.split(",")))
        else:
            packages.add(re.sub(r"[-_.]+", "-", name).lower())
    return packages


def lowest(extra: str) -> list[str]:
    """Return the requirements of `extra` at the lowest versions that it allows on the oldest Python, as `name==1.0`."""
    command: list[str | Path] = [UV, "pip", "compile", "--quiet", "--no-config", "--no-header", "--no-annotate"]
    command += ["--no-emit-index-url", "--no-emit-find-links", "--only-binary", ":all:", "--python-version", OLDEST]
    command += ["--resolution", "lowest-direct", "--extra", extra, ROOT / "pyproject.toml"]
    done = subprocess.run(command, env=surroundings(), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: the lowest versions of the extra {extra} cannot be resolved:\n{done.stderr}")
    wanted = names(extra)
    return [line for line in done.stdout.splitlines() if line.partition("==")[0] in wanted]


def check(extra: str, python: Path) -> None:
    """Put the lowest versions of `extra` into the environment of `python`, and run its tests there."""
    run(UV, "pip", "sync", "--quiet", "--python", python, "--require-hashes", "requirements/dev.txt")
    install(python, "--no-deps", "--no-build-isolation", "--editable", ROOT)
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
