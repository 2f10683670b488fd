"""The group of commands. A command's module is imported only when it is called."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from forbear.answers.errors import NoAnswer
from forbear.cli.commands import load, names, summaries
from forbear.cli.kit.output import EXIT_CODES, BadInput, Problem, leave_full_pipes, report

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
