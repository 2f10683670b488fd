"""Describe what an attempt sends (one command, several together, a subscription) and whether it may be sent twice.

`promised` is where callers vouch for commands that the tables cannot judge.
"""

from collections.abc import Callable, Sequence, Sized
from functools import cache
from typing import TYPE_CHECKING, Any, get_args

from forbear.core.dataclass import dataclass
from forbear.core.service import cure_for
from forbear.core.verdict import Safety
from forbear.evidence.readers.redis import describe_sent
from forbear.exchange.call_state import judge_described
from forbear.run.ledger import Entry, enter, has_reads, note_read
from forbear.run.scope import Scope, has_open_scopes, open_scopes
from forbear.services.redis.batch import classify_many
from forbear.services.redis.command_words import Command
from forbear.services.redis.service import CLAIMS, CYCLE, commands, examine, explain_refusal, read_commands
from forbear.services.redis.table import PROMISES, CommandJudgement, Promise
from forbear.services.redis.vouch import UNVOUCHED, Safe, apply_vouch, option_for

if TYPE_CHECKING:
    from forbear.exchange.call_state import Described


class promised(Scope):  # noqa: N801 - used like a function
    """`with promised("idempotent"):` vouches for the commands that the block sends, until it ends.

    It applies to the functions that the block calls, and to tasks and threads that it starts with its context. At the
    end of the block it ends for all of them. In a generator it applies to what the generator itself calls, not to its
    consumer; in a fixture of pytest, to the fixture's tests. The promises are "cycle", "drift", "idempotent" and
    "unique", explained in `forbear.services.redis.PROMISES`; "idempotent" makes a script repeatable, for example.
    Nested blocks add up.

    ValueError for an unknown promise.

    >>> from forbear.adapters import describe_command
    >>> with promised("idempotent"):
    ...     describe_command(["RENAME", "report:new", "report"]).repeatable
    True
    """

    __slots__ = ("_promises",)

    def __init__(self, *promises: Promise) -> None:
        for promise in promises:
            if promise not in get_args(Promise):
                known = "; ".join(f'"{name}" ({text})' for name, text in PROMISES.items())
                raise ValueError(f"`promises` must be of these: {known}; got {promise!r}")
        super().__init__()
        self._promises = frozenset(promises)


@dataclass(frozen=True, slots=True)
class SentCommands:
    """The description of what every attempt of one run sends.

    `operation` names it in reports and events, `repeatable` says whether it may be executed twice and `unsafe` why not.
    `cure` has words that say how the user may vouch for it, "" where that does not help.
    `texts` are parts of error responses (in lower case) by which a later attempt shows that an earlier attempt worked.
    If they are `atomic`, an error response to a part of it holds for all of it; after EXEC it does not, for several of
    a `transaction`. `redirected` is true if the next attempt follows a redirection. `watched` ones must not be sent
    again without the WATCH before it. `nodes` are the nodes of a cluster that it was sent to so far; if there are
    several, an error of one says nothing about the others. `scripted` work contains a script, whose error responses
    prove nothing. `vouched` is true if only the user's word makes it repeatable.
    """

    operation: str
    repeatable: bool
    unsafe: str = ""
    texts: tuple[str, ...] = ()
    atomic: bool = True
    transaction: bool = False
    redirected: bool = False
    watched: bool = False
    nodes: Sized = ()
    scripted: bool = False
    vouched: bool = False
    cure: str = ""


SUBSCRIPTION = SentCommands("SUBSCRIBE", repeatable=True)
"""Subscribing and waiting for messages. It executes nothing, so it may be repeated."""

TRANSACTION = SentCommands("transaction", repeatable=False)
"""A cycle of `transaction()` before anything was sent."""


def describe_command(
    command: Command, safe: Safe = UNVOUCHED, *, at_once: bool = False, nodes: Sized = ()
) -> SentCommands:
    """Return the description of one command; `nodes` are the nodes of a cluster that it is sent to.

    The user vouches for the commands in `safe`. `at_once` is true if a pipeline sends it without queueing it: WATCH, or
    a command under WATCH.

    >>> sent = describe_command(["INCR", "count"])
    >>> sent.repeatable, sent.unsafe
    (False, 'INCR may have been executed and must not be executed twice')
    """
    judgement, words = examine(command, _promises(at_once=at_once))
    judgement = apply_vouch(judgement, words, safe)
    return SentCommands(
        judgement.operation or "unknown command",
        judgement.repeatable,
        explain_refusal(judgement),
        judgement.errors,
        nodes=nodes,
        scripted=judgement.scripted,
        vouched=judgement.vouched,
        cure=cure_for(judgement, option_for(judgement, words)),
    )


_ONLY_AS_CYCLE = (
    "the transaction may have been executed; only its whole cycle, from WATCH on, can tell and may be repeated"
)


