"""Serve a cloud in the foreground, for `forbear cloud` and `python -m forbear_cloud`."""

import os
from collections.abc import Callable, Sequence

from forbear_cloud.faults.plan import random_faults
from forbear_cloud.http.hosts import is_loopback
from forbear_cloud.http.messages import ApiError
from forbear_cloud.server import Cloud, serve
from forbear_cloud.storage.writable import check_bucket_name


class Refused(Exception):
    """An option that cannot be used, or an address that is taken: what is wrong, and the cure."""

    def __init__(self, problem: str, cure: str) -> None:
        super().__init__(problem)
        self.cure = cure


def serve_in_foreground(
    host: str,
    port: int,
    *,
    buckets: Sequence[str],
    memory_limit: int,
    allowed_hosts: Sequence[str],
    faults: int | None,
    tell: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM; the URL goes to stdout, advice to `tell`. `memory_limit` is in MiB.

    `faults` is the seed of random faults, None for none.

    Raises:
        Refused: An option cannot be used, or the address is taken.
    """
    if not is_loopback(host):
        rule = "a loopback address: the embedded cloud is for tests on this machine"
        raise Refused(f"`--host` must be {rule}, got {host!r}", "use 127.0.0.1 or ::1")
    for bucket in buckets:
        try:
            check_bucket_name(bucket)
        except ApiError:
            rule = "3 to 222 lower-case letters, digits, dots, dashes and underscores"
            raise Refused(f"`--bucket` must be the name of a bucket, got {bucket!r}", f"use {rule}") from None

    def announce(running: Cloud) -> None:
        for bucket in dict.fromkeys(buckets):
            running.store.create_bucket(bucket)
        if faults is not None:
            running.fault(random_faults(faults))
        print(running.url, flush=True)
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
        raise Refused(f"cannot listen on {host}, port {port}: {reason}", cure) from None
