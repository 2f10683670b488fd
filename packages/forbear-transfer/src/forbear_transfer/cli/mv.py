"""`forbear mv`: move objects."""

from functools import partial
from typing import Any

import click

from forbear.cli.kit.options import GroupedCommand
from forbear.cli.kit.output import EXIT_CODES
from forbear_transfer.cli.shared.connection import completed, connection_options
from forbear_transfer.cli.shared.options import keys_of, literal_of

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear mv gs://my-bucket/report.csv gs://my-bucket/archive/
  forbear mv -r gs://my-bucket/2025 gs://old-bucket/
  forbear mv -n 'gs://my-bucket/*.log' gs://my-bucket/logs/"""


@click.command(
    cls=GroupedCommand,
    params=connection_options(
        "literal", "pattern", "parallel", "exclude", "include", "verbose", "encryption_key", "kms_key", reads=True
    ),
    epilog=_EPILOG,
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.argument("target")
@click.option("-r", "--recursive", is_flag=True, help="Move folders with everything in them.")
@click.option("-n", "--no-clobber", is_flag=True, help="Skip objects that exist at TARGET.")
@click.option("--dry-run", is_flag=True, help="Print what would be moved, and change nothing.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    sources: tuple[str, ...],
    target: str,
    recursive: bool,
    no_clobber: bool,
    dry_run: bool,
    **options: Any,
) -> None:
    """Move objects within Cloud Storage, also to another bucket.

    SOURCE and TARGET are gs:// addresses, and the targets get the names that `forbear cp` would give them. The service
    copies each object; when the copy is verified, exactly the version that was copied is deleted. What other clients
    write to the source meanwhile stays. The same command, run again after a failure, moves the rest.
    """
    complete = completed(options)
    from forbear_transfer.cli.shared.run import run_transfers  # needs httptools
    from forbear_transfer.commands.moving import prepare_mv

    prepare = partial(
        prepare_mv,
        sources,
        target,
        recursive=recursive,
        no_clobber=no_clobber,
        literal=literal_of(complete),
        dry_run=dry_run,
        exclude=complete["exclude"],
        include=complete["include"],
        parallel=complete["parallel"],
        **keys_of(complete),
    )
    run_transfers(ctx, complete, (*sources, target), prepare, dry_run=dry_run)
