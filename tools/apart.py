"""Test clients in environments of their own, over that of the other tests: `python -m tools.apart clients moto`.

- `aioboto3` holds aiobotocore back, to a version before the newest. Its programs run on the server of moto.
- `clients` has the newest versions of all clients that decorated functions see, and large clients of Google.
  aiobotocore holds botocore back, so the tests of boto3 run there, too, but for those which look at the newest models.
- `clients-lowest` has the lowest version of each.
- `moto` keeps the state of AWS; the calls and programs of boto3 run on its server.
- `niquests` and `niquests-lowest` put urllib3-future in the place of urllib3, also below requests and botocore.

In those of clients and niquests, `forbear doctor --check` must find what each client sends.
"""

import argparse
import tempfile
from pathlib import Path

from tools.environments import EDITABLE, fresh, install, install_locked, run, surroundings

_TESTS = Path("packages/forbear/tests")
_FUNCTIONS = _TESTS / "judges/functions"
_READERS = _TESTS / "evidence/readers"
_WHOLE: tuple[str | Path, ...] = ("-m", "soak or not soak")
_TABLES: tuple[str | Path, ...] = (
    *_WHOLE,
    *(
        _FUNCTIONS / f"test_{name}.py"
        for name in ("http", "clients", "data", "rpcs", "brokers", "mongo", "mysql", "sql", "stdlib")
    ),
)
_NEW = (  # by what old versions lack: cut-off bodies, json(), a second try, asyncio, an answer to an unknown request
    f"{_READERS}/test_http.py::test_a_body_that_breaks[requests]",
    f"{_READERS}/test_http.py::test_a_body_that_breaks_after_a_redirect[requests]",
    f"{_READERS}/test_http.py::test_a_body_that_is_no_json[urllib3]",
    f"{_FUNCTIONS}/test_http.py::test_a_hook_that_sends_a_message[requests-half",
    f"{_READERS}/test_http.py::test_aiohttp_has_tried_before[PUT-2]",
    f"{_FUNCTIONS}/test_mongo.py::test_async",
    f"{_FUNCTIONS}/test_brokers.py::test_messages_of_kafka[idempotent]",
)
_NIQUESTS: tuple[str | Path, ...] = (*_WHOLE, _FUNCTIONS / "test_http.py", _READERS, _TESTS / "cli/test_doctor.py")

APART: dict[str, tuple[str | Path, ...]] = {
    "aioboto3": (_TESTS / "clients/test_aiobotocore.py", _TESTS / "clients/test_aiobotocore_programs.py"),
    "clients": (
        *_TABLES,
        _FUNCTIONS / "test_sdks.py",
        _READERS,
        _TESTS / "cli/test_doctor.py",
        f"--ignore={_TESTS / 'services/aws/test_table.py'}",
        _TESTS / "clients/test_aiobotocore.py",
        _TESTS / "clients/botocore",
        _TESTS / "services/aws",
        _TESTS / "clients/google/test_real_clients.py",
    ),
    "clients-lowest": (*_TABLES, _READERS, _TESTS / "cli/test_doctor.py", *(f"--deselect={each}" for each in _NEW)),
    "moto": (_TESTS / "clients/botocore/test_moto.py", _TESTS / "clients/botocore/test_moto_programs.py"),
    "niquests": _NIQUESTS,
    "niquests-lowest": _NIQUESTS,
}
"""The arguments of pytest, by the name of the requirements."""


def check(name: str) -> None:
    """Test the clients of the requirements called `name`; a failure ends this program with its exit code."""
    with tempfile.TemporaryDirectory(prefix=f"forbear-{name}-") as folder:
        python = fresh(Path(folder))
        install_locked(python)
        install(python, "--require-hashes", "-r", f"requirements/{name}.txt")
        install(python, "--no-deps", "--no-build-isolation", *EDITABLE)
        path = {"PATH": f"{python.parent}:{surroundings()['PATH']}"}
        print(f"== {name}", flush=True)
        if name.startswith(("clients", "niquests")):
            run(python, "-m", "forbear", "doctor", "--check", env=path)
        quiet = ("-W", "ignore") if name.endswith("lowest") else ()  # old clients call what is deprecated
        words = ("-m", "pytest", "--quiet", "-n", "auto", "-p", "no:cacheprovider", *quiet)
        run(python, *words, *APART[name], env=path)


def main() -> None:
    """Check what the command line names."""
    parser = argparse.ArgumentParser(description="Test clients in environments of their own.")
    parser.add_argument("names", nargs="+", choices=APART)
    for name in parser.parse_args().names:
        check(name)


if __name__ == "__main__":
    main()
