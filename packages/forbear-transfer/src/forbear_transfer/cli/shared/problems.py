"""The errors of transfers as errors of the command line, with hints that name its options."""

from collections.abc import Generator
from contextlib import contextmanager

import click

from forbear import report
from forbear.cli.kit.output import BadInput, Problem
from forbear_transfer.cli.shared.reporter import UNREACHABLE, name_options, reader_is_gone
from forbear_transfer.errors import NoCredentials, TransferError
from forbear_transfer.wire.response import NotConnected

_NO_CREDENTIALS = (
    "log in with `gcloud auth application-default login`, name a key file with --credentials, or go without, for "
    "public data, with --anonymous"
)
_EMBEDDED = "; --embedded needs none"


@contextmanager
def convert_errors() -> Generator[None]:
    """Raise BadInput for a ValueError in the block, and Problem with the right hint for errors of transfers.

    If stdout cannot be written because its reader has closed the pipe, raise BrokenPipeError.
    """
    try:
        yield
    except NoCredentials as error:
        context = click.get_current_context(silent=True)
        embedded = context is not None and "embedded" in context.params
        raise Problem(str(error), f"{_NO_CREDENTIALS}{_EMBEDDED if embedded else ''}") from None
    except NotConnected as error:
        raise Problem(_describe(error), UNREACHABLE if error.hint == NotConnected.hint else error.hint) from None
    except TransferError as error:
        if isinstance(error.__cause__, BrokenPipeError) and reader_is_gone():
            raise error.__cause__ from None
        raise Problem(_describe(error), None if error.hint is None else name_options(error.hint)) from None
    except ValueError as error:
        rule, _, cure = str(error).partition("; ")
        raise BadInput(rule, cure or None) from None


def _describe(error: Exception) -> str:
    tried = report(error)
    return str(error) if tried is None or tried.count < 2 else f"{error}; {tried.note.partition(': ')[2]}"
