"""`--retry`: a profile, changes of it, or both, in one option."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from forbear.cli.kit import values
from forbear.cli.kit.options import PolicyOptions, RetryOption, apply_options, make_retry_option
from forbear.cli.kit.output import BadInput
from forbear.core.backoff import Constant, Exponential
from forbear.core.limits import Limits

NONE: dict[str, Any] = dict.fromkeys(PolicyOptions.__annotations__)
READ: list[dict[str, Any]] = []


@click.command(params=[make_retry_option("ci", "Retries")])
def command(**options: Any) -> None:
    """Keep what the option says."""
    READ.append(options)


def read(*words: str) -> dict[str, Any]:
    """Return the keywords that a command gets."""
    done = CliRunner().invoke(command, [*words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return READ.pop()


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {"profile": "ci"}),
        (["--retry", "gsutil"], {"profile": "gsutil"}),
        (["--retry", "attempts=5,timeout=1m30s"], {"profile": "ci", "attempts": 5, "timeout": 90}),
        (["--retry", "gsutil, attempts = none"], {"profile": "gsutil", "attempts": values.NO_LIMIT}),
        (["--retry", "initial=500ms,maximum=8,multiplier=3"], {"initial": 0.5, "maximum": 8, "multiplier": 3}),
        (["--retry", "jitter=none,constant=0"], {"jitter": "none", "constant": 0}),
    ],
    ids=["none", "name", "changes", "both", "backoff", "jitter"],
)
def test_what_it_says(words: list[str], options: dict[str, Any]) -> None:
    """The command gets all keys that the options of a policy have, None for those that are not there."""
    assert read(*words) == {"profile": "ci", **NONE, **options}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("attempts=0", "attempts: a count must be a whole number from 1, or none for no limit, got '0'"),
        ("timeout=-1", "timeout: a duration must be more than zero"),
        ("multiplier=x", "multiplier: 'x' is not a valid float"),
        ("jitter=some", "jitter: 'some' is not one of 'full', 'equal', 'documented', 'decorrelated', 'none'"),
        ("ci,attempts", "'attempts' is no change of a policy; write a key and a value, such as attempts=5"),
        ("attempt=3", "'attempt=3' is no change of a policy; write a key and a value, such as attempts=5 (attempts, "),
        ("attempts=3,", "'' is no change of a policy"),
        ("attempts=3,attempts=4", "attempts is there twice; leave one of them out"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    """The error names the key, the rule and the value."""
    done = CliRunner().invoke(command, ["--retry", text])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_the_changes_are_applied() -> None:
    """They are those of the options of `forbear run`, and errors name them as they were written."""
    start = Limits(), Exponential()
    assert apply_options(*start, read("--retry", "attempts=2,constant=3")) == (Limits(2), Constant(3))  # type: ignore[arg-type]
    with (
        click.Context(command),
        pytest.raises(BadInput, match=r"`--retry constant=` does not go with `--retry initial="),
    ):
        apply_options(*start, read("--retry", "constant=1,initial=2"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("incomplete", "offered"),
    [
        ("gsu", []),
        ("att", ["attempts="]),
        ("inter", ["interactive"]),
        ("ci,m", ["ci,maximum=", "ci,multiplier="]),
        ("attempts=3,ti", ["attempts=3,timeout="]),
    ],
)
def test_shells_complete_profiles_then_keys(incomplete: str, offered: list[str]) -> None:
    """Shells complete profiles first, then keys."""
    (option,) = (each for each in command.params if isinstance(each, RetryOption))
    items = option.shell_complete(click.Context(command), incomplete)
    assert [item.value for item in items] == offered
