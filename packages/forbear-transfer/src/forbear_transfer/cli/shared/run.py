"""The run of a transfer command: connections, live lines, signals, the embedded cloud, and the exit code."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType
from typing import NoReturn, TextIO, TypeVar

import click

from forbear import Policy
from forbear.adapters import current_runtime
from forbear.cli.kit.options import apply_options, open_shared_budget
from forbear.cli.kit.output import BadInput, EventPrinter, leave_full_pipes, redirect_to_nowhere, tell
from forbear.services import cloud_storage
from forbear_transfer.cli.shared.options import TransferOptions, headers_of
from forbear_transfer.cli.shared.problems import check_manifest, check_stdout, convert_errors
from forbear_transfer.cli.shared.reporter import Reporter, format_bytes, format_count
from forbear_transfer.cli.shared.statistics import Statistics
from forbear_transfer.items import STREAM
from forbear_transfer.objects import Url, is_cloud
from forbear_transfer.runs import Work
from forbear_transfer.storage.client import CONNECTIONS, Settings, Storage
from forbear_transfer.storage.credentials import Credentials

_T = TypeVar("_T")

_SERVICE = "cloud_storage"
_FRAMES = 8
"""Updates of the live lines a second."""
_FILES_EACH = 4
"""The number of open files for each transfer: a connection, the file or part, its folder, and a state or lock."""
_FILES_BESIDES = 256
_SHOWN = 10
_WORK = 3
_LARGEST_BODY = 256 * 1024 * 1024
_MOST_STORED = 8 * 1024**3


def run_transfers(
    ctx: click.Context,
    options: TransferOptions,
    names: Sequence[str],
    prepare: Callable[..., Work],
    *,
    check: Callable[[], None] | None = None,
    dry_run: bool = False,
    deletes: bool = False,
) -> NoReturn:
    """Run, over an open Storage, what `prepare` returns for `on_event`, a listener of all events, and exit.

    The exit code is 0, or 1 if an item failed, or 128 + n after signal n. With `--exit-code`, it is 3 after a dry run
    that found something to do. `check` raises BadInput for a wrong source, once all options are checked. `names` are
    the sources and the target. A ValueError of `prepare` or of the work becomes BadInput; other expected errors become
    Problem. `deletes` says that the command only deletes.
    """
    if options["as_json"] or dry_run:
        check_stdout()
    streams = options["as_json"] or dry_run or STREAM in names
    statistics = Statistics(current_runtime().monotonic)  # the clock that waits use
    reporter = Reporter(
        statistics,
        as_json=options["as_json"],
        quiet=options["quiet"],
        verbose=options["verbose"],
        dry_run=dry_run,
        deletes=deletes,
    )
    with convert_errors():
        work = prepare(on_event=reporter)
    cancelled = [signal.SIGINT]
    embedded = _run_embedded(names, options["faults"], quiet=options["quiet"]) if options["embedded"] else None
    with embedded or nullcontext(options["endpoint"]) as endpoint:
        settings = settings_of(options, endpoint)
        if check is not None:
            check()
        check_manifest(options["manifest"])
        _allow_files(settings.connections)
        with _show_live_lines(reporter, quiet=options["quiet"], streams=streams):
            try:
                with convert_errors():
                    summary = asyncio.run(run_work(settings, work, cancelled))
            except (KeyboardInterrupt, asyncio.CancelledError):
                summary = None
        if summary is not None:
            reporter.summary(summary)
    if summary is None:
        continues = not options["embedded"] and STREAM not in names
        if dry_run:
            tell("interrupted")
        else:
            done = f"interrupted: {statistics.done} of {format_count(statistics.items, 'file')} done"
            tell(f"{done}; run it again: it continues where it stopped" if continues else done)
        code = 128 + cancelled[-1]
        if STREAM in names:
            _leave(code)
        ctx.exit(code)
    ctx.exit(_WORK if summary.ok and options["exit_code"] and reporter.work else int(not summary.ok))


async def run_work(settings: Settings, work: Callable[[Storage], Awaitable[_T]], cancelled: list[signal.Signals]) -> _T:
    """Return the result of `work` over an open Storage; `cancelled` gets each signal that has cancelled it."""
    with _cancel_by_signals(cancelled):
        async with settings.storage() as storage:
            return await work(storage)


@contextmanager
def _cancel_by_signals(cancelled: list[signal.Signals]) -> Generator[None]:
    """Cancel this task when SIGINT, SIGTERM or SIGHUP arrives, and append it to `cancelled`; the same again kills.

    What is being printed then to a reader that does not read is dropped: it would block the event loop for ever. A
    signal that is ignored, as by nohup, or has a handler of the caller keeps that. Outside the main thread and on
    Windows, the block runs without this.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def cancel(number: int, _: FrameType | None) -> None:  # no callback of the loop, which may be blocked by a write
        signum = signal.Signals(number)
        cancelled.append(signum)
        signal.signal(signum, before[signum])
        for descriptor in terminals:
            if not os.isatty(descriptor):  # it was closed: writing to it would fail and hide the exit code
                redirect_to_nowhere(descriptor)
        leave_full_pipes()
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)

    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return
    before = {
        signum: signal.default_int_handler if signum is signal.SIGINT else signal.SIG_DFL
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(signum) is signal.SIG_DFL or _is_of_runner(signum)
    }
    handlers = {signum: signal.signal(signum, cancel) for signum in before}
    try:
        yield
    finally:
        for signum, handler in handlers.items():
            signal.signal(signum, handler)


