"""`SharedBudget`: the budget that users hold."""

import atexit
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakValueDictionary

from forbear.core import check
from forbear.core.budget import TokenBucket, micro
from forbear.core.events import Event
from forbear.run import budget as local
from forbear.run import late_grant, listeners
from forbear.run.judges import check_notified
from forbear.shared_budget.client_link import ClientLink, check_client
from forbear.shared_budget.link import Address, SocketLink, parse_url
from forbear.shared_budget.process import SLICE, PendingGrant, ProcessShare
from forbear.shared_budget.script import LinkFailed, command, key_of, parse

if TYPE_CHECKING:
    from forbear.shared_budget.process import Link

_EXIT = 0.1
"""Seconds that a process which pays in at its end waits for the server, at most."""
_LONGEST_NAME = 200
_LARGEST = 1_000_000_000
"""The largest capacity in tokens; micro-tokens beyond it would lose digits on the server."""

_CURES = (
    (("WRONGPASS", "invalid username-password", "without any password"), "check the user and password in the URL"),
    (("NOAUTH", "Authentication required"), "put the password in the URL: redis://:PASSWORD@host"),
    (
        ("NOPERM", "no permissions"),
        "allow the user eval, evalsha, hmget, hset, pexpire and time, on the keys {fb:*}",
    ),
    (("unknown command", "unknown or unsupported"), "use a server that runs scripts (the command EVAL)"),
    (("DB index", "out of range"), "use a database that the server has, such as /0"),
    (("READONLY", "read only replica"), "use the address of the primary"),
    (("WRONGTYPE",), "the key of this name holds something else: choose another name"),
    (("OOM",), "the server has no memory left: allow it more, or evict with a policy of its own"),
    (("certificate",), "use the host's name in the certificate, and trust its authority, as with SSL_CERT_FILE"),
    (("not of the Redis protocol", "SSL", "wrong version number"), "check the port, and whether it expects TLS"),
    (("did not answer",), "check host and port, and that no firewall is between"),
    (("cannot reach", "refused", "closed the connection"), "check host and port, and that the server runs"),
)
"""The cures, by words of a failure; the first row that fits counts."""


class BudgetUnavailable(Exception):
    """The server of a shared budget cannot be used; the text says why, and what helps. Example: see `SharedBudget`."""


