"""`run_key`, the idempotency key of a run: equal in all attempts, and never equal by chance.

A key is derived from a secret of the outermost run and from what it is for. `run/open_runs.py` finds the run, and knows
the keys of a run for the judge of its requests.
"""

import sys
from os import urandom

from forbear.core import check
from forbear.run.harm import watch
from forbear.run.key_uses import AutomaticKey, KeyUse, SentKey
from forbear.run.open_runs import is_earlier, path_of_runs, run_keys
from forbear.run.runtime import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from uuid import UUID

    from forbear.run.key_uses import Path
    from forbear.run.protocols import RunState

    Part = str | bytes | int | UUID

SPAN = 300.0
"""The seconds for which a server remembers a key, if nobody says: the shortest span among known services."""
MARGIN = 0.9
"""The share of a key's span within which a request with it is sent: clocks and connections take their time."""
_MOST = 10_000
"""The keys of one run."""
_OWN_REFERENCES = 2  # that of the `RunKeys`, and that of the argument of getrefcount
_swept = [64]  # the number of runs with keys at which those that have ended are dropped next

watch()  # a task of an attempt finds its run by the log of the attempt


class RunKeys:
    """The keys of the run that began at `started`, by their texts: `uses` of its own, `automatic` ones of adapters.

    Of the automatic ones it has those whose outcome is unknown. `sent` has what was sent with a key, and `unknown` the
    requests with an unknown outcome that went without one. `root` are the keys of the outermost run at the first use:
    they stay those of this run if that one ends before.
    """

    __slots__ = ("_seed", "_started", "automatic", "root", "sent", "unknown", "uses")

    def __init__(self, started: float) -> None:
        self._started = started  # kept, so that no other object gets its id
        self._seed = urandom(32)
        self.uses: dict[str, KeyUse] = {}
        self.automatic: dict[str, AutomaticKey] = {}
        self.sent: dict[str, SentKey] = {}
        self.unknown: set[object] = set()
        self.root: RunKeys | None = None

    @property
    def has_ended(self) -> bool:
        """True if nobody but these keys knows the run any more."""
        kept = list((self.root or self).automatic.values())
        in_paths = sum(started is self._started for use in kept for started, _ in use.path)
        return sys.getrefcount(self._started) <= _OWN_REFERENCES + in_paths

    @property
    def texts(self) -> tuple[str, ...]:
        """The keys that are the same in each attempt: the automatic ones as long as the outcome is unknown."""
        own = (*self.uses, *(use.key for use in self.automatic.values() if use.is_unknown))
        return own if self.root is None else (*own, *self.root.texts)

    def derive(self, parts: "tuple[Part, ...]") -> str:
        """Return the key for `parts`, as the text of a UUID; TypeError for parts of other types."""
        from hashlib import blake2b  # both are slow to import
        from uuid import UUID

        digest = blake2b(key=self._seed, digest_size=16)
        for part in parts:
            kind, data = _encode(part)
            digest.update(b"%s%d:" % (kind, len(data)) + data)  # so ("a", "bc") is not ("ab", "c")
        return str(UUID(bytes=digest.digest(), version=4))

    def use(self, key: str, now: float, span: float) -> KeyUse:
        """Note that a key is used now, and return its use; RuntimeError for too many keys."""
        use = self.uses.get(key)
        if use is None:
            if len(self.uses) >= _MOST:
                raise RuntimeError(
                    f"`run_key` makes at most {_MOST} keys in one run; decorate the function that does the work on one "
                    "item, instead of the one with the loop"
                )
            use = self.uses[key] = KeyUse(now, now + MARGIN * span)
        use.last = now
        use.until = min(use.until, use.first + MARGIN * span)
        return use


class RepeatRefused(RuntimeError):
    """The error of an adapter that does not send a request, because an earlier one may have been the same."""


def automatic_key(place: object, request: object, span: float) -> AutomaticKey:
    """Return the key for a request that is sent now: that of an equal one whose outcome is unknown, or a new one.

    `place` is the method and the host, and `request` all that makes two requests equal, such as resource and body, None
    if that is not known. It must be hashable, and without what a library draws anew, such as boundaries (K2). `span` is
    the number of seconds for which the server remembers a key.

    A request is found by what it is, and by how many equal ones this attempt has sent before, never by its position
    (K1). Of nested runs each attempt counts, but two runs within one attempt are two calls. If an earlier attempt has
    sent another one to the same place, whose outcome is unknown and to which no request of this attempt is equal, this
    one may be the same with another time in its body: RepeatRefused. So it is if the span less 10 % has passed since
    the key was first sent (K6).
    """
    from uuid import uuid4

    path, now = path_of_runs(), current.get().monotonic()
    known = _keys_of(path).automatic if path else {}
    if any(attempt > 1 for _, attempt in path):
        earlier = [use for use in list(known.values()) if use.place == place and is_earlier(use.path, path)]
        use = next((use for use in earlier if request is not None and use.request == request), None)
        if use is not None and now <= use.until:
            use.send_again(path)
            return use
        if any(use.is_unknown for use in earlier):
            raise RepeatRefused(
                "an earlier attempt has sent a request whose outcome is unknown, and this one may be the same, "
                "although it differs or its key has expired; send a key of your own, forbear.run_key(...)"
            )
    if len(known) >= _MOST:
        raise RepeatRefused(
            f"the outcome of {_MOST} requests of this run is unknown; decorate the function that sends one of them"
        )
    return AutomaticKey(str(uuid4()), place, request, path, now + MARGIN * span, known)


