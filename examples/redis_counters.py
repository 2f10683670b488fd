"""Count visits. Library: redis-py.

After a lost response `SADD` is sent again, because a visit is in the set once or not at all. `INCR` is not sent again:
it would count twice, so its error is raised.
"""

import sys

import redis

from forbear.clients.redis import Redis


def visit(counters: redis.Redis, page: str, visitor: str) -> int:
    """Count a visitor of a page; return how many different visitors the page has had."""
    counters.sadd(f"visitors:{page}", visitor)
    return int(counters.scard(f"visitors:{page}"))


def hit(counters: redis.Redis, page: str) -> int:
    """Count a hit; return the number of hits. An error means that this hit may have been counted or not."""
    return int(counters.incr(f"hits:{page}"))


if __name__ == "__main__":
    with Redis.from_url(sys.argv[1]) as store:
        print(visit(store, sys.argv[2], sys.argv[3]), hit(store, sys.argv[2]))
