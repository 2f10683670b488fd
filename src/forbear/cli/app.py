"""The group of commands. A command's module is imported only when it is called."""

import importlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from forbear.cli.kit.output import EXIT_CODES, BadInput, Problem, leave_full_pipes, report

COMMANDS = {
    "run": "Run a program, and run it again if it fails.",
    "curl": "Send an HTTP request, and send it again where that is safe.",
    "explain": "Say whether a request may be repeated, and why.",
    "schedule": "Show when a policy retries.",
    "simulate": "Show what a fleet of clients does to a service, by a policy.",
    "export": "Write a policy as configuration or code for another system.",
    "cp": "Copy files to and from Cloud Storage; interrupted copies resume.",
    "rsync": "Make one folder hold what another holds, by copying the differences.",
    "ls": "List objects and folders in Cloud Storage.",
    "du": "Show how much folders in Cloud Storage hold.",
    "stat": "Show the metadata of objects.",
    "cat": "Write objects, or a range of their bytes, to stdout.",
    "hash": "Print the CRC32C and MD5 of files and objects.",
    "check": "Compare two folders by the CRC32C of what they hold.",
    "mv": "Move objects within Cloud Storage.",
    "rm": "Delete objects, each in the version that was listed.",
    "audit": "Find the retries in Python code that are unsafe or unbounded.",
    "cloud": "Serve an embedded Cloud Storage on this machine.",
    "demo": "Show what retries do to data when requests and responses get lost.",
}
"""The commands and their summaries. A command is the object `command` in the module of its name."""

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
    """The click group of all commands.

    It reports every expected error in one or two lines and exits with the error's code.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command `cmd_name`; raise BadInput if there is none of that name.

        While a shell completes words, return None instead, as click expects.
        """
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:
                return None
            raise BadInput(f"no such command: {cmd_name}", f"the commands are {', '.join(COMMANDS)}")
        command: click.Command = importlib.import_module(f"forbear.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands and their summaries into the help, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command of a context; its errors get a context, which some of click have not."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            name = ctx.invoked_subcommand
            command = None if name is None else self.get_command(ctx, name)
            if error.ctx is None and command is not None:
                error.ctx = click.Context(command, parent=ctx, info_name=name)
            raise

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
