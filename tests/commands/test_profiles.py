"""The names of profiles: each works in every command that takes a policy, and a wrong one gets the same error."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forbear import export
from forbear.answers.profile import ProfileChoice
from forbear.cli.kit.forecast import forecast, range_text
from forbear.cli.kit.profiles import find_named_policy
from forbear.cli.run import repeat
from forbear.core.presets import PRESETS
from forbear.policy import Policy
from forbear.services import cloud_storage, registry
from forbear.services.policies import policy_names
from forbear_testkit.cli.running import Invoke, explained

SHORT = ("documented_2020", "gsutil", "python_client")
"""The profiles that one service has, so that its name may be left out."""
NAMES = [*policy_names(), *(f"{service}.policy" for service in registry.names()), *SHORT]
REQUESTS = {
    "cloud_storage": "https://storage.googleapis.com/storage/v1/b/bkt",
    "iam": "https://iam.googleapis.com/v1/projects/p/roles/r",
    "memorystore": "https://redis.googleapis.com/v1/projects/p/locations/l/instances/i",
    "resource_manager": "https://cloudresourcemanager.googleapis.com/v3/projects/p",
    "rfc9110": "https://api.example.com/x",
}


def test_the_list() -> None:
    """It has the default, every service with each of its profiles, and the presets."""
    assert policy_names() == [
        "default", "cloud_storage", "cloud_storage.documented", "cloud_storage.documented_2020",
        "cloud_storage.gsutil", "cloud_storage.python_client", "iam", "iam.documented", "memorystore",
        "memorystore.documented", "redis", "resource_manager", "resource_manager.documented", "rfc9110",
        "aws", "interactive", "mobile", "ci", "batch",
    ]  # fmt: skip


def waits(policy: Policy) -> list[list[float]]:
    """The ranges of the waits of a policy."""
    return [list(retry.wait) for retry in forecast(policy.limits, policy.backoff).retries]


@pytest.mark.parametrize("name", NAMES)
def test_schedule(name: str, invoke: Invoke) -> None:
    """The schedule is that of the policy, with the reason if it is a preset."""
    document = json.loads(invoke("schedule", name, "--json").stdout)
    assert [retry["wait"] for retry in document["retries"]] == waits(find_named_policy(name))
    assert document.get("reason") == (PRESETS[name].reason if name in PRESETS else None)


@pytest.mark.parametrize("name", PRESETS)
def test_schedule_gives_the_reason_of_a_preset(name: str, invoke: Invoke) -> None:
    """It is the last line of the text."""
    done = invoke("schedule", name)
    assert done.stdout.startswith(f"{name}: ")
    assert done.stdout.endswith(f"\n\n{PRESETS[name].reason}\n")


@pytest.mark.parametrize("name", NAMES)
def test_explain(name: str, invoke: Invoke) -> None:
    """Each policy explains the requests of its service; default and presets bring their waits to any service."""
    service = ProfileChoice(name).service or ("cloud_storage" if name in SHORT else "iam")
    other = {"redis": ("redis", "GET", "k"), "aws": ("aws", "sqs", "GetQueueUrl")}
    words = other[service] if service in other else ("GET", REQUESTS[service])
    document = explained(invoke, "--profile", name, *words)
    assert (document["service"], document["profile"], document["repeatable"]) == (service, name, True)
    policy = find_named_policy(name)
    first = ", ".join(waits_text(policy))
    assert first in document["schedule"]


def waits_text(policy: Policy) -> list[str]:
    """The first waits of a policy, as the answers print them."""
    return [range_text(retry.wait) for retry in forecast(policy.limits, policy.backoff).retries[:3]]


@pytest.mark.parametrize("name", NAMES)
def test_export(name: str, invoke: Invoke) -> None:
    """The text is that of the policy."""
    target = "temporal"
    done = invoke("export", target, "--profile", name, "--repeatable")
    assert done.exit_code == 0
    assert done.stdout.rstrip("\n") == export.source(
        target, find_named_policy(name).with_repeatable(True)
    ).value.rstrip("\n")


@pytest.mark.parametrize("name", NAMES)
def test_run(name: str, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program gets the limits and the waits of the policy; options still change them."""
    seen: list[tuple[Any, Any]] = []

    def record(command: Any, limits: Any, backoff: Any, **_: Any) -> int:
        seen.append((limits, backoff))
        return 0

    monkeypatch.setattr(repeat, "repeat", record)
    policy = find_named_policy(name)
    assert invoke("run", "--profile", name, "true").exit_code == 0
    assert invoke("run", "--profile", name, "--attempts", "2", "true").exit_code == 0
    assert seen == [(policy.limits, policy.backoff), (policy.limits.replace(attempts=2), policy.backoff)]


