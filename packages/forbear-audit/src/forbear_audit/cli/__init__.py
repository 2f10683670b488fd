"""`forbear audit`: the retries in Python code that are unsafe, unbounded or impolite."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forbear.cli.kit.output import EXIT_CODES, BadInput, check_links, tell, warn
from forbear.cli.kit.values import duration
from forbear_audit.cli.text import (
    advise_figures,
    print_diff,
    print_finding,
    print_fixes,
    print_rule,
    print_summary,
    printable,
)

if TYPE_CHECKING:
    from forbear_audit import Audit, AuditSettings
    from forbear_audit.fixes import FixedFile
    from forbear_audit.rules.baseline import Baseline


@click.command(epilog=EXIT_CODES)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@click.option("--select", metavar="RULES", help="Apply only these rules, separated by commas, or all.")
@click.option("--ignore", metavar="RULES", help="Leave out these rules.")
@click.option("--exclude", metavar="PATTERN", multiple=True, help="Leave out these files or folders; repeatable.")
@click.option("--baseline", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Known findings.")
@click.option("--write-baseline", is_flag=True, help="Write all findings to the file of --baseline.")
@click.option(
    "--storm-plan",
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write what `pytest --forbear-storm` should prove to FILE; - is stdout.",
)
@click.option(
    "--fail-on",
    type=click.Choice(("note", "warning", "error", "never")),
    help="The least severity that makes the exit code 1; by default warning.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--sarif", "as_sarif", is_flag=True, help="Print SARIF 2.1.0, for code hosts.")
@click.option("--fix", is_flag=True, help="Cure what has one certain cure; needs libcst.")
@click.option("--diff", is_flag=True, help="Print what --fix would change, and write nothing.")
@click.option("--fix-deadline", type=duration, metavar="S", help="With --fix: add missing deadlines of this length.")
@click.option("--fix-cap", type=duration, metavar="S", help="With --fix: cap growing waits at this length.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes; by default one for each CPU.")
@click.option("--explain", metavar="RULES", help="Explain rules, and read no code.")
def command(
    paths: tuple[Path, ...],
    select: str | None,
    ignore: str | None,
    exclude: tuple[str, ...],
    baseline: Path | None,
    write_baseline: bool,
    storm_plan: str | None,
    fail_on: str | None,
    as_json: bool,
    as_sarif: bool,
    fix: bool,
    diff: bool,
    fix_deadline: float | None,
    fix_cap: float | None,
    jobs: int | None,
    explain: str | None,
) -> None:
    """Find the retries in Python code that are unsafe or unbounded.

    PATH is a file or folder, by default the current folder. The code is read, never imported or run. Options override
    `[tool.forbear.audit]` in pyproject.toml. A comment `# forbear: ignore[RULE]` in the line suppresses a finding.
    """
    from forbear_audit import audit
    from forbear_audit.rules.baseline import Baseline

    if explain is not None:
        for rule in _rules("explain", explain):
            print_rule(rule)
        return
    if as_json and as_sarif:
        raise BadInput("`--json` does not go with `--sarif`", "leave one of them out")
    others = {"json": as_json, "sarif": as_sarif, "write-baseline": write_baseline}
    _check_fixes(fix=fix, diff=diff, deadline=fix_deadline, cap=fix_cap, others=others)
    names = paths or (Path(),)
    for path in names:
        if not os.path.lexists(path):
            raise BadInput(f"PATH must be a file or folder, got {str(path)!r}", "name one that exists")
    settings = _settings(names[0], select, ignore, exclude, baseline, fail_on)
    read = (*names, *((settings.root,) if settings.root else ()))
    if storm_plan is not None:
        from forbear_audit.cli.storm_plan import check_plan  # it imports the storm

        check_plan(storm_plan, read, write_baseline=write_baseline, prints=as_json or as_sarif)
    if write_baseline and baseline is None:
        named = "FILE" if settings.baseline is None else shlex.quote(settings.baseline)
        raise BadInput("`--write-baseline` needs `--baseline`", f"name the file that it writes: --baseline {named}")
    if write_baseline:
        check_links("baseline", Path(settings.baseline or ""), read)
    known = None if write_baseline else _baseline(settings)
    with _progress_line() as show:
        result = audit(names, settings=settings, jobs=jobs or os.cpu_count() or 1, baseline=known, on_progress=show)
    if write_baseline:
        written = Baseline.of(Path(settings.baseline or ""), result.findings)
        try:
            written.write()
        except OSError as error:
            what = f"`--baseline` cannot write {written.path}: {error.strerror}"
            raise BadInput(what, "name a file in a folder that exists and that you may write") from None
        tell(f"wrote {len(result.findings)} finding{'s' * (len(result.findings) != 1)} to {written.path}")
        return
    if not result.files and not result.unread:
        warn("no file was read: PATH has no Python code, or patterns leave all of it out")
    fixed: list[FixedFile] = []
    if fix or diff:
        import_module("libcst")  # an error before the work, which names the extra

        from forbear_audit import fixes

        figures = fixes.FixFigures(fix_deadline, fix_cap)
        result, fixed = fixes.fix(result, settings=settings, figures=figures, baseline=known, dry=diff)
    if diff:
        print_diff(fixed)
    elif storm_plan != "-":
        _print(result, fixed, as_json=as_json, as_sarif=as_sarif)
    if fix or diff:
        advise_figures(result, deadline=fix_deadline, cap=fix_cap)
    if storm_plan is not None:
        from forbear_audit.cli.storm_plan import write_plan

        write_plan(result, storm_plan)
    if settings.fail_on != "never" and result.at_least(settings.fail_on):
        sys.exit(1)
    unread = {one.path for one in result.unread}
    if unread and (not result.files or any(str(path) in unread for path in names)):
        sys.exit(2)  # or a file could hide from a gate


def _check_fixes(*, fix: bool, diff: bool, deadline: float | None, cap: float | None, others: dict[str, bool]) -> None:
    """Raise BadInput if the options of the fixes contradict each other or the other options that are on."""
    needless = next((name for name, value in (("deadline", deadline), ("cap", cap)) if value is not None), None)
    if needless is not None and not (fix or diff):
        raise BadInput(f"`--fix-{needless}` needs `--fix` or `--diff`", "add --diff to see the changes")
    for name, used in others.items():
        if used and (diff or (fix and name == "write-baseline")):
            raise BadInput(f"`--{name}` does not go with `--{'diff' if diff else 'fix'}`", "leave one of them out")


@contextmanager
def _progress_line() -> Generator[Callable[[int], object] | None]:
    """Show how many files were read while the context lasts, on stderr.

    The context gets the function to call with the number of files, None if stderr is no terminal or rich is missing.
    """
    if not sys.stderr.isatty():
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    except ModuleNotFoundError:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed} files read"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("", total=None)
        yield lambda files: progress.update(task, completed=files)


def _settings(
    first: Path,
    select: str | None,
    ignore: str | None,
    exclude: tuple[str, ...],
    baseline: Path | None,
    fail_on: str | None,
) -> "AuditSettings":
    """Return the settings of pyproject.toml, changed by the options that were used."""
    from forbear.cli.kit.links import real
    from forbear_audit.settings import check_patterns, read_settings

    place = real(first)
    try:
        settings = read_settings(place if place.is_dir() else place.parent)
    except ValueError as error:
        raise BadInput(str(error), "correct this key in pyproject.toml") from None
    changes: dict[str, Any] = {}
    if select is not None:
        changes["select"] = _rules("select", select)
    if ignore is not None:
        changes["ignore"] = (*settings.ignore, *_rules("ignore", ignore))
    if exclude:
        try:
            check_patterns("exclude", exclude)
        except ValueError as error:
            raise BadInput(str(error), "name a file, a folder or a pattern: --exclude 'tests/*.py'") from None
        changes["exclude"] = (*settings.exclude, *exclude)
    if baseline is not None:
        changes["baseline"] = str(baseline)
    if fail_on is not None:
        changes["fail_on"] = fail_on
    return replace(settings, **changes)


def _rules(option: str, text: str) -> tuple[str, ...]:
    """Return the ids in an option, every id for "all" in --select; raises BadInput for an unknown one."""
    from forbear_audit import RULES

    if option == "select" and text == "all":
        return tuple(RULES)
    rules = tuple(rule.strip().upper() for rule in text.split(",") if rule.strip())
    unknown = next((rule for rule in rules if rule not in RULES), None)
    if unknown is not None or not rules:
        raise BadInput(f"`--{option}` must name rules, got {unknown or text!r}", f"the rules are {', '.join(RULES)}")
    return rules


def _baseline(settings: "AuditSettings") -> "Baseline | None":
    from forbear_audit.rules.baseline import Baseline

    if settings.baseline is None:
        return None
    try:
        return Baseline.read(Path(settings.baseline))
    except ValueError as error:
        raise BadInput(str(error), "write it with --write-baseline") from None
    except OSError as error:
        raise BadInput(f"cannot read {settings.baseline}: {error.strerror}", "write it with --write-baseline") from None


def _print(result: "Audit", fixed: "list[FixedFile]", *, as_json: bool, as_sarif: bool) -> None:
    if as_json:
        document = {
            # without what only SARIF needs
            "findings": [{k: v for k, v in asdict(one).items() if k != "last_text"} for one in result.findings],
            "unread": [asdict(unread) for unread in result.unread],
            "files": result.files,
            "lines": result.lines,
            "suppressed": result.suppressed,
            "remarks": [asdict(remark) for remark in result.remarks],
            "fixed": [asdict(one) for file in fixed for one in file.fixes],
        }
        click.echo(json.dumps(document, indent=2))
    elif as_sarif:
        from importlib.metadata import version

        from forbear_audit.sarif import as_sarif as convert

        print_fixes(fixed, err=True)
        click.echo(json.dumps(convert(result, version("forbear")), indent=2))
    else:
        print_fixes(fixed, err=False)
        for finding in result.findings:
            print_finding(finding)
        for unread in result.unread:
            warn(printable(str(unread)))
        for remark in result.remarks:
            warn(printable(str(remark)))
        print_summary(result)
