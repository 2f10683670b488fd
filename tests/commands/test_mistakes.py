"""The same mistake has the same exit code in every command, and an error that names the cure."""

import os
import re
from pathlib import Path

import pytest
from click.testing import Result

from forbear.cli.app import COMMANDS
from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Invoke

USAGE, FAILED = 2, 1
URL = "https://api.example.com/x"

STORAGE = {
    "ls": ("gs://bkt/x",),
    "du": ("gs://bkt/x",),
    "stat": ("gs://bkt/x",),
    "cat": ("gs://bkt/x",),
    "hash": ("gs://bkt/x",),
    "check": (".", "gs://bkt/x"),
    "mv": ("gs://bkt/x", "gs://bkt/y"),
    "rm": ("gs://bkt/x",),
}
"""The commands that look at objects, move them and delete them, with arguments that are right."""

Cases = dict[str, tuple[tuple[str, ...], str]]
"""By command: a command line with the mistake, and a part of the error or the hint."""

NO_SUCH_OPTION: Cases = {
    name: ((name, "--no-such-option"), "no such option '--no-such-option'")
    for name in COMMANDS
    if name not in ("run", "curl")
} | {
    "run": (("run", "--no-such-option", "true"), "no such option '--no-such-option'"),
    "curl": (("curl", "--no-such-option", URL), "--no-such-option"),
}

MISSING_ARGUMENT: Cases = {
    "run": (("run",), "missing argument 'COMMAND...'"),
    "curl": (("curl",), "URL"),
    "explain": (("explain",), "a request, an RPC, a command of Redis or a call of AWS must follow"),
    "explain sql": (("explain", "sql", "INSERT"), "SQL is neither an HTTP method nor a kind of call"),
    "export": (("export",), "missing argument 'TARGET'"),
    "cp": (("cp", "gs://bkt/"), "missing argument 'SOURCE...'"),
    "rsync": (("rsync",), "missing argument 'SOURCE'"),
    **{name: ((name,), "missing argument 'ADDRESS...'") for name in ("ls", "du", "stat", "cat", "rm")},
    "hash": (("hash",), "missing argument 'NAME...'"),
    "check": (("check", "."), "missing argument 'RIGHT'"),
    "mv": (("mv", "gs://bkt/x"), "missing argument 'SOURCE...'"),
}

MISSING_INPUT: Cases = {
    "curl body": (("curl", "-d", "@missing", URL), "cannot read the body from missing"),
    "curl key": (("curl", "--credentials", "missing", "https://storage.googleapis.com/b"), "missing"),
    "explain body": (("explain", "POST", URL, "-d", "@missing"), "cannot read the body from missing"),
    "explain har": (("explain", "missing.har"), "cannot read missing.har"),
    "explain --har": (("explain", "--har", "missing"), "cannot read missing"),
    "simulate": (("simulate", "run", "missing.toml"), "'missing.toml' does not exist"),
    "audit": (("audit", "missing"), "name one that exists"),
    "cp": (("cp", "--embedded", "missing", "gs://bkt/"), "missing does not exist\nhint: check the name"),
    "cp second": (("cp", "--embedded", "here", "missing", "gs://bkt/"), "missing does not exist"),
    "cp key": (("cp", "--credentials", "missing", "here", "gs://bkt/"), "'missing' does not exist"),
    "rsync": (("rsync", "--embedded", "missing", "gs://bkt/"), "the folder missing does not exist"),
    "hash": (("hash", "missing"), "missing does not exist\nhint: check the name"),
    "hash second": (("hash", "here", "missing"), "missing does not exist"),
    "hash -": (("hash", "-"), "- does not exist"),
    "check": (("check", "missing", "gs://bkt"), "the folder missing does not exist"),
    "check right": (("check", "gs://bkt", "missing"), "the folder missing does not exist"),
    "rsync key": (("rsync", "--credentials", "missing", ".", "gs://bkt/"), "'missing' does not exist"),
    **{
        name: ((name, "--credentials", "missing", *rest), "`--credentials`: File 'missing' does not exist")
        for name, rest in STORAGE.items()
    },
}

