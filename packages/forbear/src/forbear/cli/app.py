"""The group of commands, and where they come from; a command's module is imported only when it is called.

Our own stand in one table, those of other packages come by the entry points `forbear.commands`. A command is the object
`command` in its module, a click command. An entry point names that object; its name is the command's. Entry points are
read only for a name that the table lacks and for the help, since to look for them costs more than to start.
"""

import importlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from forbear.answers.errors import NoAnswer
from forbear.cli.kit.output import EXIT_CODES, BadInput, Problem, leave_full_pipes, report, warn
from forbear.core.check import find_similar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_GROUP = "forbear.commands"


class Source(NamedTuple):
    """A command of ours: its summary and its module, whose package is that of its distribution."""

    summary: str
    module: str


COMMANDS = {
    "run": Source("Run a program, and run it again if it fails.", "forbear.cli.run"),
    "curl": Source("Send an HTTP request, and send it again where that is safe.", "forbear_transfer.cli.curl"),
    "explain": Source("Say whether a request may be repeated, and why.", "forbear.cli.explain"),
    "doctor": Source("Say which clients repeat by themselves, and what makes them safe.", "forbear.cli.doctor"),
    "schedule": Source("Show when a policy retries.", "forbear.cli.schedule"),
    "simulate": Source("Show what a fleet of clients does to a service, by a policy.", "forbear_simulate.cli"),
    "export": Source("Write a policy as configuration or code for another system.", "forbear.cli.export"),
    "cp": Source("Copy files to and from Cloud Storage; interrupted copies resume.", "forbear_transfer.cli.cp"),
    "rsync": Source(
        "Make one folder hold what another holds, by copying the differences.", "forbear_transfer.cli.rsync"
    ),
    "ls": Source("List objects and folders in Cloud Storage.", "forbear_transfer.cli.ls"),
    "du": Source("Show how much folders in Cloud Storage hold.", "forbear_transfer.cli.du"),
    "stat": Source("Show the metadata of objects.", "forbear_transfer.cli.stat"),
    "cat": Source("Write objects, or a range of their bytes, to stdout.", "forbear_transfer.cli.cat"),
    "hash": Source("Print the CRC32C and MD5 of files and objects.", "forbear_transfer.cli.hash"),
    "check": Source("Compare two folders by the CRC32C of what they hold.", "forbear_transfer.cli.check"),
    "mv": Source("Move objects within Cloud Storage.", "forbear_transfer.cli.mv"),
    "rm": Source("Delete objects, each in the version that was listed.", "forbear_transfer.cli.rm"),
    "audit": Source("Find the retries in Python code that are unsafe or unbounded.", "forbear_audit.cli"),
    "cloud": Source("Serve an embedded Cloud Storage on this machine.", "forbear_cloud.command"),
}


def names() -> list[str]:
    """Return the names of all commands: ours, then those of other packages by name."""
    return [*COMMANDS, *sorted(_foreign())]


def summaries() -> list[tuple[str, str]]:
    """Return all commands with their summaries; only commands of other packages are imported for it."""
    foreign = [(name, _summary(entry)) for name, entry in sorted(_foreign().items())]
    return [*((name, source.summary) for name, source in COMMANDS.items()), *foreign]


def load(name: str) -> click.Command:
    """Import a command; raise BadInput if no package has it, or if it is not installed or cannot be imported."""
    source = COMMANDS.get(name)
    if source is not None:
        return _load_own(name, source)
    entry = _foreign().get(name)
    if entry is None:
        near = find_similar(name, names())
        cure = "" if near is None else f"did you mean {near}? "
        cure = "the storm is an option of pytest: pytest --forbear-storm; " if name == "storm" else cure
        raise BadInput(f"no such command: {name}", f"{cure}the commands are {', '.join(names())}")
    try:
        return _load_foreign(entry)
    except Exception as error:
        raise BadInput(
            f"`forbear {name}` cannot be loaded: {_reason(error)}",
            f"update or remove the package that has {entry.value}",
        ) from error


def _load_own(name: str, source: Source) -> click.Command:
    root = source.module.partition(".")[0]
    try:
        command: click.Command = importlib.import_module(source.module).command
    except ModuleNotFoundError as error:
        if error.name != root:  # a package that the command needs
            raise
        distribution, extra = root.replace("_", "-"), root.removeprefix("forbear_")
        raise BadInput(
            f"`forbear {name}` needs {distribution}, which is not installed", f'pip install "forbear[{extra}]"'
        ) from None
    return command


