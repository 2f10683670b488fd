"""Rules for every test of the storm: a run looks at the modules of these tests, not at those of all others."""

import sys

import pytest

from forbear_audit.storm import stack

_MINE = ("packages.forbear-audit.tests.storm", "forbear_testkit.testing")
_TESTS = ("packages.", "tests.", "forbear_testkit.")


@pytest.fixture(scope="session", autouse=True)
def few_modules() -> None:
    """Have other tests' modules looked at already: each run searches the user's, and they took most of its time."""
    stack._modules_of_libraries.update(
        (name, module)
        for name, module in list(sys.modules.items())
        if name.startswith(_TESTS) and not name.startswith(_MINE)
    )
