"""The rules of `forbear audit` on real code: the findings in the wheels that audit_wheels.txt pins, in two halves.

`python -m benchmarks.audit_wheels FOLDER` downloads the wheels into FOLDER, unpacks their code there and audits it.
With `--sheets` it also writes samples for people to label: FOLDER/tuning.md, test.md and silent.md. Rules are tuned on
the half "tuning" only. FOLDER must be outside of the repository, which never holds the code of others.
"""

import argparse
import re
import resource
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import audit_sheets
from forbear_audit import RULES, Audit, AuditSettings, Finding, audit

LIST = Path(__file__).with_suffix(".txt")
HALVES = ("tuning", "test")
_REPOSITORY = Path(__file__).parents[1]
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux2014_x86_64", "any")
_CODE = (".py", ".pyw", ".ipynb")


@dataclass(frozen=True, order=True)
class Wheel:
    """A pinned package and its half, "tuning" or "test"."""

    name: str
    version: str
    half: str

    @property
    def folder(self) -> str:
        """The name of the folder that its code is unpacked to."""
        return f"{self.name}-{self.version}"


def pinned(text: str) -> list[Wheel]:
    """Return the wheels of a list: lines NAME==VERSION below a line [tuning] or [test].

    Raises ValueError that names the line for anything else.
    """
    wheels: list[Wheel] = []
    half = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        name, equal, version = line.partition("==")
        if line in [f"[{each}]" for each in HALVES]:
            half = line[1:-1]
        elif equal and half:
            wheels.append(Wheel(name, version, half))
        else:
            raise ValueError(f"line {number} must be [tuning], [test] or, below one of them, NAME==VERSION: {line!r}")
    return wheels


def fetch(wheels: Sequence[Wheel], folder: Path) -> None:
    """Download the wheels that `folder` does not have, and unpack their code to folder/src."""
    archives = folder / "wheels"
    archives.mkdir(parents=True, exist_ok=True)
    missing = [wheel for wheel in wheels if not (folder / "src" / wheel.folder).exists()]
    absent = [wheel for wheel in missing if _archive(archives, wheel) is None]
    if absent:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--python-version", "3.12", "--dest", str(archives)]
        command += [part for platform in _PLATFORMS for part in ("--platform", platform)]
        subprocess.run([*command, *(f"{wheel.name}=={wheel.version}" for wheel in absent)], check=True)
    for wheel in missing:
        archive = _archive(archives, wheel)
        if archive is None:
            raise FileNotFoundError(f"{archives} has no wheel of {wheel.name}=={wheel.version} after the download")
        with zipfile.ZipFile(archive) as opened:
            members = [member for member in opened.namelist() if member.endswith(_CODE)]
            opened.extractall(folder / "src" / wheel.folder, members)


def _archive(archives: Path, wheel: Wheel) -> Path | None:
    files = (path for path in archives.glob("*.whl") if _canonical(path.name.split("-")[0]) == wheel.name)
    return next((path for path in files if path.name.split("-")[1] == wheel.version), None)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def by_wheel(wheels: Iterable[Wheel], folder: Path, findings: Iterable[Finding]) -> dict[Wheel, list[Finding]]:
    """Return the findings of each wheel, by the folder that their paths are in."""
    folders = {wheel.folder: wheel for wheel in wheels}
    result: dict[Wheel, list[Finding]] = {wheel: [] for wheel in folders.values()}
    for finding in findings:
        place = Path(finding.path).relative_to(folder / "src").parts[0]
        result[folders[place]].append(finding)
    return result


def table(groups: dict[Wheel, list[Finding]]) -> list[str]:
    """Return the findings per rule and half, and then per package and rule, as lines of tables."""
    counts = {half: Counter(f.rule for w, fs in groups.items() if w.half == half for f in fs) for half in HALVES}
    packages = Counter((w.half, rule) for w, fs in groups.items() for rule in {f.rule for f in fs})
    lines = ["| rule | tuning: findings | packages | test: findings | packages |", "|---|---|---|---|---|"]
    for rule in RULES:
        cells = [str(number) for half in HALVES for number in (counts[half][rule], packages[half, rule])]
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    lines += ["", f"| package | half | {' | '.join(RULES)} |", f"|---|---|{'---|' * len(RULES)}"]
    for wheel, findings in sorted(groups.items()):
        own = Counter(finding.rule for finding in findings)
        lines.append(f"| {wheel.folder} | {wheel.half} | {' | '.join(str(own[rule] or '') for rule in RULES)} |")
    return lines


def run(wheels: Sequence[Wheel], folder: Path, jobs: int) -> Audit:
    """Audit the code of the wheels and print its size, the seconds, and the memory of the largest process."""
    started, busy = time.perf_counter(), _cpu()
    result = audit(
        [folder / "src" / wheel.folder for wheel in wheels], settings=AuditSettings(select=tuple(RULES)), jobs=jobs
    )
    seconds, busy = time.perf_counter() - started, _cpu() - busy
    own, pool = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(
        f"{len(wheels)} wheels, {result.files:,} files, {result.lines:,} lines, {len(result.findings):,} findings, "
        f"{seconds:.0f} s with {jobs} processes ({busy:.0f} s of CPU), at most {max(own, pool) / 1e3:.0f} MB each"
    )
    for unread in result.unread:
        print(unread)
    return result


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, and do what they say; ends with a message if FOLDER is within the repository."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_wheels", description=__doc__)
    parser.add_argument("folder", type=Path, help="where wheels, code and sheets go, outside of the repository")
    parser.add_argument("--jobs", type=int, default=2, help="processes of the audit (default: 2)")
    parser.add_argument("--sheets", action="store_true", help="write samples of findings for people to label")
    options = parser.parse_args(arguments)
    folder: Path = options.folder.resolve()
    if folder.is_relative_to(_REPOSITORY):
        parser.error(f"FOLDER must be outside of the repository {_REPOSITORY}, got {folder}")
    wheels = pinned(LIST.read_text(encoding="utf-8"))
    fetch(wheels, folder)
    result = run(wheels, folder, options.jobs)
    groups = by_wheel(wheels, folder, result.findings)
    print("\n".join(table(groups)))
    if options.sheets:
        for half in HALVES:
            count = audit_sheets.write_findings(folder, half, _half(groups, half))
            print(f"{folder / half}.md: {count} findings")
        print(f"{folder / 'silent.md'}: {audit_sheets.write_silent(folder, _half(groups, 'tuning'))} places")


def _half(groups: dict[Wheel, list[Finding]], half: str) -> dict[str, list[Finding]]:
    return {wheel.folder: findings for wheel, findings in groups.items() if wheel.half == half}


if __name__ == "__main__":
    main()
