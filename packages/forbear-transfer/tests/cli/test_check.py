"""`forbear check`, `hash`, `du` and `mv`: lines, JSON, exit codes and errors."""

import json
from pathlib import Path

import pytest

from forbear_cloud import Cloud
from forbear_testkit.cli.running import Invoke


@pytest.fixture(autouse=True)
def filled(tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A working folder, and a cloud that the environment names, with some objects."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    for name, text in {"a": "same", "b": "1 here", "c": "left"}.items():
        (tmp_path / "here" / name).write_text(text)
    for name, data in {"a": b"same", "b": b"there!", "d\x1b": b"x" * 2048}.items():
        cloud.store.put("bkt", f"x/{name}", data)
    return cloud


def test_check_prints_each_difference(invoke: Invoke) -> None:
    """A line for each difference on stdout, the sums on stderr, and exit code 1."""
    done = invoke("check", "here", "gs://bkt/x")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "different: b: their CRC32Cs differ",
        "only in here: c",
        "only in gs://bkt/x: $'d\\x1b'",
    ]
    assert done.stderr == "1 same; 1 different; 1 only in here; 1 only in gs://bkt/x\n"
    same = invoke("check", "-x", "[bcd]", "here", "gs://bkt/x")
    assert (same.exit_code, same.stdout, same.stderr) == (0, "", "1 same\n")
    assert invoke("check", "-q", "gs://bkt", "gs://bkt").output == ""


def test_check_as_json(invoke: Invoke) -> None:
    """An object for each difference, and a summary last."""
    done = invoke("check", "--json", "-q", "here", "gs://bkt/x")
    first, *_, last = map(json.loads, done.stdout.splitlines())
    assert first == {
        "name": "b",
        "status": "different",
        "left_size": 6,
        "right_size": 6,
        "note": "their CRC32Cs differ",
    }
    assert last == {"summary": {"same": 1, "different": 1, "only_left": 1, "only_right": 1, "unreadable": 0}}
    assert (done.exit_code, done.stderr) == (1, "")


def test_hash_prints_one_line_for_the_same_bytes(invoke: Invoke, filled: Cloud) -> None:
    """The same line for the same bytes."""
    there = filled.store.object("bkt", "x/a")
    done = invoke("hash", "here/a", "gs://bkt/x/a")
    assert done.stdout == "".join(f"{there.crc32c}   {there.md5}  {name}\n" for name in ("here/a", "gs://bkt/x/a"))
    record = {"name": "here/a", "size": 4, "generation": None, "crc32c": there.crc32c, "md5": there.md5}
    assert json.loads(invoke("hash", "--json", "here/a").stdout) == record


def test_hash_of_files_needs_no_credentials(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is looked for where the real service would be used."""
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none"))
    assert invoke("hash", "--credentials", "here/a", "here/a").exit_code == 0  # a file that holds no key


def test_du_adds_up_folders(invoke: Invoke) -> None:
    """Bytes and folders, also in words and as JSON."""
    assert invoke("du", "gs://bkt").stdout == "        2058  gs://bkt/x/\n        2058  gs://bkt\n"
    assert invoke("du", "-sh", "gs://bkt/x/*").stdout == "     2.0 KiB  'gs://bkt/x/*'\n"
    assert json.loads(invoke("du", "-s", "--json", "gs://bkt").stdout) == {
        "url": "gs://bkt",
        "objects": 3,
        "bytes": 2058,
    }


def test_mv_moves_objects(invoke: Invoke, filled: Cloud) -> None:
    """The total, JSON with the action, and the source is gone."""
    done = invoke("mv", "gs://bkt/x/a", "gs://bkt/y")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("1 file, 4 B in ")
    first, last = map(json.loads, invoke("mv", "--json", "gs://bkt/y", "gs://bkt/z").stdout.splitlines())
    assert (first["action"], first["status"], first["target"]) == ("move", "done", "gs://bkt/z")
    assert last["summary"]["deleted"] == 0
    assert {"x/a", "y"}.isdisjoint(filled.store.bucket("bkt").objects)


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (
            ["check", "here", "there"],
            2,
            "error: `LEFT` or `RIGHT` must begin with gs://\nhint: to compare here and there, use diff -r\n",
        ),
        (["hash", "here"], 1, "error: here is a folder\nhint: use a pattern with ** for what lies in it\n"),
        (["check", "-x", "(", "here", "gs://bkt"], 2, "error: `--exclude` must be a regular expression, got '(': "),
        (["check", "here", "gs://bkt/none"], 1, "error: there is nothing below gs://bkt/none\nhint: check the name"),
        (["hash", ""], 2, "error: `NAME` must name at least one file or object, and none may be empty\nhint: name one"),
        (["du", "gs://bkt/none"], 1, "error: gs://bkt/none does not exist\nhint: check the name"),
        (["du", "here"], 2, "error: `ADDRESS` must begin with gs://, got 'here'"),
        (["mv", "here/a", "gs://bkt/"], 2, "error: `SOURCE` must begin with gs://, got 'here/a'"),
        (["mv", "gs://bkt/x/a", "here"], 2, "error: `TARGET` must begin with gs://, got 'here'"),
        (["mv", "gs://bkt/x/", "gs://bkt/y"], 1, "error: gs://bkt/x/: it is a folder\nhint: copy folders with `--rec"),
        (
            ["mv", "gs://bkt/x", "gs://bkt/y"],
            1,
            "error: gs://bkt/x does not exist\nhint: there are objects below it: use `--",
        ),
        (["mv", "gs://bkt/x/a"], 2, "error: missing argument "),
    ],
)
def test_errors_have_the_exit_codes_of_cp(arguments: list[str], code: int, error: str, invoke: Invoke) -> None:
    """With the exit codes of `cp`; nothing on stdout."""
    done = invoke(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(error)
