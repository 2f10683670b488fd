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
from typing import Any

from forbear.services.aws.dynamodb_conditions import BROKEN, Path, Scanner, State, Value, is_false

_SETS = frozenset({"SS", "NS", "BS"})
_OLD = frozenset({"ALL_OLD", "UPDATED_OLD"})
_OLDER_FORMS = ("AttributeUpdates", "Expected", "ConditionalOperator")


def returns_new_values(parameters: Mapping[str, Any]) -> bool:
    """Return whether a write returns nothing of the item before it; a second attempt would return its own work."""
    return parameters.get("ReturnValues") not in _OLD


def is_repeatable_update(parameters: Mapping[str, Any]) -> bool:
    """Return whether an UpdateItem with these parameters may be executed twice. False for what cannot be parsed."""
    if not returns_new_values(parameters) or any(name in parameters for name in _OLDER_FORMS):
        return False
    try:
        update = _Update(Scanner(parameters.get("UpdateExpression"), parameters))
    except BROKEN:
        return False
    if update.is_same_twice:
        return True
    key: Mapping[str, Value] = parameters.get("Key") or {}
    known = {(name,): value for name, value in key.items()} | {
        path: value
        for path, value in update.written.items()
        if not _has_index(path)  # an append ends up elsewhere
    }
    return is_false(parameters.get("ConditionExpression"), parameters, known)


class _Update:
    """An update expression, parsed: the paths that it has `written`, each with what is then known of it."""

    def __init__(self, scanner: Scanner) -> None:
        self.written: dict[Path, Value] = {}
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
        """True if the item is the same after a second execution, whatever it was."""
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

    def _operand(self, target: Path) -> Value:
        """Parse the right side for a path, or a part of it; return what is known of its value."""
        scanner = self._scanner
        if scanner.word.startswith(":"):
            return scanner.value()
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
        path, value = self._scanner.path(), self._scanner.value()
        self._is_plain = self._is_plain and not _SETS.isdisjoint(value)
        self._write(path, State.PRESENT)

    def _delete(self) -> None:
        path, value = self._scanner.path(), self._scanner.value()
        self._is_plain = self._is_plain and not _SETS.isdisjoint(value)
        self._write(path, State.UNKNOWN)

    def _write(self, path: Path, value: Value) -> None:
        if any(_overlap(path, written) for written in self.written):
            raise ValueError("paths must not overlap")  # DynamoDB refuses it
        self.written[path] = value


def _overlap(path: Path, other: Path) -> bool:
    """Return whether one of two paths leads to the other, or to a part of it."""
    length = min(len(path), len(other))
    return path[:length] == other[:length]


def _has_index(path: Path) -> bool:
    return any(isinstance(part, int) for part in path)
