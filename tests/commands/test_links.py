"""The files that commands write: never through a link in the code of others that leads out of it."""

from pathlib import Path

import pytest

from forbear_testkit.cli.running import Invoke

COMMANDS = {
    "audit --storm-plan": ("audit", ".", "--jobs", "1", "--storm-plan"),
    "audit --baseline": ("audit", "src", "--jobs", "1", "--write-baseline", "--baseline"),
    "simulate run --csv": ("simulate", "run", "a.toml", "--csv"),
    "simulate run --plot": ("simulate", "run", "a.toml", "--plot"),
    "simulate map --plot": ("simulate", "map", "a.toml", "--plot"),
    "schedule --plot": ("schedule", "iam", "--plot"),
}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of others with a link to a file of the user; the test runs in it."""
    (tmp_path / "own.png").write_text("precious")
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    (tmp_path / "repo" / "src" / "a.py").touch()
    (tmp_path / "repo" / "a.toml").write_text('duration = "2s"\n')
    (tmp_path / "repo" / "link.png").symlink_to("../own.png")
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path / "repo"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_file_is_written_through_a_link_of_others(name: str, repo: Path, invoke: Invoke) -> None:
    """The command says where the link leads, and the file stays."""
    done = invoke(*COMMANDS[name], "link.png")
    option = name.rpartition(" ")[2]
    assert (done.exit_code, done.stdout, (repo.parent / "own.png").read_text()) == (2, "", "precious")
    assert done.stderr == (
        f"error: `{option}` must not be written through a link in the code of others: {repo}/link.png leads to "
        f"{repo.parent}/own.png\nhint: remove the link, or name the file itself that it leads to\n"
    )


@pytest.mark.parametrize("name", ["audit --storm-plan", "audit --baseline"])
@pytest.mark.parametrize("file", ["../own.png", "../mine.png"])
def test_the_user_names_any_file(name: str, file: str, repo: Path, invoke: Invoke) -> None:
    """The file itself, and a link of the user, are written."""
    (repo.parent / "mine.png").symlink_to("own.png")
    done = invoke(*COMMANDS[name], file)
    assert done.exit_code == 0
    assert (repo.parent / "own.png").read_text() != "precious"
