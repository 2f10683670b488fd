"""Commands as sequences of words, as clients send them, and their options.

Words are compared as they are sent: names and options in any case, everything else byte by byte.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Argument: TypeAlias = "str | bytes | bytearray | memoryview[int] | int | float"
Command: TypeAlias = Sequence[Argument]
"""A command as you pass it to a client: its name first, with a subcommand in the same string or as the next word."""

_LONGEST_INTEGER = len(str(-(2**63)))


def is_word(argument: object) -> bool:
    """Return whether clients can send an argument: a str, bytes, bytearray, memoryview, int or float, but no bool."""
    return isinstance(argument, str | bytes | bytearray | memoryview | int | float) and not isinstance(argument, bool)


def octets(argument: Argument) -> bytes:
    """Return a word as the bytes that clients send; raise TypeError for one that none sends, such as None."""
    if isinstance(argument, bytes):
        return argument
    if isinstance(argument, str):
        return argument.encode("utf-8", "surrogatepass")
    if isinstance(argument, bytearray | memoryview):
        return bytes(argument)
    if is_word(argument):
        return repr(argument).encode()
    raise TypeError(f"a word of a command must be a string, bytes or a number, got {type(argument).__name__}")


def keyword(argument: Argument) -> bytes:
    """Return a word as bytes in upper case, to compare it with a name or option. Raises TypeError as `octets` does."""
    return octets(argument).upper()


def integer(argument: Argument) -> int:
    """Return a word as an integer; raise ValueError for any spelling but the server's own ("-5", not "+5" or "05")."""
    word = octets(argument)
    if len(word) > _LONGEST_INTEGER or str(number := int(word)).encode() != word:
        raise ValueError(f"a number must be written as the server writes it, in 64 bits, got {word[:40]!r}")
    return number


def is_id(argument: Argument) -> bool:
    """Return whether a word fixes the id of a stream entry or a timestamp, so that the server chooses no part."""
    time, dash, number = octets(argument).partition(b"-")
    return time.isdigit() and (number.isdigit() or not dash)


OptionValues = Mapping[bytes, Sequence[Argument]]
"""The options in a command: their names in upper case, each with all its values in order."""

_THRESHOLD = -1  # one value, or two where the first one is = or ~


class Options:
    """The options that a command accepts, given as text such as "NX XX EX=1 MAXLEN~ GET=1+".

    A name may be followed by `=` and the number of its values (default 0), and by `+` if it may occur more than once. A
    name with `~` is a threshold: it has one value, which the word = or ~ may precede.
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
        """The names of all options that the command accepts."""
        return frozenset(name.decode() for name in self._takes)

    def read(self, command: Command, start: int, until: bytes | None = None) -> OptionValues:
        """Return the options from `start` to the end or the word `until`, as `scan`; ValueError for other words."""
        options, stop = self.scan(command, start)
        if stop == len(command) or (stop < len(command) and keyword(command[stop]) == until):
            return options
        raise ValueError("there is a word that is no option")

    def scan(self, command: Command, start: int) -> tuple[OptionValues, int]:
        """Return the options from `start` on, with their values, and the index of the first other word.

        Raises ValueError or IndexError for an option that lacks its value, and for one that occurs twice but may not.
        """
        options: dict[bytes, list[Argument]] = {}
        index = start
        while index < len(command):
            name = keyword(command[index])
            takes = self._takes.get(name)
            if takes is None:
                break
            if takes == _THRESHOLD:
                takes = 2 if octets(command[index + 1]) in (b"=", b"~") else 1
            if name in options and name not in self._repeated:
                raise ValueError("an option is given twice")
            index += 1 + takes
            if index > len(command):
                raise ValueError("an option lacks its value")
            options.setdefault(name, []).extend(command[index - takes : index])
        return options, index
