"""Show the shop: audit suspects three retries, a storm proves one, and forbear mends it. `make demo-audit` runs this.

The commands are those of the README. They run in this process, which is quicker, and in a copy of this folder.
"""

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from forbear.cli.app import app

STEPS = (
    (
        "Audit reads the shop. It suspects three retries.",
        "forbear audit before --select all --storm-plan plan.json",
        1,
    ),
    (
        "A storm runs the tests again and again. Each time one suspect gets no response, a late one, or half of one.",
        "pytest before --forbear-storm --forbear-storm-plan plan.json",
        1,
    ),
    (
        "The same fault, once more: the customer pays twice.",
        "pytest 'before/test_shop.py::test_an_order_is_charged_once' --forbear-fault 'POST /charges#1:lost' --tb=short",
        1,
    ),
    (
        "The mended shop sends one Idempotency-Key with all attempts. Audit suspects nothing.",
        "forbear audit after --select all",
        0,
    ),
    ("And no fault in any call makes the shop charge twice.", "pytest after --forbear-storm", 0),
)
"""A text, a command, and the exit code that it should have."""

PLAIN = "-q -rN --tb=no -p no:cacheprovider -W ignore::pytest.PytestAssertRewriteWarning -p forbear_storm_pytest"
"""For short output: pytest's options, and no plugin but that of forbear."""


def run(command: str) -> int:
    """Run a command of forbear or pytest in this process; return its exit code."""
    program, *args = shlex.split(command)
    if program == "pytest":
        return int(pytest.main([*PLAIN.split(), *args]))
    try:
        app(args, prog_name=program)
    except SystemExit as done:
        return int(done.code or 0)
    return 0


def main() -> int:
    """Run all steps; return 1 if one of them has another exit code than it should have."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        shop = Path(shutil.copytree(Path(__file__).parent, Path(folder, "shop")))
        os.chdir(shop)
        codes: list[int] = []
        for number, (text, command, _) in enumerate(STEPS, 1):
            print(f"\n{number}. {text}\n\n$ {command}", flush=True)
            codes.append(run(command))
        os.chdir(Path(__file__).parent)
    return int(codes != [code for _, _, code in STEPS])


if __name__ == "__main__":
    sys.exit(main())
