"""The safety of commands that are sent together: pipelines and transactions.

Two writes may each be repeatable and yet not be together: COPY a b REPLACE and SET a 1 leave another b the second time.
So a write whose outcome depends on existing keys must not share a key with another write of the batch. If only the
existence of its key matters, it may share it with earlier writes. A write that depends on more than its arguments name,
such as MOVE or a script, must be the only write. Every word that could be a key counts as one, which may be too
careful. A time to live may start anew, as it does with SET and EX, or EXPIRE after SET.

A write for which the user vouches is judged in the same way, because the vouch is about the command by itself. Writes
that add something (INCR, LPUSH) depend on nothing here: once more is once more, whatever others write.

All this holds for commands that fit the types of their keys. A command that is refused the first time for the type of
its key may be accepted the second time.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from forbear.services.redis.command_words import Argument, Command, is_word, keyword, octets
from forbear.services.redis.service import NOTHING, classify, examine
from forbear.services.redis.table import CommandJudgement, Promise
from forbear.services.redis.vouch import UNVOUCHED, Safe, apply_vouch

_ENTANGLED = "its outcome depends on what another command sent with it changes"

# With these a write depends on existing data. A value that looks like one only makes the judgement too careful.
_CONDITIONS = frozenset(
    {b"NX", b"XX", b"GT", b"LT", b"FNX", b"FXX", b"IFEQ", b"IFNE", b"IFDEQ", b"IFDNE", b"NOMKSTREAM"}
)
_LONGEST = max(map(len, _CONDITIONS))

_EXPIRES = frozenset({"EXPIRE", "PEXPIRE"})

_ALL_SAFE = "every queued command is repeatable"


def classify_many(
    commands: Iterable[Command], *, promised: AbstractSet[Promise] = NOTHING, safe: Safe = UNVOUCHED
) -> tuple[CommandJudgement, ...]:
    """Return one judgement for each of the commands that are sent together, in their order.

    They may be repeated together if all are repeatable. The commands from MULTI (or the first WATCH before it) to EXEC
    are so together or not at all. `promised` lists the caller's promises (see `PROMISES`), `safe` the commands that the
    user vouches for.

    >>> [each.repeatable for each in classify_many([["SADD", "colours", "red"], ["INCR", "count"]])]
    [True, False]
    """
    examined = [_judge(command, promised, safe) for command in commands]
    written = set[bytes]()
    for index, (judgement, words) in enumerate(examined):
        key = octets(words[1]) if len(words) > 1 and is_word(words[1]) else None
        if key in written and judgement.operation in _EXPIRES:
            examined[index] = _judge(words, {*promised, "drift"}, safe)
        elif judgement.operation == "SET" and judgement.repeatable and key is not None:
            written.add(key)
    judgements = _disentangle(examined)
    start: int | None = None
    multi = False
    for index, judgement in enumerate(judgements):
        if judgement.operation in ("WATCH", "MULTI"):
            start = index if start is None else start
            multi = multi or judgement.operation == "MULTI"
        elif judgement.operation == "EXEC":
            if start is not None and multi:
                judgements[start : index + 1] = _as_one(judgements[start : index + 1])
            start, multi = None, False
        elif judgement.operation == "DISCARD" or (judgement.operation == "UNWATCH" and not multi):
            start, multi = None, False
    return tuple(judgements)


def classify_transaction(
    queued: Iterable[Command],
    *,
    watched: bool = False,
    promised: AbstractSet[Promise] = NOTHING,
    safe: Safe = UNVOUCHED,
) -> CommandJudgement:
    """Return the judgement on a transaction (MULTI, the commands in `queued`, EXEC), which is a judgement on EXEC.

    It may be repeated if all commands may and no keys are `watched`, or in any case with "cycle" in `promised`.

    >>> classify_transaction([["SADD", "colours", "red"]]).repeatable
    True
    >>> classify_transaction([["SADD", "colours", "red"]], watched=True).repeatable
    False
    """
    judgements = classify_many(queued, promised=promised, safe=safe)
    return _judge_exec(classify(["EXEC"], promised=promised), judgements, together=not watched)


def _judge(command: Command, promised: AbstractSet[Promise], safe: Safe) -> tuple[CommandJudgement, Command]:
    """Return the judgement on a command by itself, with the user's word, and the command split into words."""
    judgement, words = examine(command, promised)
    return apply_vouch(judgement, words, safe), words


def _as_one(block: list[CommandJudgement]) -> list[CommandJudgement]:
    """Return the judgements on one transaction, from WATCH or MULTI to EXEC: all repeatable, or none."""
    *inside, execute = block
    queued = [judgement for judgement in inside if judgement.operation not in ("WATCH", "MULTI")]
    nested = sum(judgement.operation == "MULTI" for judgement in inside) > 1
    execute = _judge_exec(execute, queued, together=not nested)
    return [*(judgement.replace(repeatable=execute.repeatable) for judgement in inside), execute]


def _judge_exec(execute: CommandJudgement, queued: Sequence[CommandJudgement], *, together: bool) -> CommandJudgement:
    """Return the judgement on EXEC after the `queued` commands, which may be repeated with it only if `together`."""
    if execute.repeatable:
        return execute
    execute = execute.replace(conditions=(_ALL_SAFE, *execute.conditions))
    if not together or not all(judgement.repeatable for judgement in queued):
        return execute
    return execute.replace(met=_ALL_SAFE, repeatable=True, vouched=any(judgement.vouched for judgement in queued))


def _disentangle(examined: Sequence[tuple[CommandJudgement, Command]]) -> list[CommandJudgement]:
    """Return the judgements; a write is refused whose outcome depends on what another one of the batch may change."""
    judgements = [judgement for judgement, _ in examined]
    writes = [index for index, one in enumerate(judgements) if one.mutation and one.operation != "EXEC"]
    depends = {index: _depends(*examined[index]) for index in writes}
    if len(writes) < 2 or not set(depends.values()) - {"", "nothing"}:
        return judgements
    keys = {index: _keys(*examined[index]) for index in writes}
    shared = Counter(key for words in keys.values() for key in words)
    later: set[bytes] = set()
    for index in reversed(writes):
        if (
            depends[index] == "server"
            or (depends[index] == "existence" and not keys[index].isdisjoint(later))
            or (depends[index] in ("key", "keys") and any(shared[key] > 1 for key in keys[index]))
        ):
            judgements[index] = judgements[index].replace(met=None, repeatable=False, vouched=False, refused=_ENTANGLED)
        later |= keys[index]
    return judgements


def _depends(judgement: CommandJudgement, command: Command) -> str:
    """Return what the outcome of a command depends on; a word such as NX makes it its keys."""
    if judgement.depends == "nothing" and any(map(_is_condition, command[2:])):
        return "keys"
    return judgement.depends


def _is_condition(word: Argument) -> bool:
    return isinstance(word, str | bytes) and len(word) <= _LONGEST and keyword(word) in _CONDITIONS


def _keys(judgement: CommandJudgement, command: Command) -> set[bytes]:
    """Return the words of a write that may be keys: the first argument if only that matters, else every argument."""
    first = 1 + (judgement.operation or "").count(" ")
    last = first + 1 if judgement.depends in ("key", "existence") else len(command)
    return {octets(word) for word in command[first:last] if is_word(word)}
