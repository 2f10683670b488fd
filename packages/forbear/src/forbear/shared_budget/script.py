"""The shared bucket: its script, the command that runs it, and the response; and what one process has earned."""

import hashlib
import re
from typing import Any, NamedTuple

from forbear.core.budget import MICRO, SLOTS, turn

SCRIPT = b"""\
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'time', 'epoch')
local capacity, deposit, cost, idle = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local now = tonumber(ARGV[5])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local tokens, time, epoch = tonumber(bucket[1]), tonumber(bucket[2]), tonumber(bucket[3])
if not (tokens and time and epoch) or now - time >= idle then
  tokens, epoch = math.floor(capacity / 10), now
end
tokens = math.min(tokens + deposit, capacity)
local granted = 0
if cost > 0 and tokens >= cost then
  tokens = tokens - cost
  granted = 1
end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.0f', tokens), 'time', string.format('%.0f', now),
  'epoch', string.format('%.0f', epoch))
redis.call('PEXPIRE', KEYS[1], idle)
return {granted, tokens, epoch}
"""
"""Add a deposit to the bucket, up to its capacity, then take the cost of a retry if so much is in it.

The key is a hash. Its `tokens` are in micro-tokens, `time` is that of the last change and `epoch` that of the first
one, in milliseconds on the server's clock. A bucket that is missing, or was idle for too long, starts with a tenth of
its capacity.
"""

DIGEST = hashlib.sha1(SCRIPT, usedforsecurity=False).hexdigest().encode()
"""The name of the script on a server that has run it: EVALSHA takes it in place of the script."""

IDLE = 3_600_000
"""Milliseconds after which a bucket expires if it is not changed."""

Command = tuple[bytes, ...]

_WHOLE = re.compile(rb"(?:\+(.{0,1024})|-(.{0,1024})|\*3\r\n:(\d{1,18})\r\n:(\d{1,18})\r\n:(\d{1,18}))\r\n")
_PART = re.compile(rb"(?:[+-].{0,1025}|\*(?:3(?:\r(?:\n(?::(?:\d{1,18}(?:\r\n?)?)?){0,3})?)?)?)?")
"""The patterns of a response, which is a line or the script's three numbers, and of its beginning. Both are bounded."""


class LocalBucket:
    """The bucket of `SCRIPT` in this process, without a server: the same rules, for simulations.

    >>> LocalBucket().tokens(capacity=50 * MICRO_PER_TOKEN) // MICRO_PER_TOKEN
    5
    """

    __slots__ = ("_state",)

    def __init__(self) -> None:
        self._state: tuple[int, int, int] | None = None  # tokens, time and epoch, as on the server

    def run(self, command: Command) -> list[int]:
        """Execute `command`, which has the time, and return what the script would."""
        capacity, deposit, cost, idle, now = (int(word) for word in command[4:])
        tokens, time, epoch = self._state or (0, now - idle, now)
        if now - time >= idle:
            tokens, epoch = capacity // 10, now
        tokens = min(tokens + deposit, capacity)
        granted = cost > 0 and tokens >= cost
        tokens -= cost * granted
        self._state = tokens, now, epoch
        return [int(granted), tokens, epoch]

    def tokens(self, capacity: int) -> int:
        """Return the micro-tokens in the bucket; a tenth of the capacity before its first command."""
        return capacity // 10 if self._state is None else self._state[0]


class BucketState(NamedTuple):
    """The response of the script: whether it granted the retry, the micro-tokens left, and the bucket's epoch in ms."""

    granted: bool
    tokens: int
    epoch: int


class LinkFailed(Exception):
    """The server cannot be asked, or its answer is lost; the text says why, without secrets."""


def key_of(name: str) -> bytes:
    """Return the key of the bucket called `name`; the braces keep it on one node of a cluster."""
    return b"{fb:%s}" % name.encode()


def command(key: bytes, capacity: int, deposit: int, cost: int, now: int | None = None) -> Command:
    """Return the command that pays in `deposit` and asks for a retry of `cost` (0: for none), both in micro-tokens."""
    numbers = (capacity, deposit, cost, IDLE) if now is None else (capacity, deposit, cost, IDLE, now)
    return (b"EVAL", SCRIPT, b"1", key, *(b"%d" % number for number in numbers))


def parse(response: object) -> BucketState:
    """Return what the script answered; LinkFailed for anything else."""
    parts: Any = response
    if isinstance(response, list) and len(parts) == 3 and all(type(part) is int for part in parts):
        granted, tokens, epoch = parts
        if granted in (0, 1) and tokens >= 0:
            return BucketState(granted == 1, tokens, epoch)
    raise LinkFailed(f"the server sent a response that the script does not send, of type {type(parts).__name__}")


def encode(command: Command) -> bytes:
    """Return the bytes of a command."""
    return b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in command)


def decode(data: bytes | bytearray) -> tuple[bytes | list[int] | LinkFailed, int] | None:
    """Return the first response in `data` and its length, None if it has not arrived in full.

    It is a line, the three numbers of the script, or an error response as a LinkFailed. Raises LinkFailed for the rest.
    """
    whole = _WHOLE.match(data)
    if whole is None:
        if _PART.fullmatch(data) is None:
            raise LinkFailed("the server sent a response that is not of the Redis protocol, or not of the script")
        return None
    line, error, *numbers = whole.groups()
    if error is not None:
        return LinkFailed(error.decode(errors="backslashreplace")), whole.end()
    return [int(number) for number in numbers] if line is None else line, whole.end()


class Credit:
    """The credit of one process, in micro-tokens: at most one token of its own, and a surplus for the shared bucket.

    The surplus expires `window` seconds after it was earned, or up to a tenth of the window sooner, never later. So a
    process holds at most one token and what it earned in the last window. A credit has no clock and no lock. Times are
    monotonic, in seconds.
    """

    __slots__ = ("_state", "own", "window")

    def __init__(self, window: float) -> None:
        self.window = window
        self.own = 0
        self._state = [0] * (1 + SLOTS)  # the number of the newest slot, then what was earned in each

    def earn(self, amount: int, now: float, *, holds: bool = False) -> None:
        """Add `amount`: to the own token until it is whole, else to the surplus.

        With `holds`, all of it is surplus: the process waits for a token of the shared bucket, and must not hold two.
        """
        if not holds:
            kept = min(amount, MICRO - self.own)
            self.own += kept
            amount -= kept
        if amount:
            self._state[1 + turn(self._state, now, self.window)] += amount

    def spend(self) -> bool:
        """Take the own token for a retry and return True; False if it is not whole."""
        if self.own < MICRO:
            return False
        self.own -= MICRO
        return True

    def refill(self) -> None:
        """Make the own token whole: a grant of the shared bucket has come too late for its run."""
        self.own = MICRO

    def total(self, now: float) -> int:
        """Return all that has not expired, the own part too."""
        turn(self._state, now, self.window)
        return self.own + sum(self._state[1:])

    def hand_over(self, now: float) -> int:
        """Take all that has not expired, the own part too, and return it; the process pays it in."""
        own, self.own = self.own, 0
        return own + self.hand_over_surplus(now)

    def hand_over_surplus(self, now: float) -> int:
        """Take the surplus that has not expired, and return it."""
        turn(self._state, now, self.window)
        amount = sum(self._state[1:])
        self._state[1:] = [0] * SLOTS
        return amount
