"""`forbear rm`: it asks before a pattern or a folder is deleted, and says what it did."""

import json

import click
import pytest

from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Invoke


@pytest.fixture(autouse=True)
def filled(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A cloud that the environment names, with some objects."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    for name in ("a", "x/b", "x/c"):
        cloud.store.put("bkt", name, name.encode())
    return cloud


def left(cloud: Cloud) -> list[str]:
    """Return the names of the live objects."""
    return sorted(cloud.store.bucket("bkt").objects)


def test_an_object_needs_no_confirmation(invoke: Invoke, filled: Cloud) -> None:
    """As in gsutil and gcloud."""
    done = invoke("rm", "gs://bkt/a")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("1 deleted in ")
    assert left(filled) == ["x/b", "x/c"]


def test_totals_and_what_is_left_out(invoke: Invoke, filled: Cloud) -> None:
    """The total counts no files, also if nothing was deleted; a folder is named once; an empty bucket is no failure."""
    assert "\n0 deleted in " in invoke("rm", "gs://bkt/none").stderr
    assert invoke("rm", "--yes", "gs://bkt/*").stderr.startswith("left out: gs://bkt/x/ is a folder\n1 deleted in ")
    filled.store.create_bucket("empty")
    done = invoke("rm", "-r", "gs://empty")
    assert (done.exit_code, done.stderr) == (0, "nothing to do\n")


@pytest.mark.parametrize("arguments", [["gs://bkt/x/*"], ["-r", "gs://bkt/x"]])
def test_without_a_terminal_yes_is_needed(arguments: list[str], invoke: Invoke, filled: Cloud) -> None:
    """Before a pattern or a folder is deleted; the error says how much it is."""
    done = invoke("rm", *arguments)
    assert done.exit_code == 2
    assert done.stderr == (
        "error: `--yes` is needed to delete 2 objects, 6 B where no terminal can ask\nhint: look first with --dry-run\n"
    )
    assert left(filled) == ["a", "x/b", "x/c"]
    assert invoke("rm", "--yes", *arguments).stderr.startswith("2 deleted in ")
    assert left(filled) == ["a"]


@pytest.mark.parametrize(
    ("answer", "code", "names"), [(True, 0, ["a", "x/new"]), (False, 1, ["a", "x/b", "x/c", "x/new"])]
)
def test_on_a_terminal_it_asks(
    answer: bool, code: int, names: list[str], invoke: Invoke, filled: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object that is written after the question is not deleted: it was not confirmed."""

    def confirm(text: str, *, err: bool) -> bool:
        assert (text, err) == ("delete 2 objects, 6 B?", True)
        filled.store.put("bkt", "x/new", b"new")
        return answer

    monkeypatch.setattr("click.confirm", confirm)
    monkeypatch.setattr("forbear_transfer.cli.rm.is_terminal", lambda: True)
    done = invoke("rm", "-r", "gs://bkt/x")
    assert done.exit_code == code
    assert left(filled) == names


def test_all_versions_are_asked_about(invoke: Invoke, filled: Cloud) -> None:
    """They do not come back; without a terminal the command needs --yes."""
    done = invoke("rm", "--all-versions", "gs://bkt/a")
    assert (done.exit_code, left(filled)) == (2, ["a", "x/b", "x/c"])
    assert "`--yes` is needed to delete 1 version, 1 B where no terminal can ask" in done.stderr
    done = invoke("rm", "-a", "--dry-run", "gs://bkt/a")
    assert done.stdout == f"delete gs://bkt/a#{filled.store.object('bkt', 'a').generation}\n"
    assert invoke("rm", "-ay", "gs://bkt/a").exit_code == 0
    assert left(filled) == ["x/b", "x/c"]


def test_ctrl_c_at_the_question(invoke: Invoke, filled: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the line, says that nothing was deleted, and exits with 130."""

    def confirm(text: str, *, err: bool) -> bool:
        raise click.Abort

    monkeypatch.setattr("click.confirm", confirm)
    monkeypatch.setattr("forbear_transfer.cli.rm.is_terminal", lambda: True)
    done = invoke("rm", "-r", "gs://bkt/x")
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", "\ninterrupted: nothing was deleted\n")
    assert left(filled) == ["a", "x/b", "x/c"]


def test_verbose_prints_every_object(invoke: Invoke, filled: Cloud) -> None:
    """A line on stderr for every object that is moved or deleted."""
    assert invoke("mv", "-v", "gs://bkt/a", "gs://bkt/b").stderr.startswith("moved gs://bkt/a -> gs://bkt/b\n1 file")
    assert invoke("rm", "-v", "gs://bkt/b").stderr.startswith("deleted gs://bkt/b\n1 deleted")
    assert left(filled) == ["x/b", "x/c"]


def test_json_has_the_sizes(invoke: Invoke, filled: Cloud) -> None:
    """Of what is deleted; no bytes are moved for it."""
    for more in ("--dry-run", "--yes"):
        lines = [json.loads(line) for line in invoke("rm", "--json", "-r", more, "gs://bkt/x").stdout.splitlines()]
        assert [line["size"] for line in lines[:2]] == [3, 3]
        assert [line["bytes"] for line in lines[:2]] == [0, 0]


def test_a_dry_run(invoke: Invoke, filled: Cloud) -> None:
    """Prints on stdout what would be deleted."""
    done = invoke("rm", "-r", "-n", "gs://bkt/x")
    assert (done.exit_code, done.stdout) == (0, "delete gs://bkt/x/b\ndelete gs://bkt/x/c\n")
    assert done.stderr == "dry run: nothing was changed\n"
    assert not filled.effects.count("storage.objects.delete")


def test_a_failure_of_rm_keeps_newer_versions(invoke: Invoke, filled: Cloud) -> None:
    """Exit code 1, the reason and the cure, also as JSON; a new version stays."""
    filled.fault(Fault.replace_object(b"theirs", operation="storage.objects.delete"))
    done = invoke("rm", "--json", "gs://bkt/a", "gs://bkt/x")
    assert done.exit_code == 1
    records = {record.get("target"): record for record in map(json.loads, done.stdout.splitlines())}
    assert (records["gs://bkt/a"]["action"], records["gs://bkt/a"]["status"]) == ("delete", "failed")
    assert records["gs://bkt/x"]["hint"] == "there are objects below it: use `--recursive`"
    assert records[None]["summary"]["failed"] == 2
    assert "error: gs://bkt/a was written meanwhile: its version" in done.stderr
    assert filled.store.object("bkt", "a").data == b"theirs"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["photos"], "`ADDRESS` must begin with gs://, got 'photos'"),
        (["--anonymous", "--credentials", __file__, "gs://bkt/a"], "`--anonymous` does not go with `--credentials`"),
        (["--retry", "attempts=none,timeout=none", "gs://bkt/a"], "must not both be none"),
    ],
)
def test_wrong_usage(arguments: list[str], text: str, invoke: Invoke, filled: Cloud) -> None:
    """Exit code 2, before any request."""
    done = invoke("rm", *arguments)
    assert done.exit_code == 2
    assert text in done.stderr
    assert not filled.requests
