"""Commands as sequences of words, as clients send them. It knows no command.

A word is compared as it stands on the wire: letters of names and options in any case, all else octet by octet.
"""

from collections.abc import Sequence
from typing import TypeAlias

Argument: TypeAlias = "str | bytes | bytearray | memoryview[int] | int | float"
Command: TypeAlias = Sequence[Argument]
"""A command as its client is given it: its name first, with a subcommand as a word of its own or in the same string."""

_LONGEST_INTEGER = len(str(-(2**63)))


def is_word(argument: object) -> bool:
    """Whether clients send it: a string, bytes or a number, no truth value."""
    return isinstance(argument, str | bytes | bytearray | memoryview | int | float) and not isinstance(argument, bool)


def octets(argument: Argument) -> bytes:
    """A word as it goes over the wire; raises TypeError for what no client sends."""
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
    """A word as a name or option, in upper case."""
    return octets(argument).upper()


def integer(argument: Argument) -> int:
    """Return a word as a whole number, spelt as the server wants it; raises ValueError for any other spelling."""
    word = octets(argument)
    if len(word) > _LONGEST_INTEGER or str(number := int(word)).encode() != word:
        raise ValueError(f"a number must be written as the server writes it, in 64 bits, got {word[:40]!r}")
    return number


def is_id(argument: Argument) -> bool:
    """Whether a word is a whole id of a stream entry (or a timestamp), nothing of which is left to the server."""
    time, dash, number = octets(argument).partition(b"-")
    return time.isdigit() and (number.isdigit() or not dash)
