"""Reading the options of a command, without taking a value for an option. It knows no command."""

from collections.abc import Mapping, Sequence

from forbear.services.redis.words import Argument, Command, keyword, octets

Found = Mapping[bytes, Sequence[Argument]]
"""The options that a command carries, with their values."""

_THRESHOLD = -1  # one value, or two where the first one is = or ~


class Options:
    """The options that a command may carry, in a text such as "NX XX EX=1 MAXLEN~ GET=1+".

    A name may be followed by the number of its values, by a + if it may be given more than once, or by a ~ for a
    threshold that = or ~ may precede.
    """

    __slots__ = ("_repeated", "_takes")

    def __init__(self, text: str) -> None:
        self._takes: dict[bytes, int] = {}
        self._repeated: set[bytes] = set()
        for option in text.encode().split():
            name, _, count = option.rstrip(b"~+").partition(b"=")
            self._takes[name] = _THRESHOLD if option.endswith(b"~") else int(count or 0)
            if option.endswith(b"+"):
                self._repeated.add(name)

    @property
    def names(self) -> frozenset[str]:
        """The names of all of them."""
        return frozenset(name.decode() for name in self._takes)

    def read(self, command: Command, start: int, until: bytes | None = None) -> Found:
        """The options from `start` to the end, or to the word `until`, if there is one.

        Raises ValueError or IndexError for anything else in between, and for an option given twice.
        """
        found, stop = self.scan(command, start)
        if stop == len(command) or (stop < len(command) and keyword(command[stop]) == until):
            return found
        raise ValueError("there is a word that is no option")

    def scan(self, command: Command, start: int) -> tuple[Found, int]:
        """The options from `start` on, and where the first word stands that is none."""
        found: dict[bytes, list[Argument]] = {}
        index = start
        while index < len(command):
            name = keyword(command[index])
            takes = self._takes.get(name)
            if takes is None:
                break
            if takes == _THRESHOLD:
                takes = 2 if octets(command[index + 1]) in (b"=", b"~") else 1
            if name in found and name not in self._repeated:
                raise ValueError("an option is given twice")
            index += 1 + takes
            if index > len(command):
                raise ValueError("an option lacks its value")
            found.setdefault(name, []).extend(command[index - takes : index])
        return found, index
