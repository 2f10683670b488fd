"""`--fix` and `--diff`: the options of the fixes, and what is printed of them."""

import sys
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING

import click

from forbear.cli.kit.output import BadInput, style, tell
from forbear_audit.cli.text import printable

if TYPE_CHECKING:
    from forbear_audit import Audit, AuditSettings
    from forbear_audit.fixes import FixedFile
    from forbear_audit.rules.baseline import Baseline


def check_options(*, fix: bool, diff: bool, deadline: float | None, cap: float | None, others: dict[str, bool]) -> None:
    """Raise BadInput if the options of the fixes contradict each other or the other options that are on."""
    needless = next((name for name, value in (("deadline", deadline), ("cap", cap)) if value is not None), None)
    if needless is not None and not (fix or diff):
        raise BadInput(f"`--fix-{needless}` needs `--fix` or `--diff`", "add --diff to see the changes")
    for name, used in others.items():
        if used and (diff or (fix and name == "write-baseline")):
            raise BadInput(f"`--{name}` does not go with `--{'diff' if diff else 'fix'}`", "leave one of them out")


def apply_fixes(
    result: "Audit",
    settings: "AuditSettings",
    baseline: "Baseline | None",
    *,
    deadline: float | None,
    cap: float | None,
    dry: bool,
) -> "tuple[Audit, list[FixedFile]]":
    """Fix what is certain; return the audit of the new code, and the files. With `dry` nothing is written."""
    import_module("libcst")  # an error before the work, which names the extra

    from forbear_audit.fixes import FixFigures, fix

    return fix(result, settings=settings, figures=FixFigures(deadline, cap), baseline=baseline, dry=dry)


def print_diff(files: "list[FixedFile]") -> None:
    """Print the changes as one unified diff to stdout, and what they cure to stderr.

    A terminal gets colors and no characters that command it; anything else gets exact bytes, as a patch needs them.
    """
    for file in files:
        if not sys.stdout.isatty():
            click.echo(file.patch(), nl=False)
            continue
        for line in file.diff().removesuffix("\n").split("\n"):
            color = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            text = printable(line.removesuffix("\r"))
            click.echo(style(text, color=color) if color else text)
    for file in files:
        for one in file.fixes:
            tell(f"would fix {one}")


def print_fixes(files: "list[FixedFile]", *, err: bool) -> None:
    """Print what was fixed, to stdout or to stderr."""
    for file in files:
        for one in file.fixes:
            click.echo(printable(f"fixed {one}"), err=err)


def advise_figures(result: "Audit", *, deadline: float | None, cap: float | None) -> None:
    """Print which findings need a figure that only the user can choose."""
    from forbear_audit.fixes import CAPPED, TIMED

    counts = Counter(
        option
        for option, value, rules in (("--fix-deadline", deadline, TIMED), ("--fix-cap", cap, CAPPED))
        for finding in result.findings
        if value is None and finding.library in rules.get(finding.rule, ())
    )
    for option, count in counts.items():
        what = "a deadline" if option == "--fix-deadline" else "a cap"
        tell(f"{count} more {'needs' if count == 1 else 'need'} {what}: choose its seconds with {option} 60")
