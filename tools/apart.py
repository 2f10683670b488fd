"""Test libraries in an environment of their own, over that of the other tests: `python -m tools.apart google`.

- `aioboto3` holds aiobotocore back, to a version before the newest. Its programs run on the server of moto.
- `aiobotocore` holds botocore back, so it cannot stand beside it. The tests of boto3 run there, too, with the botocore
  that it allows, but for those which look at the newest models.
- `google` has clients of Google that are large, and that no other test needs.
- `moto` keeps the state of AWS; the calls and programs of boto3 run on its server.
- `niquests` puts urllib3-future in the place of urllib3, also below requests and botocore.
"""

import argparse
import tempfile
from pathlib import Path

from tools.environments import EDITABLE, fresh, install, run, surroundings

_TESTS = Path("packages/forbear/tests")
_OF_NEWEST = _TESTS / "services/aws/test_table.py"

APART: dict[str, tuple[str | Path, ...]] = {
    "aioboto3": (_TESTS / "clients/test_aiobotocore.py", _TESTS / "clients/test_aiobotocore_programs.py"),
    "aiobotocore": (
        f"--ignore={_OF_NEWEST}",
        _TESTS / "clients/test_aiobotocore.py",
        _TESTS / "clients/botocore",
        _TESTS / "services/aws",
    ),
    "google": (_TESTS / "clients/google/test_real_clients.py",),
    "moto": (_TESTS / "clients/botocore/test_moto.py", _TESTS / "clients/botocore/test_moto_programs.py"),
    "niquests": (
        *("-m", "soak or not soak"),
        _TESTS / "judges/functions/test_http.py",
        _TESTS / "evidence/readers",
        _TESTS / "cli/test_doctor.py",
    ),
}
"""The arguments of pytest, by the name of the requirements."""


def main() -> None:
    """Run the tests; a failure ends this program with its exit code."""
    parser = argparse.ArgumentParser(description="Test libraries in an environment of their own.")
    parser.add_argument("name", choices=APART)
    name: str = parser.parse_args().name
    with tempfile.TemporaryDirectory(prefix=f"forbear-{name}-") as folder:
        python = fresh(Path(folder))
        install(python, "--require-hashes", "-r", "requirements/dev.txt")
        install(python, "--require-hashes", "-r", f"requirements/{name}.txt")
        install(python, "--no-deps", "--no-build-isolation", *EDITABLE)
        path = f"{python.parent}:{surroundings()['PATH']}"
        run(python, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *APART[name], env={"PATH": path})


if __name__ == "__main__":
    main()
