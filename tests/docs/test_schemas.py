"""docs/schemas: the JSON output of each command agrees with its schema, and has no field that the schema leaves out."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from examples.demo import command
from examples.demo import fleet as fleet_part
from examples.demo import shared as shared_part
from examples.demo import storage as storage_part
from examples.demo import upload as upload_part
from forbear.cli.app import app
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit import ROOT
from forbear_testkit.cli.demo import SHARED, UPLOADED, fleets, replay, shared_by, uploaded

FOLDER = ROOT / "docs" / "schemas"
NAMES = sorted(path.stem for path in FOLDER.iterdir())
STORAGE = "https://storage.googleapis.com"
OBJECT = f"{STORAGE}/storage/v1/b/b/o/a"
HAR = {
    "log": {
        "entries": [
            {"request": {"method": "GET", "url": OBJECT}, "response": {"status": 200}},
            {"request": {"method": "DELETE", "url": OBJECT}, "response": {"status": 503}},
            {"request": {"method": "POST", "url": "https://api.example.com/x"}, "response": {"status": 0}},
        ]
    }
}
BRIEF = ["--set", "duration=20s", "--set", "windows=[{start = '5s', length = '5s'}]"]
SHORT = ["--set", "duration=20s", "--set", "windows=[]", "--set", "clients.policy.attempts=1"]

LOOP = """
import time
while True:
    try:
        f()
    except Exception:
        time.sleep(1)