WRONG_KIND_OF_INPUT: Cases = {
    "explain har": (("explain", "here.har"), "here.har"),
    "simulate": (("simulate", "run", "here.har"), "here.har"),
    "rsync": (("rsync", "--embedded", "here", "gs://bkt/"), "here is no folder\nhint: `forbear cp` copies files"),
    "check": (("check", "here", "gs://bkt"), "here is no folder\nhint: `forbear hash` hashes files"),
}

OTHER_SCHEME: Cases = {
    "cp to": (("cp", "here", "s3://b/"), "`TARGET` must be a path or begin with gs://, the only scheme"),
    "cp from": (("cp", "s3://b/x", "."), "`SOURCE` must be a path or begin with gs://, the only scheme"),
    "cp between": (("cp", "s3://b/x", "gs://b/"), "got s3://b/x"),
    "cp embedded": (("cp", "--embedded", "s3://b/x", "gs://b/"), "got s3://b/x"),
    "cp https": (("cp", "here", "https://storage.googleapis.com/b/x"), "got https://storage.googleapis.com/b/x"),
    "rsync to": (("rsync", ".", "s3://b/"), "`TARGET` must be a path or begin with gs://, the only scheme"),
    "rsync from": (("rsync", "s3://b/", "."), "`SOURCE` must be a path or begin with gs://, the only scheme"),
    **{
        name: ((name, "s3://b/x"), "`ADDRESS` must begin with gs://, got 's3://b/x'\nhint: write gs://bucket or gs://")
        for name in ("ls", "du", "stat", "cat", "rm")
    },
    "hash": (("hash", "s3://b/x"), "`NAME` must be a path or begin with gs://, the only scheme"),
    "check": (("check", "s3://b", "gs://b"), "`LEFT` must be a path or begin with gs://, the only scheme"),
    "check right": (("check", ".", "s3://b"), "`RIGHT` must be a path or begin with gs://, the only scheme"),
    "mv from": (("mv", "s3://b/x", "gs://b/"), "`SOURCE` must begin with gs://, got 's3://b/x'"),
    "mv to": (("mv", "gs://b/x", "s3://b/"), "`TARGET` must begin with gs://, got 's3://b/'\nhint: to move an object"),
}

NO_BUCKET: Cases = {
    **{name: ((name, *rest[:-1], "gs://"), "must name a bucket (lower-case") for name, rest in STORAGE.items()},
    "cp": (("cp", "here", "gs://"), "must name a bucket (lower-case"),
    "rsync": (("rsync", ".", "gs://My_Bucket"), "must name a bucket (lower-case"),
}

WRONG_NAME: Cases = {
    "run": (("run", "--profile", "perl", "true"), "the profiles are default, cloud_storage,"),
    "curl": (("curl", "--profile", "perl", URL), "the profiles are default, cloud_storage,"),
    "explain": (("explain", "--profile", "perl", "GET", URL), "the profiles are default, cloud_storage,"),
    "schedule": (("schedule", "perl"), "the profiles are default, cloud_storage,"),
    "simulate": (("simulate", "run", "--policy", "perl"), "write one of default, cloud_storage,"),
    "export": (("export", "grpc", "--profile", "perl"), "the profiles are default, cloud_storage,"),
    "cp": (("cp", "--embedded", "--retry", "perl", "here", "gs://bkt/"), "the profiles are default, cloud_storage,"),
    "rsync": (("rsync", "--embedded", "--retry", "perl", ".", "gs://bkt/"), "the profiles are default, cloud_s"),
    **{name: ((name, "--retry", "perl", *rest), "the profiles are default, clo") for name, rest in STORAGE.items()},
    **{
        f"{name} --profile": ((name, "--profile", "ci", *rest), "no such option '--profile'\nhint: write --retry NAME")
        for name, rest in STORAGE.items()
    },
    "cp --attempts": (("cp", "--attempts", "3", "here", "gs://bkt/"), "hint: write --retry attempts=VALUE"),
    "explain service": (("explain", "--service", "s3", "GET", URL), "the services are cloud_storage, iam,"),
    "curl service": (("curl", "--service", "s3", URL), "the services are cloud_storage, iam,"),
    "explain grpc": (("explain", "--service", "s3", "grpc", "a.B/C"), "the services are cloud_storage, iam,"),
    "explain table": (("explain", "--operations", "s3"), "the tables are cloud_storage.json,"),
    "export target": (("export", "perl"), "the targets are grpc, boto,"),
    "audit rule": (("audit", "--explain", "perl"), "the rules are UNSAFE,"),
}

