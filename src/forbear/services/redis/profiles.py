"""The policy for data commands. What is safe is for the table to say."""

from functools import cache

from forbear.core.backoff import Exponential
from forbear.core.decide import Limits
from forbear.policy import Policy
from forbear.services.redis.failures import verdict_of_exception


@cache
def policy() -> Policy:
    """What we recommend for the data commands of Redis and Valkey.

    At most 10 retries within 10 s, each after a random part of 0.02, 0.04, 0.08 … 1 s. There is no page to follow;
    these are the figures by which redis-py 8.1 waits, since a data command takes a fraction of a millisecond and its
    caller waits for it. What differs, and why:

    - The jitter is drawn below the cap instead of cut off by it, so that waits at the cap stay spread out.
    - There is a limit in time: eleven attempts at a server that does not answer may take minutes. A failover may take
      longer than 10 s; where a caller can wait for it, `policy.with_timeout(60).with_attempts(100)`.
    - Errors are judged one by one: a failed authentication is not tried again, READONLY and TRYAGAIN are.
    - A function that it decorates is not repeated where its command may have been executed, for nobody can see which
      command it is; derive `policy.replace(repeatable=True)` for what tolerates it, or use a client that judges each
      command. Such a function should send one command: what it sent before the one that failed is sent again, too. It
      should send no script that may write and then answer LOADING, READONLY, BUSY, TRYAGAIN or the like.
    """
    backoff = Exponential(initial=0.02, multiplier=2, maximum=1, jitter="full")
    return Policy(verdict_of_exception, Limits(attempts=11, timeout=10), backoff, repeatable=False)