def describe_together(
    commands: Sequence[Command],
    safe: Safe = UNVOUCHED,
    *,
    transaction: bool = False,
    watched: bool = False,
    redirected: bool = False,
    scattered: bool = False,
) -> SentCommands:
    """Return the description of commands that are sent together, repeatable if all of them are.

    They are executed one by one; in a `transaction` between MULTI and EXEC, after a WATCH if they are `watched`. Of
    `scattered` ones, one node of a cluster may execute its part while another is not reached. The library does not say
    which, so a failure of several of them never proves that none was executed.
    """
    judgements = judge_together(commands, safe)
    operation = "transaction" if transaction else "pipeline"
    unsafe, cure = next(
        (
            (f"the {operation} with {explain_refusal(one)}", cure_for(one, option_for(one, command)))
            for command, one in zip(commands, judgements, strict=True)
            if not one.repeatable
        ),
        ("", ""),
    )
    by_promise = transaction and "cycle" in _promises()
    repeatable = by_promise or not (unsafe or watched)
    if watched:
        unsafe = cure = ""  # no word about a command helps
    return SentCommands(
        operation,
        repeatable,
        unsafe or (_ONLY_AS_CYCLE if transaction else ""),
        atomic=transaction or len(commands) == 1,
        transaction=transaction and len(commands) > 1,
        redirected=redirected,
        watched=watched,
        nodes=commands if scattered else (),
        scripted=any(one.scripted for one in judgements),
        vouched=repeatable and not by_promise and any(one.vouched for one in judgements),
        cure=cure,
    )


def judge_together(
    commands: Sequence[Command], safe: Safe = UNVOUCHED, *, at_once: bool = False
) -> tuple[CommandJudgement, ...]:
    """Return the judgement of each command when they are sent together, in their order."""
    return classify_many(commands, promised=_promises(at_once=at_once), safe=safe)


def _promises(*, at_once: bool = False) -> frozenset[Promise]:
    # A WATCH dies with its connection, and what was read under it is read again.
    return (CYCLE if at_once else frozenset[Promise]()).union(*(scope._promises for scope in open_scopes(promised)))


_MOST_WORDS = 50
_LONGEST_WORD = 1000


@cache
def _harmless() -> frozenset[str]:
    rows = (row for row in commands() if " " not in row.command)
    return frozenset(row.command for row in rows if row.safety is Safety.ALWAYS and not row.conditions).difference(
        CLAIMS
    )


_WRITES = frozenset({"SET", "DEL", "HSET", "HMSET", "MSET", "SETEX", "PSETEX", "UNLINK", "HDEL", "SETRANGE"})
"""Writes of what a function may have read before; others that are harmless are not remembered."""


def enter_commands(sent: Any, describe: "Callable[[Any, Safe], SentCommands]", safe: Safe) -> Entry | None:
    """Enter what is sent now: a command, a list of them, or the request of a pipeline. None for what does no harm."""
    command: Any = sent if type(sent) is tuple else None  # pyright: ignore[reportUnknownVariableType]
    if command is not None:
        name = command[0]
        if name in read_commands() and len(command) <= _MOST_WORDS:
            note_read(command)
            return None
        is_harmless = name in _harmless() or (name == "SET" and len(command) == 3)
        if is_harmless and (name not in _WRITES or not has_reads()):
            return None
    if has_open_scopes() and describe(sent, safe).repeatable:
        return None  # perhaps by a promise, which is forgotten when its scope ends
    if command is None:
        for words in _commands_of(sent)[0][:_MOST_WORDS]:
            if words[0] in read_commands():
                note_read(words)
    elif len(command) > _MOST_WORDS or _is_long(command[-1]):  # what decides about a repeat is short
        command = tuple(word[:1] if _is_long(word) else word for word in command[:_MOST_WORDS])
    entry = Entry(judge_described, _describe_entry, command or sent, describe, safe)
    enter(entry)
    return entry


def _describe_entry(sent: Any, describe: "Callable[[Any, Safe], SentCommands]", safe: Safe) -> "Described":
    request = describe_sent("redis", *_commands_of(sent))
    request.watched = describe(sent, UNVOUCHED).watched
    return request, lambda: describe(sent, safe).vouched


def _commands_of(sent: Any) -> tuple[list[Command], bool]:
    """Return the commands of what is sent, and whether they are a transaction."""
    if isinstance(sent, tuple):
        return [sent], False  # pyright: ignore[reportUnknownVariableType]
    listed: list[Command] = sent if isinstance(sent, list) else sent.commands  # pyright: ignore[reportUnknownVariableType]
    return listed, not isinstance(sent, list) and sent.is_transaction


def _is_long(word: Any) -> bool:
    return isinstance(word, str | bytes) and len(word) > _LONGEST_WORD