def _foreign() -> dict[str, "EntryPoint"]:
    """Return the entry points of other packages by name; ours win, and among equal names the first one found."""
    from importlib.metadata import entry_points

    found = dict[str, "EntryPoint"]()
    for entry in entry_points(group=_GROUP):
        if entry.name not in COMMANDS:
            found.setdefault(entry.name, entry)
    return found


def _load_foreign(entry: "EntryPoint") -> click.Command:
    command = entry.load()
    if not isinstance(command, click.Command):
        raise TypeError(f"{entry.value} must be a click command, got {type(command).__name__}")
    return command


def _summary(entry: "EntryPoint") -> str:
    try:
        return _load_foreign(entry).get_short_help_str(limit=80)
    except Exception as error:
        warn(f"`forbear {entry.name}` cannot be loaded: {_reason(error)}")
        return f"(cannot be loaded: {entry.value})"


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


EXTRAS = {
    "google": "transfer",
    "google_crc32c": "cloud",
    "h11": "cloud",
    "httptools": "transfer",
    "httpx": "httpx",
    "libcst": "audit",
    "matplotlib": "plot",
    "numpy": "simulate",
    "requests": "transfer",
    "rich": "cli",
}
"""The extra of forbear that installs an optional package, by the name of the package to import."""

_EPILOG = f"{EXIT_CODES} `run` passes on those of its program, `curl` has those of curl."


class App(click.Group):
    """The click group of all commands; it reports every expected error and exits with the error's code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the help."""
        return names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; raise BadInput if it cannot be had, or return None while words are completed."""
        try:
            return load(cmd_name)
        except BadInput:
            if ctx.resilient_parsing:
                return None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands and their summaries into the help."""
        with formatter.section("Commands"):
            formatter.write_dl(summaries())

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command of a context; `NoAnswer`, of the library, becomes BadInput with the command's options."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if error.ctx is None:
                error.ctx = self._context_below(ctx)
            raise
        except NoAnswer as error:
            with self._context_below(ctx) or ctx:
                raise BadInput(error.message, error.cure) from None

    def _context_below(self, ctx: click.Context) -> click.Context | None:
        """Return a context of the command that is invoked, None if there is none."""
        name = ctx.invoked_subcommand
        command = None if name is None else self.get_command(ctx, name)
        return None if command is None else click.Context(command, parent=ctx, info_name=name)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command, print its error if any, and exit; without `standalone_mode`, return or raise as click does."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        if sys.stdout is None:  # closed by the caller, which wants no data
            sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - for the rest of the program
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")  # as on stderr: arguments may be in any encoding
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
            sys.exit(code)
        except click.exceptions.NoArgsIsHelpError as error:  # a group without a command: its message is the help
            click.echo(error.format_message(), err=True)
            sys.exit(error.exit_code)
        except click.ClickException as error:
            problem = error if isinstance(error, Problem) else usage_error(error)
            problem.show()
            sys.exit(problem.exit_code)
        except click.Abort:  # Ctrl-C
            leave_full_pipes()  # or Python would wait at exit until somebody reads them
            sys.exit(130)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in EXTRAS:
                raise
            report(f"this needs {package}, which is not installed", f'pip install "forbear[{EXTRAS[package]}]"')
            sys.exit(2)
        except OSError as error:
            if not isinstance(error, BrokenPipeError):  # a broken pipe: the reader needs no more data
                report(": ".join(filter(None, (error.strerror or str(error), error.filename))))
            sys.stdout = None  # or Python would try to flush it again at exit
            sys.exit(1)


def usage_error(error: click.ClickException) -> BadInput:
    """Convert an error of click into a BadInput, with a hint: similar names, else the command's help if it is known."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"see `{ctx.command_path} --help`" if ctx is not None else None
    message = re.sub(r"(?<=value for )'(--[\w-]+)'", r"`\1`", error.format_message())  # in quotes it may be redacted
    close = getattr(error, "possibilities", None)
    if isinstance(error, click.NoSuchOption) and ctx is not None:
        spelled = {key: text for each in ctx.command.params for key, text in getattr(each, "spelled", {}).items()}
        key = error.option_name.removeprefix("--")
        if key in spelled:  # an option of its own in other commands
            message, hint, close = error.message, f"write {spelled[key]}", None
    if close:
        message = error.message
        hint = "did you mean " + " or ".join(f"`{name}`" for name in close) + "?"
    return BadInput(message[:1].lower() + message[1:].rstrip("."), hint)


@click.command(
    cls=App, epilog=_EPILOG, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="forbear", message="%(prog)s %(version)s")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Retries that know what is safe to repeat, how long to hold back and when to stop."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)
