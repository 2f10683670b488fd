"""Runs the transfers of a command: opens the connections, watches, and ends with the exit code that tells."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NoReturn

import click

from forbear.cli.options import laid_over
from forbear.cli.output import BadInput, Problem, tell
from forbear.cli.transfers.ending import Ending
from forbear.cli.transfers.options import Given
from forbear.cli.transfers.reporter import UNREACHABLE, Reporter, of_count
from forbear.cli.transfers.statistics import Progress
from forbear.cli.transfers.watch import Planning, Watch, watching
from forbear.services import cloud_storage
from forbear.transfer.errors import NoCredentials, TransferError
from forbear.transfer.items import STREAM, Summary
from forbear.transfer.progress import current_progress
from forbear.transfer.storage.client import CONNECTIONS, STALL_TIMEOUT, Settings, Storage
from forbear.transfer.storage.credentials import Credentials
from forbear.transfer.wire.response import NotConnected

_FILES_EACH = 4
"""A connection, the file or part, its folder, and a state or lock."""
_FILES_BESIDES = 256

Transfer = Callable[[Storage, Watch], Awaitable[Summary]]

_NO_CREDENTIALS = (
    "log in with `gcloud auth application-default login`, name a key file with --credentials, or go without, for "
    "public data, with --anonymous; --embedded needs none"
)


def run_transfers(
    ctx: click.Context,
    given: Given,
    places: Sequence[str],
    check: Callable[[], object],
    transfer: Transfer,
    *,
    dry_run: bool = False,
) -> None:
    """Run `transfer`, which is between `places`, with a Storage and a listener; never returns.

    `check` comes before: it raises ValueError where what was asked for makes no sense.
    """
    try:
        check()
    except ValueError as error:
        raise BadInput(str(error)) from None
    streams = given["as_json"] or dry_run or STREAM in places
    reporter = Reporter(as_json=given["as_json"], quiet=given["quiet"], dry_run=dry_run)
    ending = Ending()
    with _endpoint(given, places) as endpoint:
        settings = _settings(given, endpoint)
        _allow_files(settings.connections)
        with watching(reporter, quiet=given["quiet"], streams=streams) as watch:
            try:
                with ending:
                    summary = asyncio.run(_run(settings, watch, transfer, ending))
            except (KeyboardInterrupt, asyncio.CancelledError):
                summary = None
            except NoCredentials as error:
                raise Problem(str(error), _NO_CREDENTIALS) from None
            except NotConnected as error:
                raise Problem(str(error), UNREACHABLE) from None
            except TransferError as error:
                raise Problem(str(error), error.hint) from None
            except ValueError as error:
                raise BadInput(str(error)) from None
        if summary is not None:
            reporter.summary(summary)
    if summary is None:
        tell(_interrupted(watch.progress, continues=not given["embedded"] and STREAM not in places))
        code = 128 + ending.signum
        if STREAM in places:
            _leave(code)
        ctx.exit(code)
    ctx.exit(0 if summary.ok else 1)


def _leave(code: int) -> NoReturn:
    """End at once: a thread may still wait for stdin or stdout, and what Python does at its end would wait for that."""
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def _endpoint(given: Given, places: Sequence[str]) -> AbstractContextManager[str | None]:
    if not given["embedded"]:
        return nullcontext(given["endpoint"])
    from forbear.cli.transfers.embedded import embedded  # needs h11

    return embedded(places, given["storm"], quiet=given["quiet"])


async def _run(settings: Settings, watch: Watch, transfer: Transfer, ending: Ending) -> Summary:
    ending.cancels(asyncio.current_task())
    current_progress.set(Planning(watch))
    async with settings.storage() as storage:
        return await transfer(storage, watch)


def _settings(given: Given, endpoint: str | None) -> Settings:
    policy = cloud_storage.policy
    limits, backoff = laid_over(policy.limits, policy.backoff, given)
    credentials = None
    if given["anonymous"] or given["credentials"] or given["impersonate"]:
        file = given["credentials"]
        credentials = Credentials(None if file is None else str(file), given["impersonate"], given["anonymous"])
    return Settings(
        endpoint=endpoint,
        credentials=credentials,
        policy=policy.with_limits(limits).with_backoff(backoff),
        connections=max(given["parallel"] or 0, CONNECTIONS),
        stall_timeout=given["stall_timeout"] or STALL_TIMEOUT,
        user_project=given["user_project"],
    )


def _allow_files(connections: int) -> None:
    """Raise the soft limit of open files to what the transfers may need, as far as the hard limit lets us."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_BESIDES + _FILES_EACH * connections
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    with suppress(OSError, ValueError):  # the transfers go on with fewer at a time
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )


def _interrupted(progress: Progress, *, continues: bool) -> str:
    done = f"interrupted: {progress.done} of {of_count(progress.items, 'file')} done"
    return f"{done}; run it again: it continues where it stopped" if continues else done
