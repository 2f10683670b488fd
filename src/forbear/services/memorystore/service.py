"""The APIs by which Memorystore for Redis, Redis Cluster and Valkey are administered; not the data in them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from forbear.services.api import Api, rows
from forbear.services.described import Described
from forbear.services.table import Row

NAME = "memorystore"
DOCUMENTED_STATUSES = frozenset({429, *range(500, 600)})
"""What the page on exponential backoff of Memorystore for Redis calls worth another try."""


class Memorystore(Described):
    """What is known of the admin APIs; `statuses` are those worth another try (408, 429, 500, 502, 503 and 504)."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name in judgements and reports."""
        return NAME

    def apis(self) -> Mapping[str, Api]:
        """The compiled tables by the name of the API in the host name."""
        return _apis()


@cache
def operations(table: str) -> tuple[Row, ...]:
    """A table: "redis" (with Redis Cluster) or "valkey"."""
    return rows(Path(__file__).with_name(f"{table}.csv"))


@cache
def _apis() -> dict[str, Api]:
    return {"redis": Api(NAME, operations("redis")), "memorystore": Api(NAME, operations("valkey"))}


RECOMMENDED = Memorystore()
DOCUMENTED = Memorystore(statuses=DOCUMENTED_STATUSES)
