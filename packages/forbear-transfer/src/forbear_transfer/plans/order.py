"""The order of items whose targets are the sources of others: a plan that is complete before the first write.

An item whose target is the source of another waits until that one is done. Items wait on disk; memory holds a number
for each source, and the items that wait.
"""

import pickle
import tempfile
from array import array
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Self

from forbear.adapters import replace
from forbear_transfer.errors import TransferError
from forbear_transfer.items import Action, Item
from forbear_transfer.objects import Url

_SPOOL = 1024 * 1024
_SHOWN = 5
_WAITS = "it waits for others, which have failed: it might replace what they have yet to read"


class OrderedItems:
    """Items in rounds, each of which may run once the rounds before it are done; kept in a file without a name."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_SPOOL)  # noqa: SIM115 - __exit__ closes it
        self._starts = array("Q")
        self._rounds: dict[int, int] = {}
        self._is_whole = True
        self._awaited: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    async def fill(self, items: AsyncGenerator[Item]) -> None:
        """Take all items; ValueError, which names them, if they wait for each other or move one source twice."""
        readers: dict[int, int] = {}
        more: dict[int, list[int]] = {}
        async for item in items:
            number = len(self._starts)
            self._starts.append(self._file.tell())
            pickle.dump(item, self._file, pickle.HIGHEST_PROTOCOL)
            if item.action is Action.REFUSE and not item.is_absent:  # objects that may be there, and stay
                self._is_whole = False
            if item.action not in (Action.COPY, Action.MOVE) or not isinstance(item.source, Url):
                continue
            first = readers.setdefault(_identify(item.source), number)
            if first != number and item.action is Action.MOVE:
                text = f"{item.source} would move to {self._load(first).target} and to {item.target}"
                raise ValueError(f"`sources`: {text}; leave one of them out")
            if first != number:
                more.setdefault(first, []).append(number)
        waits: dict[int, list[int]] = {}
        for number, item in enumerate(self._load_all()):
            if item.action not in (Action.COPY, Action.MOVE) or not isinstance(item.target, Url):
                continue
            first_reader = readers.get(_identify(item.target))
            if first_reader is not None:
                others = [one for one in (first_reader, *more.get(first_reader, ())) if one != number]
                if others:
                    waits[number] = others
                    self._awaited.update(others)
        self._rounds = _find_rounds(waits, self._refuse_cycle)

    @property
    def rounds(self) -> int:
        return max(self._rounds.values(), default=0) + 1

    async def items_of(self, number: int, *, allowed: bool = True) -> AsyncGenerator[Item]:
        """Yield the items of a round, counted from 0.

        They are refused if the round is not `allowed`, and if the plan refuses a source that exists. A move replaces
        nothing. Neither does a copy for which others wait, if it waits for none: there may be the only copy of what an
        earlier run replaced. What another replaces has been copied in the rounds before.
        """
        allowed = allowed and self._is_whole
        for index in self._rounds if number else range(len(self._starts)):
            if self._rounds.get(index, 0) == number:
                item = self._load(index)
                if item.action is Action.MOVE or (index in self._awaited and not number):
                    item = replace(item, generation=0)
                waits = not allowed and item.action in (Action.COPY, Action.MOVE)
                yield item.refuse(TransferError(_WAITS, "cure these first, then run it again")) if waits else item

    def _load(self, number: int) -> Item:
        end = self._file.tell()
        self._file.seek(self._starts[number])
        item: Item = pickle.load(self._file)  # noqa: S301 - written above, to a file without a name
        self._file.seek(end)
        return item

    def _load_all(self) -> Iterator[Item]:
        self._file.seek(0)
        for _ in self._starts:
            yield pickle.load(self._file)  # noqa: S301

    def _refuse_cycle(self, cycle: list[int]) -> ValueError:
        names = [str(self._load(number).source) for number in cycle[:_SHOWN]]
        if len(cycle) > _SHOWN:
            names.append(f"{len(cycle) - _SHOWN} more")
        return ValueError(
            f"`sources`: each of these would replace the next, and the last one the first: {', '.join(names)}; "
            "name a target beside them"
        )


def _identify(url: Url) -> int:
    return hash((url.bucket, url.name))


def _find_rounds(waits: Mapping[int, list[int]], refuse: Callable[[list[int]], ValueError]) -> dict[int, int]:
    """Return the round of each item that waits for others; raise what `refuse` returns for a cycle."""
    rounds: dict[int, int] = {}
    path: dict[int, Iterator[int]] = {}
    for start in waits:
        if start not in rounds:
            path[start] = iter(waits[start])
        while path:
            number, others = next(reversed(path.items()))
            other = next((one for one in others if one in waits and one not in rounds), None)
            if other is None:
                rounds[number] = 1 + max(rounds.get(one, 0) for one in waits[number])
                del path[number]
            elif other in path:
                raise refuse([*path][[*path].index(other) :])
            else:
                path[other] = iter(waits[other])
    return rounds
