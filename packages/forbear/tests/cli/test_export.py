"""`forbear export`: the text on stdout, what it cannot say on stderr, and what is wrong in one line with its cure."""

import json

import pytest

from forbear import export
from forbear.services import cloud_storage, iam
from forbear_testkit.cli.running import Invoke


@pytest.mark.parametrize("target", export.TARGETS)
def test_every_target(target: str, invoke: Invoke) -> None:
    """The command prints the text of the function, and each loss on a line of its own."""
    profile, policy = ("iam", iam.policy) if target.startswith("gax") else ("cloud_storage", cloud_storage.policy)
    done = invoke("export", target, "--profile", profile)
    value, losses = export.source(target, policy)
    assert (done.exit_code, done.stdout) == (0, value.rstrip("\n") + "\n")
    assert done.stderr.splitlines() == [f"not the same: {loss}" for loss in losses]


def test_options_change_the_profile(invoke: Invoke) -> None:
    """Limits and backoff as in `forbear schedule`; without a profile it is what forbear.retry does."""
    done = invoke("export", "grpc", "--attempts", "3", "--initial", "4", "--jitter", "none", "--repeatable")
    (config,) = json.loads(done.stdout)["methodConfig"]
    assert config["retryPolicy"]["maxAttempts"] == 3
    assert config["retryPolicy"]["initialBackoff"] == "4s"


def test_functions_are_repeated_only_if_one_says_so(invoke: Invoke) -> None:
    """Functions of services are not repeated unless one says that they may be."""
    assert "retry_never" in invoke("export", "tenacity", "--profile", "iam").stdout
    assert "is_transient" in invoke("export", "tenacity", "--profile", "iam", "--repeatable").stdout


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("perl",), "error: no such target: perl\nhint: the targets are grpc, boto, "),
        (("boto", "--profile", "perl"), "error: no such profile: perl\nhint: the profiles are default, "),
        (
            ("boto", "--profile", "redis"),
            "error: `--profile` must be for HTTP requests or RPCs, got one for the commands",
        ),
        (
            ("gax_go", "--profile", "cloud_storage"),
            "error: `--profile` must be for IAM, Memorystore or Resource Manager, ",
        ),
        (("boto", "--profile", "iam"), "error: `--profile` must be for Cloud Storage or for no service in particular"),
        (
            ("boto", "--attempts", "none", "--timeout", "none"),
            "error: `--attempts` and `--timeout` must not both be none",
        ),
    ],
)
def test_wrong_options_of_export_are_errors(args: tuple[str, ...], error: str, invoke: Invoke) -> None:
    """Nothing on stdout, and exit code 2."""
    done = invoke("export", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(error)


def test_the_help_lists_the_targets(invoke: Invoke) -> None:
    """With what comes of each."""
    help_text = invoke("export", "--help").stdout
    assert all(target in help_text for target in export.TARGETS)
