"""Read DynamoDB's update expressions, and tell whether an UpdateItem may be executed twice.

An update may, if each of its parts leaves the same item when it is executed again:

- `SET path = :value`, and `SET path = other` if the expression writes nothing at, above or below `other`;
- `SET path = if_not_exists(path, :value)`, and with another path that the expression does not write;
- `REMOVE path`;
- `ADD` and `DELETE` of sets.

No path may have a list index: `SET l[99] = :v` appends. Arithmetic and `list_append` never may. An update also may if
it has a condition that is false once it was executed: its second execution then fails. Only what the expressions say
counts, so a condition whose value is not known protects nothing. Whatever cannot be parsed is not repeatable.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from forbear.services.aws.dynamodb_conditions import (
    BROKEN,
    Condition,
    Path,
    Scanner,
    State,
    parse_condition,
    value_of,
)

_SETS = frozenset({"SS", "NS", "BS"})
_OLD = frozenset({"ALL_OLD", "UPDATED_OLD"})
_OLDER_FORMS = frozenset({"AttributeUpdates", "Expected", "ConditionalOperator"})
_LONGEST_NAMES = 4096


def returns_new_values(parameters: Mapping[str, Any]) -> bool:
    """Return whether a write returns nothing of the item before it; a second attempt would return its own work."""
    return parameters.get("ReturnValues") not in _OLD


def is_repeatable_update(parameters: Mapping[str, Any]) -> bool:
    """Return whether an UpdateItem with these parameters may be executed twice. False for what cannot be parsed."""
    if not returns_new_values(parameters) or not _OLDER_FORMS.isdisjoint(parameters):
        return False
    try:
        values: Mapping[str, Any] = parameters.get("ExpressionAttributeValues") or {}
        update = _find_update(parameters)
        for name in update.values:
            value_of(values, name)
        if update.is_same_twice and not any(_SETS.isdisjoint(values[name]) for name in update.sets):
            return True
        key: Mapping[str, Any] = parameters.get("Key") or {}
        return update.condition is not None and update.condition((key, values)) is False
    except BROKEN:
        return False


def _find_update(parameters: Mapping[str, Any]) -> "_Update":
    """Return the parsed expressions of an update; those of the last ones are kept, but for very long names."""
    update, condition = parameters.get("UpdateExpression"), parameters.get("ConditionExpression")
    names: Mapping[str, Any] = parameters.get("ExpressionAttributeNames") or {}
    if not names:
        return _parse(update, condition, ())
    parse = _parse if sum(map(len, names.values())) <= _LONGEST_NAMES else _parse.__wrapped__
    return parse(update, condition, tuple(names.items()))


class _Update(NamedTuple):
    """An update, parsed, with its condition, None for one that protects nothing.

    - `values` are all placeholders for values, and `sets` those that stand for sets if it is the same twice.
    - `is_same_twice` is True if the item then is the same after a second execution, whatever it was.
    """

    values: tuple[str, ...]
    sets: tuple[str, ...]
    is_same_twice: bool
    condition: Condition | None


@lru_cache(maxsize=256)
def _parse(update: object, condition: object, names: tuple[tuple[str, Any], ...]) -> _Update:
    """Return the update that both expressions describe; one of `BROKEN` for one that cannot be parsed."""
    known = dict(names)
    parser = _Parser(Scanner(update, known))
    # An append ends up elsewhere.
    written = {path: value for path, value in parser.written.items() if not _has_index(path)}
    return _Update(
        tuple(parser.values),
        tuple(parser.sets),
        parser.is_same_twice,
        parse_condition(condition, known, written),
    )


class _Parser:
    """The parser of an update expression: the paths that it has `written`, and its placeholders for values."""

    def __init__(self, scanner: Scanner) -> None:
        self.written: dict[Path, str | State] = {}
        self.values: list[str] = []
        self.sets: list[str] = []
        self._read: list[tuple[Path, Path | None]] = []  # a path, and the one that may be written although it is read
        self._is_plain = True
        self._scanner = scanner
        clauses = {"SET": self._set, "REMOVE": self._remove, "ADD": self._add, "DELETE": self._delete}
        if not scanner.word:
            raise ValueError("the expression is empty")
        while scanner.word:
            action = clauses.pop(scanner.name().upper())
            action()
            while scanner.take(","):
                action()

    @property
    def is_same_twice(self) -> bool:
        """True if the item is the same after a second execution, whatever it was; what adds must be `sets`."""
        if not self._is_plain or any(map(_has_index, self.written)):
            return False
        return not any(
            _overlap(path, written)
            for path, own in self._read
            for written in self.written
            if not (path == own == written)
        )

    def _set(self) -> None:
        path = self._scanner.path()
        self._scanner.expect("=")
        value = self._operand(path)
        if self._scanner.take("+", "-"):
            self._operand(path)
            self._is_plain, value = False, State.PRESENT
        self._write(path, value)

    def _operand(self, target: Path) -> str | State:
        """Parse the right side for a path, or a part of it; return its placeholder, or what is known of its value."""
        scanner = self._scanner
        if scanner.word.startswith(":"):
            return self._value(self.values)
        if scanner.take("LIST_APPEND"):
            scanner.expect("(")
            self._operand(target)
            scanner.expect(",")
            self._operand(target)
            scanner.expect(")")
            self._is_plain = False
        elif scanner.take("IF_NOT_EXISTS"):
            scanner.expect("(")
            self._read.append((scanner.path(), target))
            scanner.expect(",")
            self._operand(target)
            scanner.expect(")")
        else:
            self._read.append((scanner.path(), None))
        return State.PRESENT

    def _remove(self) -> None:
        self._write(self._scanner.path(), State.ABSENT)

    def _add(self) -> None:
        path = self._scanner.path()
        self._value(self.values, self.sets)
        self._write(path, State.PRESENT)

    def _delete(self) -> None:
        path = self._scanner.path()
        self._value(self.values, self.sets)
        self._write(path, State.UNKNOWN)

    def _value(self, *lists: list[str]) -> str:
        name = self._scanner.value()
        for each in lists:
            each.append(name)
        return name

    def _write(self, path: Path, value: str | State) -> None:
        if any(_overlap(path, written) for written in self.written):
            raise ValueError("paths must not overlap")  # DynamoDB refuses it
        self.written[path] = value


def _overlap(path: Path, other: Path) -> bool:
    """Return whether one of two paths leads to the other, or to a part of it."""
    length = min(len(path), len(other))
    return path[:length] == other[:length]


def _has_index(path: Path) -> bool:
    return any(isinstance(part, int) for part in path)
