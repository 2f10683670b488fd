"""The waits of the targets as they really are: many calls of each against a cloud that fails them and times them.

`make soak` measures, and `make waits` also writes the figures that docs/export.md shows.
"""

import csv
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from docs.generate.waits import UNMEASURED
from forbear import export
from forbear.export.waits import difference, mean_delays
from forbear.policy import Policy
from forbear.services import cloud_storage, memorystore
from forbear_cloud import Cloud
from forbear_testkit import ROOT
from forbear_testkit.export import runners
from forbear_testkit.export.timed import Clock, Measured, timed_cloud
from forbear_testkit.export.windows import WINDOWS, means

PROFILES = {"documented": cloud_storage.documented, "policy": cloud_storage.policy}
WRITTEN = ROOT / "docs" / "generate"
METHODS = {"boto": "DELETE", "botocore": "HEAD"}  # of the requests that are timed, where it is not GET
OVERHEAD = 0.4  # seconds that a request takes on a busy machine

# How many calls are made at the same time, and how often each is retried. With full jitter, the mean of 200 waits has a
# standard error of 4 %. Many more calls at the same time would load the machine, and measure that.
RUNNERS: dict[str, tuple[Callable[[Policy, Cloud, int, Path], str], int, int]] = {
    "go": (runners.go, 600, 4),
    "java": (runners.java, 240, 4),
    "nodejs": (runners.nodejs, 100, 4),
    "php": (runners.php, 60, 4),
    "ruby": (runners.ruby, 100, 4),
    "google_api_core": (runners.google_api_core, 200, 4),
    "tenacity": (runners.tenacity_, 80, 4),
    "urllib3": (runners.urllib3_, 80, 4),
    "celery": (runners.celery, 60, 4),
    "botocore": (runners.botocore, 20, 4),
    "cpp": (runners.cpp, 100, 4),
    "gcloud": (runners.gcloud, 40, 4),
    "boto": (runners.boto, 64, 3),
}
UNSETTABLE = {("cpp", "documented")}  # pyarrow has no option for it


def expected(target: str, policy: Policy, retries: int) -> list[float]:
    """Return the mean waits by the target's own algorithm, as its source has it."""
    if target == "botocore":
        return [0.025 * 2**n for n in range(retries)]
    if target not in WINDOWS:  # the exact ones
        return mean_delays(policy.backoff, retries)
    return means(target, policy.with_repeatable(True))[:retries]


def check(target: str, profile: str, versions: str, calls: int, waits: list[Measured]) -> None:
    """Compare what was measured with the target's algorithm, and write it."""
    policy = PROFILES[profile]
    for wait, formula in zip(waits, expected(target, policy, len(waits)), strict=True):
        assert abs(wait.mean - formula) <= OVERHEAD + 4 * wait.error, (waits, formula)
    if target in {"go", "java", "google_api_core", "grpc", "php", "tenacity"}:
        for wait, ours in zip(waits, mean_delays(policy.backoff, len(waits)), strict=True):
            assert difference(wait.mean, ours) <= 0.055 + (OVERHEAD + 3 * wait.error) / ours, (waits, ours)
    write(target, profile, versions, calls, waits)


def write(target: str, profile: str, versions: str, calls: int, waits: list[Measured]) -> None:
    """Write what was measured, if the environment says so."""
    if os.environ.get("FORBEAR_WAITS") == "write":
        path = WRITTEN / f"waits.{profile}.csv"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        rows = {row[0]: row for row in csv.reader(lines)}
        rows[target] = [target, versions, str(calls), *(f"{wait.mean:.2f}" for wait in waits)]
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows[name] for name in sorted(rows))


@pytest.mark.soak
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("target", RUNNERS)
def test_a_target_waits_as_its_source_says(target: str, profile: str, tmp_path: Path) -> None:
    """The real program or library, at its real speed; those that can say the mean waits of the policy keep them."""
    if (target, profile) in UNSETTABLE:
        return
    runner, calls, retries = RUNNERS[target]
    with timed_cloud(calls, retries, METHODS.get(target, "GET")) as (cloud, clock):
        versions = runner(PROFILES[profile], cloud, calls, tmp_path)
    check(target, profile, versions, calls, clock.waits(retries))


@pytest.mark.soak
@pytest.mark.parametrize("profile", PROFILES)
def test_a_channel_waits_as_its_source_says(profile: str) -> None:
    """gRPC core, in four retries, which are the most that it makes."""
    clock = Clock()
    versions = runners.grpc_(PROFILES[profile], clock, 100, 4)
    check("grpc", profile, versions, 100, clock.waits(4))


@pytest.mark.soak
def test_memorystores_library_for_nodejs_waits_as_its_source_says(tmp_path: Path) -> None:
    """With the exported config, the first five mean waits are those of the page, within 5 %."""
    clock = Clock()
    versions, outcomes = runners.gax_nodejs(memorystore.documented, clock, 300, 4, tmp_path)
    assert outcomes == ["done"]
    waits = clock.waits(4)
    assert sum(wait.mean for wait in waits) == pytest.approx(1.5 + 2.5 + 4.5 + 8.5, rel=0.1)
    write("gax_nodejs", "documented", versions, 300, waits)


@pytest.mark.soak
def test_memorystores_library_for_nodejs_repeats_nothing_by_itself(tmp_path: Path) -> None:
    """Its page promises backoff, but each call is sent once and ends with UNAVAILABLE (14)."""
    clock = Clock()
    _, outcomes = runners.gax_nodejs(None, clock, 3, 1, tmp_path)
    assert outcomes == [14]
    assert [len(times) for times in clock.times.values()] == [1, 1, 1]


def test_every_target_is_measured_or_named() -> None:
    """A target that no registry of PyPI, npm or Debian has is named with its reason, so that none is forgotten."""
    alike = {"gax_go", "gax_java", "gax_cpp"}  # they wait as go, java and cpp do
    computed = {"gax_ruby", "gax_php", "gax_csharp"}  # in test_gax_others; the page on exports says why
    assert {*RUNNERS, "grpc", "gax_nodejs", *UNMEASURED} | alike | computed == set(export.TARGETS)