class _Stopped(Exception):
    """Raised in place of the transfer."""


@pytest.fixture
def transfer(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Policy, str]]:
    """Begin a transfer under a profile; return the policy of its storage client and what it printed."""
    from forbear_transfer.cli.shared import run

    policies: list[Policy] = []

    def settings(**options: Any) -> Any:
        policies.append(options["policy"])
        raise _Stopped

    monkeypatch.setattr(run, "Settings", settings)
    printed: list[str] = []
    monkeypatch.setattr(run, "tell", printed.append)

    def start(command: str, name: str) -> tuple[Policy, str]:
        printed.clear()
        with pytest.raises(_Stopped):
            invoke(command, "-r", "--retry", name, "folder", "gs://demo/x")
        return policies[-1], "".join(printed)

    return start


@pytest.mark.parametrize("command", ["cp", "rsync"])
@pytest.mark.parametrize("name", [*NAMES, "documented", "policy"])
def test_transfers(name: str, command: str, transfer: Callable[..., tuple[Policy, str]]) -> None:
    """A policy of Cloud Storage is used as it is; any other brings its limits and waits, and the command says so."""
    policy, printed = transfer(command, name)
    service = ProfileChoice(name).service
    wanted = find_named_policy(name, "cloud_storage")
    assert (policy.limits, policy.backoff) == (wanted.limits, wanted.backoff)
    foreign = service not in (None, "cloud_storage")
    assert policy.service == (cloud_storage.policy if foreign else wanted).service
    remark = f"{name} sets limits and waits; what is retried follows the rules of cloud_storage"
    assert printed == (remark if foreign else "")


def test_changes_of_the_profile_of_a_transfer(transfer: Callable[..., tuple[Policy, str]]) -> None:
    """Changes come after the profile."""
    policy, _ = transfer("cp", "gsutil,attempts=3")
    assert policy == cloud_storage.gsutil.with_attempts(3)


@pytest.mark.parametrize(("command", "name"), [("cp", "mobile"), ("rsync", "documented")])
def test_transfers_end_to_end(command: str, name: str, invoke: Invoke, tmp_path: Path) -> None:
    """A folder arrives under a profile."""
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    done = invoke(command, "-r", "--embedded", "--retry", name, str(tmp_path), "gs://demo/x")
    assert (done.exit_code, "gs://demo contained 1 object" in done.stderr) == (0, True)


COMMANDS = {
    "schedule": ("schedule",),
    "export": ("export", "tenacity", "--profile"),
    "explain": ("explain", "GET", REQUESTS["cloud_storage"], "--profile"),
    "run": ("run", "--profile"),
    "cp": ("cp", "--embedded", "x", "gs://demo/x", "--retry"),
    "rsync": ("rsync", "--embedded", ".", "gs://demo/x", "--retry"),
}
WRONG = [
    "nope", "cloud_storage.nope", "nope.documented", "redis.documented", "", ".", "cloud_storage.", "Mobile",
    "mobile.policy", "cloud_storage.RECOMMENDED", "cloud_storage.gsutil_policy", "cloud_storage.__all__",
]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "name"),
    [
        *(("schedule", name) for name in WRONG),
        *((command, name) for command in list(COMMANDS)[1:] for name in WRONG[:2]),
    ],
)
def test_one_error(command: str, name: str, invoke: Invoke) -> None:
    """A wrong name gets the same error in every command, with the list of all names, and nothing is started."""
    done = invoke(*COMMANDS[command], name, *(["true"] if command == "run" else []))
    assert (done.exit_code, done.stdout) == (2, "")
    about_storage = command in ("explain", "cp", "rsync")
    full = f"cloud_storage.{name}" if about_storage and ProfileChoice(name).service is None else name
    hint = f"hint: the profiles are {', '.join(policy_names())}\n"
    assert done.stderr == f"error: no such profile: {full}\n{hint}"