WRONG_VALUE: Cases = {
    name: ((name, *options, *rest), "a count must be a whole number from 1, or none for no limit, got '0'")
    for options, commands in (
        (("--attempts", "0"), {"run": ("true",), "curl": (URL,), "schedule": (), "export": ("grpc",)}),
        (("--retry", "attempts=0"), {"cp": ("here", "gs://bkt/"), "rsync": (".", "gs://bkt/"), **STORAGE}),
    )
    for name, rest in commands.items()
} | {
    "cat --range": (("cat", "--range", "5-2", "gs://bkt/x"), "`--range` must be FIRST-LAST (FIRST <= LAST)"),
}  # fmt: skip

NO_VALUE: Cases = {
    f"{name} {option}": (
        (name, option, "", *rest),
        f"`{option}` must not be empty\nhint: leave it out",
    )
    for option in ("--impersonate", "--endpoint", "--user-project", "--shared-budget")
    for name, rest in {"cp": ("here", "gs://bkt/"), "rsync": (".", "gs://bkt/"), "rm": STORAGE["rm"]}.items()
}
"""Without the check, an unset variable of a shell would mean the user's own account, or the real service."""

NO_ENDPOINT: Cases = {
    endpoint: (("ls", "--endpoint", endpoint, "gs://bkt"), f"`--endpoint` must be an http or https URL{rest}")
    for endpoint, rest in {
        "ftp://127.0.0.1": " without user, query and fragment, got 'ftp://127.0.0.1'\nhint: such as https://storage.goo",
        "http://": "", "http://127.0.0.1:99999": "", "http://127.0.0.1:x": "", "http://a b": "",
        "http://user@127.0.0.1": "", "http://127.0.0.1?x=1": "", "http://127.0.0.1#x": "",
    }.items()
}  # fmt: skip

WRONG_NUMBER: Cases = {
    name: ((name, *rest[:-1], f"gs://bkt/a#{2**63}"), "must have a generation below 2**63 after #, got")
    for name, rest in STORAGE.items()
    if name not in ("check", "cp", "mv")  # there the last address is a target, in which nothing is special
}

NO_END: Cases = {
    name: ((name, "--attempts", "none", "--timeout", "none", *rest), "`--attempts` and `--timeout` must not both be")
    for name, rest in {"run": ("true",), "curl": (URL,), "schedule": (), "export": ("grpc",)}.items()
} | {
    name: ((name, "--retry", "attempts=none,timeout=none", *rest), "`--retry attempts=` and `--retry timeout=` must")
    for name, rest in {
        "cp": ("--embedded", "here", "gs://bkt/"), "rsync": ("--embedded", ".", "gs://bkt/"), **STORAGE,
    }.items()
}  # fmt: skip

UNWRITABLE: Cases = {
    "schedule": (("schedule", "--plot", "no/plot.png"), "cannot write no/plot.png"),
    "simulate": (("simulate", "run", "--plot", "no/plot.png"), "cannot write no/plot.png"),
    "cp": (
        ("cp", "--manifest", "no/list", "here", "gs://bkt/"),
        "cannot write the manifest no/list: there is no",
    ),
    "rsync": (("rsync", "--manifest", "", ".", "gs://bkt/"), "`--manifest` must not be empty"),
}

NOT_THERE: Cases = {
    "cp": (("cp", "--embedded", "gs://bkt/missing", "."), "404 Not Found"),
    "cp pattern": (("cp", "--embedded", "gs://bkt/*.txt", "."), "nothing matches gs://bkt/*.txt"),
    "cp local pattern": (("cp", "--embedded", "*.none", "gs://bkt/"), "nothing matches *.none"),
}

