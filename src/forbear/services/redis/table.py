"""Reading the table of commands: one row each, checked against the schema. It judges nothing.

- `command`: the name in upper case, a subcommand after a space. A container alone has a row of its own.
- `kind`: read (changes nothing), write, or connection (changes the state of its connection and nothing else).
- `safety`: always, conditional or never; it looks at the data that is left, not at the reply.
- `safe_if`: what makes a conditional command safe. Alternatives are joined by "|", what must hold together by "&"; a
  term is `arg:` and a rule of `forbear.services.redis.arguments`, or `caller:` and a promise.
- `reply`: what a later attempt is answered where an earlier one had worked: same, may differ, lost, or `error:` and
  texts joined by ";". Empty only for what is never repeated.
- `depends`: what the outcome of a write depends on, which tells whether it may be repeated together with other writes:
  nothing (what it names is set, whatever it finds), existence (of what it names, under its first argument), key (on
  what that key holds), keys (on keys among its arguments), server (on more than its arguments name). Empty for what is
  no write or is never repeated.
- `memorystore`: blocked, if Memorystore for Redis does not offer the command.
- `listed`: which servers' own lists name it (redis, valkey), or clients, where only client libraries do (modules).
- `source`: readonly flag (the server says that it only reads) or JUDGEMENT (ours).
- `effect`: what a duplicate does.
- `note`: anything else worth knowing.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forbear.core.verdict import Safety
from forbear.services.redis.arguments import RULES
from forbear.services.redis.judgement import PROMISES

Term = tuple[str, str]
Alternatives = tuple[tuple[Term, ...], ...]

COLUMNS = (
    "command", "kind", "safety", "safe_if", "reply", "depends", "memorystore", "listed", "source", "effect", "note",
)  # fmt: skip

_VALUES: Mapping[str, frozenset[str]] = {
    "kind": frozenset({"read", "write", "connection"}),
    "safety": frozenset(safety.value for safety in Safety),
    "depends": frozenset({"", "nothing", "existence", "key", "keys", "server"}),
    "memorystore": frozenset({"", "blocked"}),
    "listed": frozenset({"redis, valkey", "redis", "valkey", "clients"}),
    "source": frozenset({"readonly flag", "JUDGEMENT"}),
}
_REPLIES = frozenset({"same", "may differ", "lost"})


@dataclass(frozen=True, slots=True)
class Row:
    """One command of the table."""

    command: str
    kind: str
    safety: Safety
    conditions: Alternatives
    reply: str
    errors: tuple[str, ...]
    depends: str
    blocked: bool
    listed: str
    source: str
    effect: str
    note: str


def load(path: Path) -> tuple[Row, ...]:
    """The rows of the table in `path`.

    Raises ValueError for a table that breaks the schema, with the file, the line and the command.
    """
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, restval="", restkey="surplus")
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path.name}: columns must be {list(COLUMNS)}, got {reader.fieldnames}")
        rows: dict[str, Row] = {}
        for line in reader:
            try:
                row = _row(line)
                if row.command in rows:
                    raise ValueError("`command` must be unique")
            except ValueError as error:
                raise ValueError(f"{path.name}, line {reader.line_num} ({line['command']}): {error}") from None
            rows[row.command] = row
    return tuple(rows.values())


def _row(line: Mapping[str, str]) -> Row:
    if "surplus" in line:
        raise ValueError(f"a row must have one value a column, got {line['surplus']!r} beyond the last one")
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
    reply, errors = _reply(line["reply"], never=safety is Safety.NEVER)
    return Row(
        command=command,
        kind=line["kind"],
        safety=safety,
        conditions=_conditions(command, line["safe_if"], needed=safety is Safety.CONDITIONAL),
        reply=reply,
        errors=errors,
        depends=line["depends"],
        blocked=line["memorystore"] == "blocked",
        listed=line["listed"],
        source=line["source"],
        effect=line["effect"],
        note=line["note"],
    )


def _reply(text: str, *, never: bool) -> tuple[str, tuple[str, ...]]:
    if text in _REPLIES or (never and not text):
        return text, ()
    prefix, _, errors = text.partition(": ")
    if prefix != "error" or not errors or errors != errors.lower():
        raise ValueError(f"`reply` must be one of {sorted(_REPLIES)}, or error: and a text in lower case, got {text!r}")
    return "may differ", tuple(errors.split("; "))


def _conditions(command: str, text: str, *, needed: bool) -> Alternatives:
    if needed != bool(text):
        raise ValueError(f"`safe_if` must be given for conditional commands only, got {text!r}")
    if not text:
        return ()
    return tuple(
        tuple(_term(command, term.strip()) for term in alternative.split("&")) for alternative in text.split("|")
    )


def _term(command: str, text: str) -> Term:
    prefix, _, name = text.partition(":")
    known = {"arg": RULES.get(command, {}), "caller": PROMISES}.get(prefix, {})
    if name not in known:
        raise ValueError(
            f"a condition must be arg: and a rule for this command, or caller: and a promise, got {text!r}"
        )
    return prefix, name
