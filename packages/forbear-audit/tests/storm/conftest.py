"""Rules for every test of the storm: a run looks at the modules of these tests, not at those of all others."""

import sys
from pathlib import Path

import pytest

from forbear_audit.storm import stack

_HERE = str(Path(__file__).parent)
_TESTS = ("packages.", "tests.", "forbear_testkit.")


@pytest.fixture(scope="module", autouse=True)
def few_modules() -> None:
    """Have other tests' modules looked at already: each run searches the user's, and they took most of its time."""
    stack._modules_of_libraries.update(
        (name, module)
        for name, module in list(sys.modules.items())
        if name.startswith(_TESTS)
        and not name.startswith("forbear_testkit.testing")
        and not str(getattr(module, "__file__", "")).startswith(_HERE)  # its name depends on the root of the tests
    )
