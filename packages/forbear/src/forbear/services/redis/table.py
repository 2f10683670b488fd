"""Read the table of commands, one row each, checked against the schema; and the judgement on one command.

- `command`: the name in upper case, with a subcommand after a space. A container alone has its own row.
- `kind`: read (changes nothing), write, or connection (changes only the state of its connection).
- `safety`: always, conditional or never. It is about the resulting data, not about the response. A command is safe if
  its arguments name what it changes: a repeat leaves what one execution leaves, before or after the writes of others.
- `safe_if`: the conditions that make a conditional command safe. "|" joins alternatives, "&" joins terms that must all
  hold. A term is `arg:` and a rule of `forbear.services.redis.arguments`, or `caller:` and a promise.
- `response`: the response to a later attempt if an earlier attempt worked: same, may differ, lost, or `error:` and
  texts joined by ";". Empty only for a command that is never repeated.
- `depends`: the data that the outcome of a write depends on, which decides whether it may be repeated together with
  other writes. Nothing: it sets its target regardless. Existence: of its target, under its first argument. Key: on the
  content of that key. Keys: on any keys among its arguments. Server: on more than its arguments name. Empty for a
  command that is no write or is never repeated.
- `memorystore`: blocked, if Memorystore for Redis does not offer the command.
- `listed`: the servers whose own lists have it (redis, valkey), or clients, if only client libraries do (modules).
- `source`: readonly flag (the server says that it only reads) or JUDGEMENT (ours).
- `effect`: what a duplicate does.
- `note`: anything else worth knowing.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from forbear.core.dataclass import dataclass, field
from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.services.redis.arguments import RULES
from forbear.tables.conditions import Alternatives, Term, parse
from forbear.tables.table import read_rows

NAME = "redis"

Promise = Literal["cycle", "drift", "idempotent", "unique"]
"""The names of the promises that a caller can make about a command."""

PROMISES: Mapping[str, str] = MappingProxyType(
    {
        "cycle": "the whole cycle from WATCH on is repeated, and recognises its own earlier write",
        "drift": "an expiry may be later by the time between two attempts",
        "idempotent": "the script, function, query or other command may be executed twice with the same arguments",
        "unique": "the value is unique and read back, or the response is ignored",
    }
)
"""The promises that a caller can make, each with its meaning."""


class CommandJudgement(Judgement):
    """The safety of one command; `operation` is its name in upper case ("SET", "CLIENT KILL").

    - `connection` marks a command that changes only the state of its connection. It must be sent again on a new
      connection before the command that needs it.
    - `response` describes the response to a later attempt where an earlier one worked: "same", "may differ" or "lost"
      (only the first response had the value). `errors` lists texts of error responses (in lower case) that may then
      mean that an earlier attempt worked.
    - `depends` names the data that the outcome of a write depends on: "nothing", "existence", "key", "keys" or
      "server".
    - `scripted` marks a command that runs the caller's code, or that is unknown. Its error response may come after a
      write, with any code, so it proves nothing. Example: see `classify`.
    """

    __slots__ = ("connection", "response", "errors", "depends", "scripted")

    connection: bool
    response: str
    errors: tuple[str, ...]
    depends: str
    scripted: bool

    def __init__(
        self,
        service: str,
        operation: str | None,
        safety: Safety,
        *,
        connection: bool = False,
        response: str = "",
        errors: tuple[str, ...] = (),
        depends: str = "",
        scripted: bool = False,
        **judgement: Any,
    ) -> None:
        super().__init__(service, operation, safety, **judgement)
        self._set(connection=connection, response=response, errors=errors, depends=depends, scripted=scripted)

    def is_maybe_done(self, error: str) -> bool:
        """Return whether an error response to a later attempt may mean that an earlier attempt worked."""
        text = error.lower()
        return any(part in text for part in self.errors)


UNKNOWN = CommandJudgement(NAME, None, Safety.NEVER, scripted=True)


COLUMNS = (
    "command", "kind", "safety", "safe_if", "response", "depends", "memorystore", "listed", "source", "effect", "note",
)  # fmt: skip

_VALUES: Mapping[str, frozenset[str]] = {
    "kind": frozenset({"read", "write", "connection"}),
    "safety": frozenset(safety.value for safety in Safety),
    "depends": frozenset({"", "nothing", "existence", "key", "keys", "server"}),
    "memorystore": frozenset({"", "blocked"}),
    "listed": frozenset({"redis, valkey", "redis", "valkey", "clients"}),
    "source": frozenset({"readonly flag", "JUDGEMENT"}),
}
_RESPONSES = frozenset({"same", "may differ", "lost"})


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One row of the table of commands, parsed: `conditions` is its `safe_if`, and `columns` has its cells.

    `errors` has the texts of a `response` with error texts; the response is then "may differ".
    """

    command: str
    kind: str
    safety: Safety
    conditions: Alternatives
    response: str
    errors: tuple[str, ...]
    depends: str
    effect: str
    columns: Mapping[str, str] = field(compare=False)


def load(path: Path) -> tuple[CommandRow, ...]:
    """Return the rows of the table in a CSV file; raise ValueError, with the place, for one that breaks the schema."""
    return read_rows(path, COLUMNS, _row)


def _row(line: Mapping[str, str]) -> CommandRow:
    for column, values in _VALUES.items():
        if line[column] not in values:
            raise ValueError(f"`{column}` must be one of {sorted(values)}, got {line[column]!r}")
    command = line["command"]
    if command != " ".join(command.upper().split()) or not command:
        raise ValueError(f"`command` must be one or two words in upper case, got {command!r}")
    if not line["effect"]:
        raise ValueError("`effect` must not be empty")
    safety = Safety(line["safety"])
    if bool(line["depends"]) != (line["kind"] == "write" and safety is not Safety.NEVER):
        raise ValueError(f"`depends` must be given for writes that may be repeated only, got {line['depends']!r}")
    response, errors = _response(line["response"], never=safety is Safety.NEVER)
    return CommandRow(
        command=command,
        kind=line["kind"],
        safety=safety,
        conditions=_conditions(command, line["safe_if"], needed=safety is Safety.CONDITIONAL),
        response=response,
        errors=errors,
        depends=line["depends"],
        effect=line["effect"],
        columns=line,
    )


def _response(text: str, *, never: bool) -> tuple[str, tuple[str, ...]]:
    if text in _RESPONSES or (never and not text):
        return text, ()
    prefix, _, errors = text.partition(": ")
    if prefix != "error" or not errors or errors != errors.lower():
        raise ValueError(
            f"`response` must be one of {sorted(_RESPONSES)}, or error: and a text in lower case, got {text!r}"
        )
    return "may differ", tuple(errors.split("; "))


def _conditions(command: str, text: str, *, needed: bool) -> Alternatives:
    if needed != bool(text):
        raise ValueError(f"`safe_if` must be given for conditional commands only, got {text!r}")
    return parse(text, lambda term: _term(command, term))


def _term(command: str, text: str) -> Term:
    prefix, _, name = text.partition(":")
    known = {"arg": RULES.get(command, {}), "caller": PROMISES}.get(prefix, {})
    if name not in known:
        raise ValueError(
            f"a condition must be arg: and a rule for this command, or caller: and a promise, got {text!r}"
        )
    return prefix, name