TABLE: dict[str, tuple[int, Cases]] = {
    "an option that does not exist": (USAGE, NO_SUCH_OPTION),
    "a missing argument": (USAGE, MISSING_ARGUMENT),
    "a file that does not exist": (USAGE, MISSING_INPUT),
    "a file of the wrong kind": (USAGE, WRONG_KIND_OF_INPUT),
    "an address of another service": (USAGE, OTHER_SCHEME),
    "an address without a bucket": (USAGE, NO_BUCKET),
    "a name that is in no list": (USAGE, WRONG_NAME),
    "a value out of range": (USAGE, WRONG_VALUE),
    "an option with nothing as its value": (USAGE, NO_VALUE),
    "an endpoint that is no URL": (USAGE, NO_ENDPOINT),
    "a generation that does not exist": (USAGE, WRONG_NUMBER),
    "limits without an end": (USAGE, NO_END),
    "a file that cannot be written": (USAGE, UNWRITABLE),
    "an object that does not exist": (FAILED, NOT_THERE),
}
"""Each mistake with its exit code: 2 if the command line shows it, 1 if only the work does."""

ROWS = [
    pytest.param(code, args, text, id=f"{mistake}: {' '.join(args)}")
    for mistake, (code, cases) in TABLE.items()
    for args, text in cases.values()
]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder has two small files that are neither HAR nor TOML."""
    monkeypatch.chdir(tmp_path)
    for name in ("here", "here.har"):
        Path(name).write_text("text")
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)


@pytest.mark.parametrize(("code", "args", "text"), ROWS)
def test_a_mistake(code: int, args: tuple[str, ...], text: str, invoke: Invoke) -> None:
    """It prints an error and a hint on stderr and nothing on stdout, and the exit code is that of its kind."""
    done: Result = invoke(*args)
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith("error: ")
    assert text in done.stderr
    assert "\nhint: " in done.stderr
    assert not os.path.lexists("no")


@pytest.mark.parametrize("name", STORAGE)
@pytest.mark.parametrize(
    ("code", "error", "hint"),
    [
        (200, "", "check the name"),
        (404, "404 Not Found: The specified bucket bkt does not exist.", "check the names of the bucket and the obj"),
        (403, "403 Forbidden: ", "ask the owner of the bucket for the permission"),
        (401, "401 Unauthorized: ", "log in with `gcloud auth application-default login`, or name a key file"),
    ],
    ids=["no such object", "no such bucket", "no permission", "no login"],
)
def test_a_mistake_that_the_service_notices(
    name: str, code: int, error: str, hint: str, invoke: Invoke, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command for objects prints the service's words and a hint, nothing on stdout, and fails with 1."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    if code == 404:
        cloud.store.delete_bucket(cloud.store.bucket("bkt"))
    elif code != 200:
        cloud.fault(Fault.status(code, times=None))
    done = invoke(name, "--retry", "attempts=1", *STORAGE[name])
    assert (done.exit_code, done.stdout) == (FAILED, "")
    first, second, *_ = done.stderr.splitlines()
    assert first.startswith("error: ")
    assert error in first
    assert "gs://bkt" in first
    assert second.startswith(f"hint: {hint}")


def test_every_command_is_in_the_table() -> None:
    """Each command is tried with a mistake."""
    assert {args[0] for _, cases in TABLE.values() for args, _ in cases.values()} >= set(COMMANDS)


def test_nothing_is_copied_if_a_source_is_missing(invoke: Invoke) -> None:
    """A missing source is reported before anything is sent; the embedded cloud would list what it contained."""
    done = invoke("cp", "--embedded", "here", "missing", "gs://bkt/")
    assert "contained" not in done.stderr or "contained nothing" in done.stderr


@pytest.mark.parametrize(
    ("command", "defaults"),
    [
        ("run", ("5", "none", "1", "64", "2", "full")),
        ("curl", ("by the service",) * 6),
        ("schedule", ("5", "60", "1", "64", "2", "full")),
        ("export", ("5", "60", "1", "64", "2", "full")),
    ],
)
def test_help_shows_the_defaults(command: str, defaults: tuple[str, ...], invoke: Invoke) -> None:
    """The help of each option for limits and backoff shows its value in the command's default policy."""
    text = " ".join(invoke(command, "--help").stdout.split())
    names = ("--attempts", "--timeout", "--initial", "--maximum", "--multiplier", "--jitter")
    shown = tuple(re.search(rf" {name} (?:[A-Z]|\[full).*?\[default: (.*?)\]", text) for name in names)
    assert tuple(match and match[1] for match in shown) == defaults
