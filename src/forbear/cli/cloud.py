"""`forbear cloud`: serve the embedded cloud in the foreground."""

import os

import click

from forbear.cli.kit.output import EXIT_CODES, BadInput, tell, warn


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
@click.option("--storm", type=int, hidden=True)
def command(
    host: str,
    port: int,
    buckets: tuple[str, ...],
    memory_limit: int,
    allowed_hosts: tuple[str, ...],
    faults: int | None,
    storm: int | None,
) -> None:
    """Serve an embedded Cloud Storage on this machine, until Ctrl-C.

    For tests only: it checks no credentials. Never expose it, not even through a proxy or a tunnel.

    It stores everything in memory, enforces preconditions, and records effects (GET /_cloud/effects). POST
    /_cloud/faults plans faults. The URL is printed to stdout.
    """
    from forbear.testing import cloud  # needs h11 and google-crc32c
    from forbear.testing.cloud.http.hosts import is_loopback
    from forbear.testing.cloud.http.messages import ApiError
    from forbear.testing.cloud.server import serve
    from forbear.testing.cloud.storage.writable import check_bucket_name

    if not is_loopback(host):
        rule = "a loopback address: the embedded cloud is for tests on this machine"
        raise BadInput(f"`--host` must be {rule}, got {host!r}", "use 127.0.0.1 or ::1")
    if storm is not None:
        warn("`--storm` is deprecated: use `--faults`")
        faults = storm if faults is None else faults
    for bucket in buckets:
        try:
            check_bucket_name(bucket)
        except ApiError:
            rule = "3 to 222 lower-case letters, digits, dots, dashes and underscores"
            raise BadInput(f"`--bucket` must be the name of a bucket, got {bucket!r}", f"use {rule}") from None

    def announce(running: cloud.Cloud) -> None:
        for bucket in dict.fromkeys(buckets):
            running.store.create_bucket(bucket)
        if faults is not None:
            running.fault(cloud.random_faults(faults))
        click.echo(running.url)
        tell(f"point clients at it: export STORAGE_EMULATOR_HOST={running.url}")
        tell("for tests only: it checks no credentials; never expose it")
        tell("stop it with Ctrl-C")

    try:
        serve(host, port, memory_limit=memory_limit * 1024**2, allowed_hosts=allowed_hosts, on_ready=announce)
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "the host is not known"
        cure = "choose another --port, or 0 for a free one" if port else "choose another --host"
        raise BadInput(f"cannot listen on {host}, port {port}: {reason}", cure) from None