@pytest.mark.parametrize("command", ["schedule", "export", "run"])
@pytest.mark.parametrize("name", ["documented", "policy"])
def test_a_name_that_several_services_have(command: str, name: str, invoke: Invoke) -> None:
    """If no service is meant, the error lists those that have such a profile."""
    done = invoke(*COMMANDS[command], name, *(["true"] if command == "run" else []))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: several services have the profile {name}\nhint: name one of cloud_storage.")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--profile", "iam", "redis", "GET", "k"), "error: `--profile` iam does not go with a Redis command\n"),
        (("--profile", "iam", "grpc", "google.storage.v2.Storage/GetObject"),
         "error: `--profile` iam does not go with an RPC of cloud_storage\nhint: name a profile of cloud_storage"),
        (("--profile", "iam.documented", "--service", "memorystore", "GET", "https://x/"),
         "error: `--profile` iam.documented does not go with the service memorystore\n"),
        (("--profile", "redis", "GET", "https://x/"),
         "error: redis does not judge HTTP requests\nhint: name a `--service` or a `--profile` of an HTTP API\n"),
        (("--retry-not-found", "GET", REQUESTS["cloud_storage"]),
         "error: `--retry-not-found` does not go with the profile cloud_storage.policy\nhint: it is for iam and"),
        (("--retry-not-found", "redis", "GET", "k"), "error: `--retry-not-found` does not go with the profile redis"),
    ],
)  # fmt: skip
def test_profiles_that_do_not_fit(args: tuple[str, ...], text: str, invoke: Invoke) -> None:
    """`explain` refuses what the clients refuse."""
    done = invoke("explain", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert text in done.stderr


def test_a_policy_of_a_service_judges_any_host(invoke: Invoke) -> None:
    """As in a client, the service of the policy judges, whatever the host."""
    path = "http://127.0.0.1:8080/v3/folders/1"
    document = explained(invoke, "--profile", "resource_manager.documented", "GET", path)
    assert (document["service"], document["operation"]) == ("resource_manager", "cloudresourcemanager.folders.get")
    document = explained(invoke, "--profile", "ci", "grpc", "a.B/C")
    assert (document["service"], "at most 8 attempts" in document["schedule"]) == ("grpc", True)
    document = explained(invoke, "--profile", "iam", "grpc", "a.B/C")
    assert document["service"] == "iam"


@pytest.mark.parametrize("words", [("GET", REQUESTS["iam"]), ("grpc", "google.iam.admin.v1.IAM/GetRole"),
                                   ("GET", REQUESTS["resource_manager"])])  # fmt: skip
@pytest.mark.parametrize("profile", ["policy", "documented", "mobile"])
def test_retry_not_found(words: tuple[str, ...], profile: str, invoke: Invoke) -> None:
    """With the option a read is repeated after 404, or NOT_FOUND."""
    for option, repeated in ((("--retry-not-found",), True), ((), False)):
        document = explained(invoke, "--profile", profile, *option, *words)
        outcomes = {each["failure"]: each["retried"] for each in document["failures"]}
        assert outcomes["NOT_FOUND" if words[0] == "grpc" else "404"] is repeated


def test_retry_not_found_is_a_loss_of_exports(invoke: Invoke) -> None:
    """No target can express the option, so it is listed; a policy without it is refused."""
    loss = "not the same: retry_not_found: 404 is permanent\n"
    assert loss in invoke("export", "tenacity", "--profile", "iam", "--retry-not-found").stderr
    assert loss not in invoke("export", "tenacity", "--profile", "iam").stderr
    assert invoke("export", "tenacity", "--retry-not-found").exit_code == 2


@pytest.mark.parametrize(
    ("profile", "statuses"),
    [("policy", ()), ("documented", ("501", "505", "508")), ("python_client", ("508",)),
     ("documented_2020", ("501", "505", "508"))],
)  # fmt: skip
def test_rare_statuses(profile: str, statuses: tuple[str, ...], invoke: Invoke) -> None:
    """501, 505 and 508 are listed for the profiles that retry them."""
    document = explained(invoke, "--profile", profile, "GET", REQUESTS["cloud_storage"])
    outcomes = {each["failure"]: each["retried"] for each in document["failures"]}
    assert {status for status in outcomes if status in ("501", "505", "508")} == set(statuses)
    assert all(outcomes[status] for status in statuses)
