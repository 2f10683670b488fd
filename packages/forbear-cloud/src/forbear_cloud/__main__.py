"""Serve the embedded cloud by `python -m forbear_cloud`, which needs nothing of forbear."""

import argparse
import sys

from forbear_cloud.foreground import Refused, serve_in_foreground


def _tell(message: str) -> None:
    print(message, file=sys.stderr)


def main() -> None:
    """Read the options, and serve until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m forbear_cloud",
        description="Serve an embedded Cloud Storage on this machine. For tests only: it checks no credentials.",
        allow_abbrev=False,
    )
    parser.add_argument("--host", default="127.0.0.1", help="loopback address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument(
        "--bucket", action="append", default=[], metavar="NAME", help="create a bucket; may be repeated"
    )
    parser.add_argument(
        "--memory-limit",
        type=int,
        default=1024,
        metavar="MIB",
        help="store at most this many MiB; refuse more with 413 (default: %(default)s)",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="also serve requests for this host; may be repeated",
    )
    parser.add_argument(
        "--faults", type=int, metavar="SEED", help="fail some requests; the same ones for the same seed"
    )
    options = parser.parse_args()
    if not 0 <= options.port <= 65535:
        parser.error(f"--port must be from 0 to 65535, got {options.port}")
    if options.memory_limit < 1:
        parser.error(f"--memory-limit must be at least 1, got {options.memory_limit}")
    try:
        serve_in_foreground(
            options.host,
            options.port,
            buckets=options.bucket,
            memory_limit=options.memory_limit,
            allowed_hosts=options.allow_host,
            faults=options.faults,
            tell=_tell,
        )
    except Refused as error:
        print(f"error: {error}\nhint: {error.cure}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
