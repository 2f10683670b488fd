"""Make the tables of measured waits in docs/export.md, from the figures that `make waits` writes beside this file."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from docs.generate.markdown import between, code, table
from forbear import export
from forbear.export.waits import mean_delays
from forbear.policy import Policy
from forbear.services import cloud_storage, memorystore

PROFILES = {"documented": cloud_storage.documented, "policy": cloud_storage.policy}
UNMEASURED = {
    "csharp": "Google.Cloud.Storage.V1 is in no registry of Debian, PyPI or npm",
    "cpp": "google-cloud-cpp is there only inside pyarrow, which sets no backoff",
    "envoy": "its binary is in no registry of Debian, PyPI or npm",
    "temporal": "the server computes the waits, and is in no registry of Debian, PyPI or npm",
}
"""The targets that cannot be measured, each with the reason."""

_HERE = Path(__file__).parent
_NEAR = 5  # percent
_MARK = "<!-- {} waits: `make waits` measures them, `make reference` writes this table -->"
BEGIN, END = _MARK.format("begin"), _MARK.format("end")


def filled(page: str) -> str:
    """Return the text of a page with its tables of waits made anew; raises ValueError if it has no place for them."""
    return between(page, BEGIN, END, _tables())


def _tables() -> Iterator[str]:
    """Yield the lines of a table for each profile."""
    for name, policy in PROFILES.items():
        yield f"**`cloud_storage.{name}`**, mean waits {_listed(mean_delays(policy.backoff, 4))}:"
        yield ""
        headers = ("target", "calls", "mean waits", "sum against the profile", "measured with; why not within 5 %")
        yield from table(headers, _rows(name))


def _rows(name: str) -> Iterator[tuple[str, ...]]:
    policy = PROFILES[name]
    measured = {row[0]: row[1:] for row in csv.reader((_HERE / f"waits.{name}.csv").read_text().splitlines())}
    for target in sorted({*measured, *UNMEASURED}):
        exported = memorystore.documented if target.startswith("gax") else policy.with_repeatable(True)
        reason = _reason(target, exported)
        if target in measured:
            versions, calls, *figures = measured[target]
            means = [float(each) for each in figures]
        else:
            calls, means = "", _by_source(target, exported)
            versions = f"not measured, by its source: {UNMEASURED[target]}"
        ours = sum(mean_delays(policy.backoff, len(means)))
        percent = round(100 * (sum(means) / ours - 1))
        why = f"; {reason}" if abs(percent) > _NEAR else ""
        yield code(target), calls, _listed(means), f"{percent:+d} %" if percent else "0 %", f"{versions}{why}"


def _losses(target: str, policy: Policy) -> Iterator[re.Match[str]]:
    """Yield the parts of the loss on waits, if the export has one: the mean waits, and the quoted source."""
    for loss in export.source(target, policy).losses:
        match = re.fullmatch(r"waits of .*?: (?:on average (.*) s instead of .* s|.*?) \((.*)\)", loss)
        if match is not None:
            yield match


def _reason(target: str, policy: Policy) -> str:
    return next((match[2] for match in _losses(target, policy)), "")


def _by_source(target: str, policy: Policy) -> list[float]:
    """Return the first four mean waits as the loss lists them, without a loss those of the policy."""
    for match in _losses(target, policy):
        return [float(each) for each in match[1].split(", ")][:4]
    return mean_delays(policy.backoff, 4)


def _listed(means: list[float]) -> str:
    return f"{', '.join(f'{each:.3g}' for each in means)} s"
