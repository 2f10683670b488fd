"""Test aiobotocore in an environment of its own: it holds botocore back, so it cannot stand in that of the other tests.

The tests of boto3 run there, too, with the botocore that it allows, but for those which look at the newest models.
"""

import tempfile
from pathlib import Path

from tools.environments import EDITABLE, fresh, install, run, surroundings

_TESTS = Path("packages/forbear/tests")
_OF_NEWEST = _TESTS / "services/aws/test_table.py"


def main() -> None:
    """Run the tests; a failure ends this program with its exit code."""
    with tempfile.TemporaryDirectory(prefix="forbear-aiobotocore-") as name:
        python = fresh(Path(name))
        install(python, "--require-hashes", "-r", "requirements/dev.txt")
        install(python, "--require-hashes", "-r", "requirements/aiobotocore.txt")
        install(python, "--no-deps", "--no-build-isolation", *EDITABLE)
        path = f"{python.parent}:{surroundings()['PATH']}"
        words = ("-m", "pytest", "--quiet", "-p", "no:cacheprovider", f"--ignore={_OF_NEWEST}")
        tests = (_TESTS / "clients/test_aiobotocore.py", _TESTS / "clients/botocore", _TESTS / "services/aws")
        run(python, *words, *tests, env={"PATH": path})


if __name__ == "__main__":
    main()
