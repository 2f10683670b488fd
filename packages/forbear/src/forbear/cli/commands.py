"""Find commands: our own in one table, those of other packages by the entry points `forbear.commands`.

A command is the object `command` in its module, a click command. An entry point of another package names that object;
its name is the command's. Entry points are read only for a name that the table lacks and for the help, since to look
for them costs more than to start.
"""

import importlib
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

import click

from forbear.cli.kit.output import BadInput, warn

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
"""Our commands, in the order of the help."""


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
        near = "".join(f"did you mean {known}? " for known in get_close_matches(name, names(), 1))
        raise BadInput(f"no such command: {name}", f"{near}the commands are {', '.join(names())}")
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