def _is_of_runner(signum: signal.Signals) -> bool:
    """Return whether asyncio.run handles a signal, as it does with SIGINT, unless that is ignored."""
    return isinstance(getattr(getattr(signal.getsignal(signum), "func", None), "__self__", None), asyncio.Runner)


def _leave(code: int) -> NoReturn:
    """Exit at once with `code`: a normal exit of Python would wait for a thread that waits for stdin or stdout."""
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


@contextmanager
def _show_live_lines(reporter: Reporter, *, quiet: bool, streams: bool) -> Generator[None]:
    """Show live lines if stderr is a terminal that no stream disturbs; otherwise the reporter reports a standstill."""
    if quiet:
        yield
        return
    reporter.reports_standstill = True
    if _is_terminal(sys.stderr) and not (streams and (_is_terminal(sys.stdin) or _is_terminal(sys.stdout))):
        from rich.console import Console
        from rich.live import Live

        from forbear_transfer.cli.shared.screen import Screen

        console = Console(stderr=True, highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")
        if console.is_terminal and not console.is_dumb_terminal and console.encoding.startswith("utf"):
            reporter.reports_standstill = False
            screen = Screen(reporter.statistics)
            with Live(screen, console=console, refresh_per_second=_FRAMES, transient=True, redirect_stdout=False):
                yield
            return
    yield


def _is_terminal(file: TextIO | None) -> bool:
    return file is not None and file.isatty()


def _find_policy(name: str) -> Policy:
    """Return the policy called `name`; of a policy of another service take the limits and the backoff, and say so."""
    if name == _SERVICE:
        return cloud_storage.policy
    from forbear.cli.kit.profiles import find_named_policy  # loads all services

    policy = find_named_policy(name, _SERVICE)
    if policy.service is not None and policy.service.name == _SERVICE:
        return policy
    tell(f"{name} sets limits and waits; what is retried follows the rules of {_SERVICE}")
    return cloud_storage.policy.with_limits(policy.limits).with_backoff(policy.backoff)


def settings_of(options: TransferOptions, endpoint: str | None) -> Settings:
    """Return the Settings of a Storage by the options of a command; BadInput if they contradict each other."""
    policy = _find_policy(options["profile"])
    limits, backoff = apply_options(policy.limits, policy.backoff, options)
    budget = open_shared_budget(options["shared_budget"], None if options["quiet"] else EventPrinter(None))
    credentials = None
    if options["anonymous"] or options["credentials"] or options["impersonate"]:
        file = options["credentials"]
        credentials = Credentials(None if file is None else str(file), options["impersonate"], options["anonymous"])
    return Settings(
        endpoint=endpoint,
        credentials=credentials,
        policy=policy.with_limits(limits).with_backoff(backoff).with_budget(budget),
        connections=max(options["parallel"] or 0, CONNECTIONS),
        stall_timeout=options["stall_timeout"],
        user_project=options["user_project"],
        headers=headers_of(options),
        limit_rate=options["limit_rate"],
    )


def _allow_files(connections: int) -> None:
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _FILES_BESIDES + _FILES_EACH * connections
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    with suppress(OSError, ValueError):  # fewer transfers run at a time then
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else min(needed, hard), hard)
        )


@contextmanager
def _run_embedded(names: Sequence[str], faults: int | None, *, quiet: bool) -> Generator[str]:
    """Run an embedded cloud with the buckets of the gs:// addresses in `names`; yield its URL.

    At the end, unless `quiet`, print to stderr what it contained, and how many requests met a fault. `faults` is the
    seed of random faults, None for none. BadInput if `names` has no such address.
    """
    import forbear_cloud as cloud  # needs h11

    buckets = sorted({_name_bucket(name) for name in names if is_cloud(name)})
    if not buckets:
        raise BadInput("`--embedded` needs a bucket to create", "name one, such as gs://demo/")
    with cloud.Cloud(body_limit=_LARGEST_BODY, memory_limit=_MOST_STORED) as running:
        for bucket in buckets:
            running.store.create_bucket(bucket)
        if faults is not None:
            running.fault(cloud.random_faults(faults))
        yield running.url
        if quiet:
            return
        for bucket in buckets:
            sizes = {item.name: len(item.content) for item in running.store.bucket(bucket).versions()}
            _describe(f"gs://{bucket}", sizes)
        if faults is not None:
            hit = sum(request.fault is not None for request in running.requests)
            tell(f"{hit} of {format_count(running.requests.total, 'request')} met a fault")


def _name_bucket(name: str) -> str:
    try:
        return Url.parse(name).bucket
    except ValueError as error:
        raise BadInput(str(error)) from None


def _describe(bucket: str, sizes: dict[str, int]) -> None:
    if not sizes:
        tell(f"{bucket} contained nothing: an embedded cloud is empty when it starts")
        return
    tell(f"{bucket} contained {format_count(len(sizes), 'object')}, {format_bytes(sum(sizes.values()))}:")
    for name in list(sizes)[:_SHOWN]:
        tell(f"  {name}  {format_bytes(sizes[name])}")
    if len(sizes) > _SHOWN:
        tell(f"  and {len(sizes) - _SHOWN} more")