"""

COMMANDS: list[tuple[str, list[str]]] = [
    ("explain", ["explain", "DELETE", f"{OBJECT}?ifGenerationMatch=7"]),
    ("explain", ["explain", "DELETE", f"{OBJECT}?ifGenerationMatch=abc"]),
    ("explain", ["explain", "POST", "https://api.example.com/orders"]),
    ("explain", ["explain", "POST", f"{STORAGE}/batch/storage/v1"]),
    ("explain", ["explain", "grpc", "google.storage.v2.Storage/DeleteObject", "if_generation_match=0"]),
    ("explain", ["explain", "grpc", "some.Service/Method"]),
    ("explain", ["explain", "redis", "SET", "key", "value", "NX"]),
    ("explain", ["explain", "redis", "BLPOP", "key", "0"]),
    ("doctor", ["doctor"]),
    ("doctor", ["doctor", "--check", "requests", "stripe"]),
    ("explain-har", ["explain", "requests.har"]),
    *(
        ("explain-operations", ["explain", "--operations", table])
        for table in ("cloud_storage.json", "cloud_storage.xml", "cloud_storage.grpc", "iam", "memorystore", "redis")
    ),
    ("schedule", ["schedule", "ci"]),
    ("schedule", ["schedule", "cloud_storage.documented"]),
    ("schedule", ["schedule", "default", "--constant", "0", "--timeout", "none"]),
    ("schedule", ["schedule", "default", "--attempts", "none", "--jitter", "decorrelated"]),
    ("simulate", ["simulate", "run"]),
    ("simulate", ["simulate", "run", "--set", "budget=brooker"]),
    ("simulate-compare", ["simulate", "run", "--compare", "budget=brooker", *SHORT]),
    ("simulate-find", ["simulate", "find", "attempts", "--such-that", "recovery < 60 s", *BRIEF]),
    ("simulate-find", ["simulate", "find", "jitter", "--such-that", "recovery < 60 s", *SHORT]),
    ("simulate-sweep", ["simulate", "sweep", "clients.rate=40..80", *BRIEF]),
    ("simulate-gallery", ["simulate", "gallery", "no-hysteresis"]),
    ("audit", ["audit", "code"]),
]

SLOW: list[tuple[str, list[str]]] = [
    ("simulate-map", ["simulate", "map"]),
    ("simulate-verdict", ["simulate", "verdict"]),
    ("simulate-verdict", ["simulate", "verdict", "--compare", "budget=brooker"]),
]
"""Commands that take seconds, so only `make soak` runs them."""

STORAGE_COMMANDS: list[tuple[str, list[str]]] = [
    ("ls", ["ls", "gs://bkt"]),
    ("ls", ["ls", "-r", "gs://bkt"]),
    ("du", ["du", "gs://bkt", "gs://bkt/*"]),
    ("stat", ["stat", "gs://bkt/**"]),
    ("hash", ["hash", "a/one", "gs://bkt/x/one"]),
    ("check", ["check", "a", "gs://bkt/x"]),
    ("check", ["check", "gs://bkt", "gs://bkt/x"]),
    ("transfer", ["mv", "gs://bkt/x/one", "gs://bkt/none", "gs://bkt/y/"]),
    ("transfer", ["rm", "--dry-run", "gs://bkt/**", "gs://bkt/y"]),
    ("transfer", ["rm", "gs://bkt/y/one", "gs://bkt/none"]),
]


def schema(name: str) -> dict[str, Any]:
    """A schema by its name."""
    loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def closed(part: Any) -> Any:
    """A schema that allows no field that it does not list."""
    if isinstance(part, list):
        return [closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    made = {key: closed(value) for key, value in part.items()}
    return made | {"additionalProperties": False} if "required" in part else made


def check(name: str, document: Any) -> None:
    """Assert that a document agrees with its schema, and that the schema names all its fields."""
    errors = [
        f"{error.json_path}: {error.message[:200]}"
        for error in Draft202012Validator(closed(schema(name))).iter_errors(document)
    ]
    assert errors == []


def run(*arguments: str) -> tuple[str, str]:
    """Run a command and return stdout and stderr."""
    done = CliRunner().invoke(app, [*arguments], prog_name="forbear", catch_exceptions=False)
    return done.stdout, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one(name: str) -> None:
    """Each file is a schema of draft 2020-12, has a title, and is on the page; the page names no other."""
    Draft202012Validator.check_schema(schema(name))
    assert schema(name)["title"].startswith(("forbear ", "python -m examples.demo "))
    page = (FOLDER.parent / "schemas.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(schemas/([\w-]+)\.json\)", page)) == set(NAMES)


def fields(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the schema of each field below a part of a schema."""
    if isinstance(part, list):
        for each in part:
            yield from fields(each, path)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key == "properties":
                for name, field in value.items():
                    yield f"{path}.{name}", field
                    yield from fields(field, f"{path}.{name}")
            else:
                yield from fields(value, path)


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_described(name: str) -> None:
    """A schema says of each field what it means."""
    assert [path for path, field in fields(schema(name)) if not field.get("description")] == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *(pytest.param(name, arguments, id=" ".join(arguments[:4])) for name, arguments in COMMANDS),
        *(pytest.param(name, arguments, id=" ".join(arguments), marks=pytest.mark.soak) for name, arguments in SLOW),
    ],
)
def test_the_output_agrees(name: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output of each command with `--json` agrees with its schema."""
    monkeypatch.chdir(tmp_path)
    Path("requests.har").write_text(json.dumps(HAR))
    Path("code").mkdir()
    Path("code", "a.py").write_text(
        "import time\nwhile True:\n    try:\n        f()\n    except Exception:\n        time.sleep(1)\n"
    )
    Path("code", "bad.py").write_text("x = (")
    words = 2 if arguments[0] == "simulate" else 1  # of the command's name
    stdout, stderr = run(*arguments[:words], "--json", *arguments[words:])
    assert stdout, stderr
    check(name, json.loads(stdout))


def lines(stdout: str) -> Iterator[Any]:
    """The documents in lines of JSON."""
    return map(json.loads, stdout.splitlines())


def test_transfers_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of `cp` and `rsync` agree: done, skipped, deleted, and failed after retries."""
    monkeypatch.chdir(tmp_path)
    Path("a").mkdir()
    Path("a", "one").write_text("1")
    Path("b").mkdir()
    found = list[Any]()
    with Cloud() as cloud, virtual_time(seed=1):
        cloud.store.create_bucket("my-bucket")
        here = ("--json", "--endpoint", cloud.url, "--anonymous")
        cloud.fault(Fault.status(503, operation="storage.objects.insert", times=9))
        for command in (
            ["cp", "-r", "a", "gs://my-bucket/", "--retry", "attempts=2"],
            ["rsync", "-r", "a", "gs://my-bucket/"],
            ["rsync", "-r", "--dry-run", "-d", "b", "gs://my-bucket/"],
            ["rsync", "-r", "-d", "b", "gs://my-bucket/"],
        ):
            found += lines(run(*command, *here)[0])
            cloud.clear_faults()
    for document in found:
        check("transfer", document)
    assert {item["status"] for item in found if "status" in item} == {"failed", "done", "skipped"}
    assert any(item.get("tried") for item in found)


def test_storage_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of the commands that look at objects, move them and delete them agree, with and without failures."""
    monkeypatch.chdir(tmp_path)
    Path("a").mkdir()
    Path("a", "one").write_text("2")
    Path("a", "both").write_text("1")
    with Cloud() as cloud:
        cloud.store.create_bucket("bkt")
        cloud.store.put("bkt", "x/one", b"1", {"customTime": "2026-01-31T12:00:00Z", "metadata": {"key": "value"}})
        cloud.store.put("bkt", "top", b"11", {"temporaryHold": True, "contentLanguage": "en"})
        for schema_name, command in STORAGE_COMMANDS:
            stdout, stderr = run(*command, "--json", "--endpoint", cloud.url, "--anonymous")
            assert stdout, stderr
            for document in lines(stdout):
                check(schema_name, document)


def parts_of(command: click.Command) -> list[click.Command]:
    """Return the commands of a group, or the command itself."""
    return list(command.commands.values()) if isinstance(command, click.Group) else [command]


def test_every_command_with_json_has_a_schema() -> None:
    """Each command of the group that has --json prints what a schema describes, and the page names the command."""
    page = (FOLDER.parent / "schemas.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `forbear ")]
    named = {
        name
        for row in rows
        for name in re.findall(r"[a-z]+", row.split("|")[1].replace("forbear", "").replace("json", ""))
    }
    context = click.Context(app)
    with_json = {
        name
        for name in app.list_commands(context)
        for command in parts_of(command_called(context, name))
        if any("--json" in option.opts for option in command.params)
    }
    validated = {arguments[0] for _, arguments in (*COMMANDS, *STORAGE_COMMANDS)} | {"cp", "rsync"}
    assert {"ls", "explain", "cp"} <= with_json
    assert with_json - validated == set()
    assert with_json - named == set()


def command_called(context: click.Context, name: str) -> click.Command:
    """A command of the group."""
    command = app.get_command(context, name)
    assert command is not None
    return command


def test_curl_agrees() -> None:
    """The report of `forbear curl` agrees after a retry, a permanent failure, and without a connection."""
    with Cloud() as cloud, virtual_time(seed=1):
        cloud.store.create_bucket("my-bucket")
        cloud.fault(Fault.status(503))
        for url in (f"{cloud.url}/storage/v1/b/my-bucket", f"{cloud.url}/storage/v1/b/gone", "http://127.0.0.1:1/"):
            _, stderr = run("curl", "-s", "--report", "json", "--service", "cloud_storage", "--attempts", "2", url)
            check("curl", json.loads(next(line for line in stderr.splitlines() if line.startswith("{"))))


def test_the_demo_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The JSON of the demo agrees; its longer parts are those of earlier runs."""
    from docs.generate import demo

    monkeypatch.setattr(storage_part, "compare", replay([(name, score, 1.0) for name, score in demo.scores().items()]))
    monkeypatch.setattr(upload_part, "kill_and_run_again", uploaded(UPLOADED))
    monkeypatch.setattr(fleet_part, "compare", replay(fleets()))
    monkeypatch.setattr(shared_part, "share_a_budget", shared_by(SHARED))
    done = CliRunner().invoke(command, ["--json", "--each", "1"], catch_exceptions=False)
    check("demo", json.loads(done.stdout))


def test_a_field_that_changes_is_noticed() -> None:
    """A field that is missing or has another type does not agree; a new field does, for users."""
    stdout, _ = run("schedule", "ci", "--json")
    document = json.loads(stdout)
    missing, retyped, new = (copy.deepcopy(document) for _ in range(3))
    del missing["retries"][0]["certain"]
    retyped["limits"]["attempts"] = "8"
    new["retries"][0]["extra"] = 1
    valid = Draft202012Validator(schema("schedule"))
    assert [valid.is_valid(each) for each in (document, missing, retyped, new)] == [True, False, False, True]
