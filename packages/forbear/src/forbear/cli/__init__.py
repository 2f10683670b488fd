"""The command line: it parses arguments, calls the library and prints.

This module starts it. It does not import click at the top, because click may be missing.
"""

import gc
import os
import sys

_YOUNG = 50_000
"""The objects after which the garbage collector looks for cycles: Python's 700 are made 80 times while it starts."""


def _leave_current_folder() -> None:
    """Take the folder that `python -m` and `-c` put first off the path: the click.py of others must not be run."""
    if sys.flags.safe_path or not sys.path:
        return
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:  # the folder was deleted
        here = ""
    if sys.path[0] in ("", here) and here != home:  # forbear may be there without being installed
        del sys.path[0]


def main() -> None:
    """Run the command line with `sys.argv`, and exit; without click, exit with 2 and a hint how to install it."""
    gc.set_threshold(_YOUNG)
    _leave_current_folder()
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
    finally:
        gc.freeze()  # the end of Python would search all modules for cycles, which takes as long as a small copy
