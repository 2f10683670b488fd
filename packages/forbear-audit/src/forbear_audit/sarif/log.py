"""SARIF 2.1.0, the form in which code hosts read findings: what `forbear audit` and the storm share.

Both have the same ids of rules and the same fingerprints, so that a code host shows a finding and its proof together.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from forbear.cli.kit.links import real
from forbear_audit.findings import place_in

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""The address of the schema of the format."""

_ROOT = "%SRCROOT%"


def sarif_log(
    driver: Mapping[str, Any], results: Iterable[dict[str, Any]], notifications: Iterable[dict[str, Any]], base: Path
) -> dict[str, Any]:
    """Return the log of one run of the tool that `driver` describes: its results, and notifications about the run.

    `base` is the folder that the paths of `sarif_place` count from.
    """
    run: dict[str, Any] = {
        "tool": {"driver": {**driver}},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {_ROOT: {"uri": real(base).as_uri().rstrip("/") + "/"}},
        "results": [*results],
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": [*notifications]}],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def sarif_place(path: str, base: Path, region: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return the location of a file or of a region in it, by `sarif_artifact`."""
    place: dict[str, Any] = {"artifactLocation": sarif_artifact(path, base)}
    return {"physicalLocation": place if region is None else place | {"region": {**region}}}


def sarif_artifact(path: str, base: Path) -> dict[str, str]:
    """Return the location of a file: relative to the folder `base` if it is below that, else absolute."""
    base = real(base)
    place = place_in(Path(base, path), base)
    if place.is_absolute():
        return {"uri": place.as_uri()}
    return {"uri": quote(place.as_posix().encode("utf-8", "surrogateescape")), "uriBaseId": _ROOT}


def utf16_column(line: str, column: int) -> int:
    """Return a column, from 1, in units of UTF-16 rather than in characters."""
    return len(line[: column - 1].encode("utf-16-le", "surrogatepass")) // 2 + 1


def fingerprints(fingerprint: str, number: int) -> dict[str, str]:
    """Return the fingerprints of a result; `number` counts the results with this `fingerprint`, from 1."""
    return {"forbear/v1": f"{fingerprint}:{number}"}
