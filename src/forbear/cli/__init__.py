"""The command line: it parses arguments, calls the library and prints.

This module starts it. It does not import click at the top, because click may be missing.
"""

import sys


def main() -> None:
    """Run the command line with `sys.argv`, and exit; without click, exit with 2 and a hint how to install it."""
    try:
        from forbear.cli.app import app

        app(prog_name="forbear")
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print("error: the command line of forbear needs click, which is not installed", file=sys.stderr)
        print('hint: pip install "forbear[cli]"', file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # while starting; later the app handles it
        sys.exit(130)
