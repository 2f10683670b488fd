"""The command line: it parses, calls the library and prints; every decision is made in the layers below.

This module knows how to start and what to say when it cannot; it must not import click, which may be missing.
"""

import sys


def main() -> None:
    """Run the command line on `sys.argv`; never returns."""
    try:
        from forbear.cli.app import app

        app(prog_name="forbear")
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print("error: the command line of forbear needs click, which is not installed", file=sys.stderr)
        print('hint: pip install "forbear[cli]"', file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # while still starting; once started, the app sees to it
        sys.exit(130)