class SharedBudget(local.Budget):
    """A retry budget that all processes with the same server and `name` share: one token bucket in Redis or Valkey.

    Pass it as `budget=` wherever a Budget fits. `url_or_client` is a URL (redis://, rediss:// or unix://) or a sync
    client of redis-py or valkey-py. The client must not retry by itself; it may be that of a Sentinel or a cluster. The
    bucket has at most `capacity` tokens (default 100), and starts with a tenth of them. A success adds `deposit`
    (default 0.1), a retry takes one token. Each process should pass the same numbers.

    A success waits for nothing. A process keeps one token of its own, and hands in the rest, as far as it was earned in
    the last `window` seconds (default 5), with its next ask. A run waits at most 5 ms for the answer, and looks again
    when its backoff ends. If the server does not answer, no call fails: the process lives on its own token, and leaves
    the server alone for at least a second and at most four fifths of the `window`. `on_event` gets one BudgetDegraded
    then, and one BudgetRestored later; the listeners of the process get them, too. A forked child owns nothing of its
    parent.

    Credit is also paid in without an ask. A process that earns more than its own token pays in the rest of the last
    `window` every 30 to 90 seconds, and the first time within one `window`. While it finds the bucket less than nine
    tenths full, and after the server was away, it does so about once in a `window`. A process that ends pays in all
    that it has (`pay_in`).

    In any time, the fleet makes at most deposit * S + C + P + deposit * S' + F * C / 10 retries. S are its successes in
    that time and S' those of the `window` before it. C is the capacity and P the number of processes. F says how often
    the bucket was lost, or expired after an hour without a change. A retry counts when it is granted. On a failover or
    a restart from a snapshot, the retries that were granted but not kept come on top, at most C.

    Raises ValueError or TypeError for wrong arguments. `check()` finds out whether the server can be used.

    >>> budget = SharedBudget(f"unix://{valkey}", "payments", capacity=50)
    >>> budget.check()
    >>> policy = forbear.retry(OSError, budget=budget)
    >>> SharedBudget("unix:///no/such/socket", "payments").check()
    Traceback (most recent call last):
        ...
    forbear.budgets.BudgetUnavailable: ...
    """

    __slots__ = ("_address", "_arguments", "_client", "_forks", "_on_event", "_share", "name", "window")

    is_shared: ClassVar[bool] = True
    open_grant = late_grant.LateGrant

    def __init__(
        self,
        url_or_client: Any,
        name: str,
        *,
        capacity: float = 100,
        deposit: float = 0.1,
        window: float = 5,
        on_event: Callable[[Event], object] | None = None,
    ) -> None:
        super().__init__(TokenBucket(capacity, deposit))
        _check_name(name)
        if capacity < 1 or capacity > _LARGEST:
            raise ValueError(
                f"`capacity` must be from 1 (the cost of a retry) to {_LARGEST}, got {check.shown(capacity)}"
            )
        window = check.in_seconds(window)
        check.positive_seconds("window", window)
        if on_event is not None:
            check_notified("`on_event`", on_event)
        self.name = name
        self.window: float = window
        self._on_event = on_event
        self._arguments = url_or_client, name, capacity, deposit, window, on_event
        self._client: Any = None
        self._address: Address | None = None
        if isinstance(url_or_client, str):
            self._address = parse_url("url_or_client", url_or_client)
        else:
            check_client(url_or_client)
            self._client = url_or_client
        self._forks = local.forks[0]
        self._share = self._new_share()
        _open[id(self)] = self

    def check(self, timeout: float = 5) -> None:
        """Do nothing if the server can be used; else raise BudgetUnavailable, which says why, and what helps.

        It waits at most `timeout` seconds, and needs no credit. Call it when a program starts.
        """
        check.positive_seconds("timeout", timeout)
        share, link, until = self._find_share(), self._new_link(), time.monotonic() + timeout
        try:
            link.send(command(share.key, share.capacity, 0, 0), time.monotonic())
            while not (responses := link.receive()):
                left = until - time.monotonic()
                if left <= 0:
                    raise LinkFailed(f"the server did not answer within {timeout:g} s")
                link.wait(left)
            parse(responses[0])
        except LinkFailed as error:
            hint = next((cure for words, cure in _CURES if any(word in str(error) for word in words)), "check the URL")
            text = f"shared budget {self.name} cannot use {self._shown}: {error}; {hint}"
            raise BudgetUnavailable(text) from None
        finally:
            link.close()

    def ask(self) -> bool | PendingGrant:
        """Ask for a retry without waiting, for runs: return the answer, or the PendingGrant if it may come late."""
        return self._find_share().ask()

    def take(self) -> bool:
        """Return whether a retry is granted: by the own token, or by the server within 5 ms."""
        answer = self.ask()
        if isinstance(answer, PendingGrant):
            answer.wait(late_grant.LOOK)
            return answer.end()
        return answer

    async def atake(self) -> bool:
        """Do the same as `take`."""
        return self.take()

    def put(self, *, retried: bool) -> None:
        """Count a success; `retried` is not read."""
        if self._forks == local.forks[0]:
            self._share.put()
        else:
            self._find_share().put()

    def pay_in(self) -> None:
        """Pay in the credit of this process, and wait at most 5 ms for the server; without credit, send nothing.

        This happens at the normal end of a process. Call it where a process does not end so: at the end of a serverless
        function, or in a child of multiprocessing.
        """
        self._pay_in(late_grant.LOOK, last=False)

    def _pay_in(self, seconds: float, *, last: bool) -> None:
        """Wait for the answers that are still to come, since a late grant is credit, too; then pay in."""
        share, until = self._find_share(), time.monotonic() + seconds
        while share.collect() and (left := until - time.monotonic()) > 0:
            share.link.wait(min(left, SLICE))
        sent = share.pay_in(last=last)
        if sent is not None:
            sent.wait(max(until - time.monotonic(), 0.0))

    @property
    def _shown(self) -> str:
        """The server without user and password, for texts."""
        return type(self._client).__qualname__ if self._address is None else self._address.shown

    def _find_share(self) -> ProcessShare:
        """Return the share of this process; a forked child gets a new one, which owns nothing."""
        if self._forks != local.forks[0]:
            with local.lock[0]:  # itself new in the child
                if self._forks != local.forks[0]:
                    parents = self._share
                    self._share = self._new_share()
                    self._forks = local.forks[0]
                    parents.link.close()  # the child's copy; the parent's connection stays open
        return self._share

    def _new_link(self) -> "Link":
        return ClientLink(self._client) if self._address is None else SocketLink(self._address)

    def _new_share(self) -> ProcessShare:
        _, name, capacity, deposit, window, _ = self._arguments
        return ProcessShare(self._new_link(), name, key_of(name), micro(capacity), micro(deposit), window, self._notify)

    def _notify(self, event: Event) -> None:
        listeners.notify(listeners.collect(self._on_event), event)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _restore, self._arguments

    def __repr__(self) -> str:
        _, name, capacity, deposit, *_ = self._arguments
        return f"SharedBudget({self._shown!r}, {name!r}, capacity={capacity!r}, deposit={deposit!r})"


def _restore(url: Any, name: str, capacity: float, deposit: float, window: float, on_event: Any) -> SharedBudget:
    """Make the budget that was pickled: the same bucket, with a share of its own."""
    return SharedBudget(url, name, capacity=capacity, deposit=deposit, window=window, on_event=on_event)


def _check_name(name: object) -> None:
    """Raise TypeError or ValueError unless `name` can be a part of a key, and of a line in a log."""
    if not isinstance(name, str):
        raise TypeError(f"`name` must be a str, got {check.shown(name)}")
    if not name or len(name) > _LONGEST_NAME or not name.isprintable() or "{" in name or "}" in name:
        raise ValueError(
            f"`name` must have 1 to {_LONGEST_NAME} printable characters without braces, got {check.shown(name)}"
        )


_open: "WeakValueDictionary[int, SharedBudget]" = WeakValueDictionary()
"""The budgets of this process, by their ids: they pay in at its normal end."""


@atexit.register
def _pay_in_at_exit() -> None:
    for budget in list(_open.values()):
        with suppress(Exception):  # the process is about to end: parts of it may have gone
            budget._pay_in(_EXIT, last=True)
