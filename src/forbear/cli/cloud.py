"""`forbear cloud`: the embedded cloud in the foreground. What it serves is not known here."""

import os

import click

from forbear.cli.output import EXIT_CODES, BadInput, tell


@click.command(epilog=EXIT_CODES)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port to listen on; 0 for a free one."
)
@click.option("--bucket", "buckets", multiple=True, metavar="NAME", help="Create a bucket; may be given repeatedly.")
@click.option("--storm", type=int, metavar="SEED", help="Fail some requests; the same ones for the same seed.")
def command(host: str, port: int, buckets: tuple[str, ...], storm: int | None) -> None:
    """Serve an embedded Cloud Storage on this machine, until Ctrl-C.

    It keeps everything in memory, enforces preconditions, and counts effects (GET /_cloud/effects). Faults can be
    planned (POST /_cloud/faults). Its URL goes to stdout.
    """
    from forbear.testing import cloud  # needs h11 and google-crc32c
    from forbear.testing.cloud.api.buckets import check_bucket_name
    from forbear.testing.cloud.errors import ApiError
    from forbear.testing.cloud.serve import serve

    for bucket in buckets:
        try:
            check_bucket_name(bucket)
        except ApiError:
            rule = "3 to 222 lower-case letters, digits, dots, dashes and underscores"
            raise BadInput(f"`--bucket` must be the name of a bucket, got {bucket!r}", f"use {rule}") from None

    def announce(running: cloud.Cloud) -> None:
        for bucket in dict.fromkeys(buckets):
            running.store.create_bucket(bucket)
        if storm is not None:
            running.fault(cloud.storm(storm))
        click.echo(running.url)
        tell(f"point clients at it: export STORAGE_EMULATOR_HOST={running.url}")
        tell("stop it with Ctrl-C")

    try:
        serve(host, port, on_ready=announce)
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else "the host is not known"
        cure = "choose another --port, or 0 for a free one" if port else "choose another --host"
        raise BadInput(f"cannot listen on {host}, port {port}: {reason}", cure) from None