def check_key(key: str, request: object) -> tuple[float | None, SentKey | None, AutomaticKey | None]:
    """Return the seconds for which the run's own `key` still counts, None for another key, and what is sent with it.

    The third item is the automatic key if the caller has it from the hop before. Call it before each request, and
    `take_back` of the results once that was certainly not executed. RepeatRefused if the server may have forgotten the
    key (K6), or if this attempt has sent it with another request, which was not taken back (K10).
    """
    path = path_of_runs()
    if not path:
        return None, None, None
    keys, number = _keys_of(path), path[0][1]
    sent = keys.sent.get(key)
    if sent is not None and sent.forbids(number, request):
        raise RepeatRefused(
            "this attempt has sent the same key with another request, which the server would execute only once; "
            "name what each key is for: forbear.run_key(...)"
        )
    if sent is None or sent.attempt != number or sent.request != request:
        sent = SentKey(number, request)
        if key in keys.sent or len(keys.sent) < _MOST:
            keys.sent[key] = sent
    automatic, now = keys.automatic.get(key), current.get().monotonic()
    use = keys.uses.get(key)
    if use is not None and now > use.until:
        raise RepeatRefused(
            f"the key was first used {now - use.first:.0f} s ago, and the server may have forgotten it; pass `hours`, "
            "the time that the server remembers it, to forbear.run_key"
        )
    sent.send()
    if automatic is not None:
        automatic.send_again(path)
        return automatic.until - now, sent, automatic
    return None if use is None or use.until == check.INFINITY else use.until - now, sent, None


def run_key(*parts: "Part", hours: float | None = None) -> str:
    """Return an idempotency key that is the same in all attempts of the run, and in no other run.

    `headers={"Idempotency-Key": run_key("charge", order.id)}` in a decorated function, in a block, or in a function
    that `policy.call` runs: each attempt sends the same key, so a server that honours keys charges once. Of nested runs
    the outermost one counts. Tasks of an async attempt, and threads with its context, have its keys, too.

    - `parts` say what the key is for, and who or what it concerns: at least one str, bytes, int or UUID. Other parts
      make another key, so calls for several things in one run need parts that differ. Decorate the function that does
      the work on one item, not the loop over all of them.
    - `hours`: for how long the server remembers a key, by default 5 minutes. A key counts for 90 % of that time after
      its first use. Then no attempt begins, and `run_key` raises, because the server may have forgotten the key.

    The result is the text of a UUID. Raises TypeError without a part, or for parts of other types. Raises RuntimeError
    outside of a run (also in a forked child of one), for an expired key, and after 10 000 keys of one run.

    >>> keys = []
    >>> @forbear.retry(OSError)
    ... def charge():
    ...     keys.append(forbear.run_key("charge"))
    ...     if len(keys) < 2:
    ...         raise OSError
    >>> charge()
    >>> keys[0] == keys[1]
    True
    """
    if not parts:
        raise TypeError(
            "`run_key` needs at least one part that says what the key is for: run_key('charge', order.id); "
            "one key for several calls would let the server execute only the first"
        )
    if hours is not None:
        check.positive("hours", hours, what="a number of hours, or None (5 minutes)")
    path = path_of_runs()
    if not path:
        raise RuntimeError(
            "`run_key` needs a run: call it in a function that forbear.retry decorates, or in a block, in the thread "
            "or task of the attempt; elsewhere, call it in the function itself and pass the key on"
        )
    keys = _keys_of(path)
    key, now = keys.derive(parts), current.get().monotonic()
    use = keys.use(key, now, SPAN if hours is None else hours * 3600)
    if now > use.until:
        raise RuntimeError(
            f"`run_key` was first called with these parts {now - use.first:.0f} s ago, and the server may have "
            "forgotten the key since; pass a shorter timeout to the policy, or `hours`, the time that the server "
            "remembers a key"
        )
    return key


def declare(run: "RunState", value: object) -> None:
    """Note that `value`, which the policy's `key` returned, is the same in all attempts of `run`.

    TypeError for a value that could be equal to another one by chance.
    """
    text = check.lasting_text(value)
    if text is None:
        raise TypeError(
            "`key` must return a str, bytes or UUID of at least 8 characters, or an int of at least 10**9, because "
            f"shorter ones are equal by chance; got {check.shown(value)}"
        )
    keys_at(run.started).uses[text] = KeyUse(check.INFINITY, check.INFINITY)  # the start itself would keep the run


def _keys_of(path: "Path") -> RunKeys:
    """Return the keys of the outermost run of a path; the runs within keep them, also if it ends before they do."""
    keys = keys_at(path[0][0])
    keys = keys.root or keys
    for started, _ in path[1:]:
        inner = keys_at(started)
        inner.root = inner.root or keys
    return keys


def keys_at(started: float) -> RunKeys:
    """Return the keys of the run that began at `started`; those of runs that have ended go now and then."""
    keys: Any = run_keys.get(id(started))
    if keys is None:
        if len(run_keys) >= _swept[0]:
            for number, each in list(run_keys.items()):
                if each.has_ended:
                    run_keys.pop(number, None)
                    each.automatic.clear()  # which hold the runs within
            _swept[0] = max(64, 2 * len(run_keys))
        keys = run_keys.setdefault(id(started), RunKeys(started))
    return keys  # type: ignore[no-any-return]


def _encode(part: object) -> tuple[bytes, bytes]:
    """Return the kind and the bytes of a part of a key."""
    from uuid import UUID

    if isinstance(part, str):
        return b"s", str.encode(part, "utf-8", "surrogatepass")
    if isinstance(part, bytes):
        return b"b", bytes(part)
    if isinstance(part, UUID):
        return b"u", part.bytes
    if isinstance(part, int) and not isinstance(part, bool):
        return b"i", b"%d" % part
    raise TypeError(f"`parts` of run_key must be str, bytes, int or UUID, got {check.shown(part)}")
