"""The command line: which benchmarks to run, how thoroughly, and how to print what they found.

Those of transfers take longer and have options of their own: `python -m benchmarks transfers --help`.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from benchmarks.contenders import SETUP
from benchmarks.measure import FULL, QUICK, Effort
from benchmarks.table import Table
from benchmarks.transfers.__main__ import main as transfers

BENCHMARKS = {
    "happy": "calls.happy",
    "happy-async": "calls.happy_async",
    "failures": "calls.failures",
    "failures-async": "calls.failures_async",
    "failures-logged": "calls.failures_logged",
    "blocks": "blocks.blocks",
    "blocks-async": "blocks.blocks_async",
    "blocks-failures": "blocks.blocks_failures",
    "build": "building.build",
    "derive": "building.derive",
    "import": "imports.imports",
    "memory": "memory.memory",
    "happy-async-adapter": "calls.happy_async_beside_an_adapter",
    "httpx": "transport.alone",
    "httpx-loopback": "transport.loopback",
    "httpx-loopback-async": "transport.loopback_async",
    "requests-loopback": "adapters.with_requests",
    "urllib3-loopback": "adapters.with_urllib3",
    "aiohttp-loopback": "adapters.with_aiohttp",
    "botocore-loopback": "adapters.with_botocore",
    "redis": "redis_clients.sync",
    "redis-async": "redis_clients.awaited",
    "shared-budget": "shared_budget.shared",
    "classify": "classify.classify",
    "evidence": "evidence.evidence",
    "redact": "redaction.redaction",
    "simulate": "simulation.cohort",
}
"""The functions that measure, by name. A module is loaded when its turn comes: a loaded adapter costs async calls."""


def find(name: str) -> Callable[[Effort], Table]:
    """Load the module of a benchmark, and return its function."""
    module, _, function = BENCHMARKS[name].partition(".")
    found: Callable[[Effort], Table] = getattr(import_module(f"benchmarks.{module}"), function)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if given and given[0] == "transfers":
        return transfers(given[1:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="one of " + ", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="fewer rounds: for a look, not for a claim")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(given)
    names: list[str] = options.only or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    effort = QUICK if options.quick else FULL
    found: list[dict[str, object]] = []
    machine = f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    machine += f", {os.cpu_count()} CPUs"
    if not options.json:
        print(f"{machine}; medians of {effort.rounds} interleaved rounds, spread is half the distance of the quartiles")
        print(SETUP)
    for name in names:
        table = find(name)(effort)
        if options.json:
            found.append(table.as_json())
        else:
            print(f"\n{table.as_text()}", flush=True)
    if options.json:
        print(json.dumps({"machine": machine, "setup": SETUP, "benchmarks": found}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
