"""`forbear cloud`: serve the embedded cloud in the foreground."""

import click

from forbear.cli.kit.output import EXIT_CODES, BadInput, tell


@click.command(epilog=EXIT_CODES)
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port to listen on; 0 for a free one."
)
@click.option("--bucket", "buckets", multiple=True, metavar="NAME", help="Create a bucket; may be repeated.")
@click.option(
    "--memory-limit",
    type=click.IntRange(1),
    default=1024,
    show_default=True,
    metavar="MIB",
    help="Store at most this many MiB; refuse more with 413.",
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Also serve requests for this host; may be repeated.",
)
@click.option("--faults", type=int, metavar="SEED", help="Fail some requests; the same ones for the same seed.")
def command(
    host: str,
    port: int,
    buckets: tuple[str, ...],
    memory_limit: int,
    allowed_hosts: tuple[str, ...],
    faults: int | None,
) -> None:
    """Serve an embedded Cloud Storage on this machine, until Ctrl-C.

    For tests only: it checks no credentials. Never expose it, not even through a proxy or a tunnel.

    It stores everything in memory, enforces preconditions, and records effects (GET /_cloud/effects). POST
    /_cloud/faults plans faults. The URL is printed to stdout.
    """
    from forbear_cloud.foreground import Refused, serve_in_foreground  # needs h11 and google-crc32c

    try:
        serve_in_foreground(
            host,
            port,
            buckets=buckets,
            memory_limit=memory_limit,
            allowed_hosts=allowed_hosts,
            faults=faults,
            tell=tell,
        )
    except Refused as error:
        raise BadInput(str(error), error.cure) from None
