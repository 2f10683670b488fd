"""Redis commands: reading a command line, and what follows each reply to it. Arguments are never printed back."""

import re
import shlex
from collections.abc import Sequence

from forbear.cli import profiles
from forbear.cli.explain import tables
from forbear.cli.explain.answer import Answer
from forbear.cli.explain.outcome import LOST, NOT_SENT, Outcome, decided
from forbear.cli.output import BadInput
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, TRANSIENT
from forbear.policy import Policy
from forbear.services.redis.errors import needs_reconnect, verdict_of_reply
from forbear.services.redis.service import classify
from forbear.services.redis.table import NAME, CommandJudgement

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9._|-]{0,39}", re.ASCII)

REPLIES = (
    "LOADING", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "NOREPLICAS", "ERR max number of clients reached",
    "READONLY", "MOVED", "ASK", "NOSCRIPT", "IOERR", "WRONGTYPE", "ERR", "OOM", "MISCONF", "NOAUTH", "NOPERM",
    "EXECABORT",
)  # fmt: skip
"""Error replies by their codes; those of any command, and some of one only."""

_ONLY_OF = {"NOSCRIPT": ("EVALSHA", "EVALSHA_RO"), "IOERR": ("MIGRATE",), "EXECABORT": ("EXEC",)}
_CONFLICT = "nil, for a watched key was changed"

_ANSWERS = {
    "same": "a later attempt is answered as the first one was",
    "may differ": "a later attempt may be answered differently where an earlier one had worked",
    "lost": "a later attempt cannot bring back the value that went with the first reply",
}


def words_of(line: Sequence[str]) -> tuple[str, ...]:
    """The words of a command; one in a single piece is split as a shell would split it."""
    words = tuple(line)
    if len(words) == 1 and any(map(str.isspace, words[0])):
        try:
            words = tuple(shlex.split(words[0]))
        except ValueError as error:
            raise BadInput(f"the command cannot be read: {error}".lower(), "see that every quote is closed") from None
    if not words or not words[0]:
        raise BadInput("a command has a name, got none", "such as: forbear explain redis SET key value NX")
    return words


def answer(words: Sequence[str], profile: str) -> Answer:
    """What is to be said of a command."""
    policy = profiles.policy(f"{NAME}.{profile}")
    judgement = classify(words)
    name, given = _shown(words, judgement)
    return Answer(
        f"{name} ({given} argument{'' if given == 1 else 's'})",
        {"command": name, "arguments": given},
        profile,
        policy,
        judgement,
        _outcomes(judgement, policy),
        judgement.errors,
        tuple(_remarks(judgement)),
        {"connection": judgement.connection, "reply": judgement.response},
    )


def _shown(words: Sequence[str], judgement: CommandJudgement) -> tuple[str, int]:
    """What of a command is no secret: its name, and how many arguments it has."""
    given = len(words) - 1 + len(words[0].split()[1:])
    if judgement.operation is not None:
        return judgement.operation, given - judgement.operation.count(" ")
    return words[0].upper() if _WORD.fullmatch(words[0]) else "a command", given


def _outcomes(judgement: CommandJudgement, policy: Policy) -> list[Outcome]:
    """What follows each reply to the first attempt, and none."""
    found = [decided(NOT_SENT, NOT_EXECUTED, policy, judgement), decided(LOST, TRANSIENT, policy, judgement)]
    for reply in REPLIES:
        if judgement.operation in _ONLY_OF.get(reply, (judgement.operation,)):
            more = "; on a new connection" if needs_reconnect(reply) else ""
            found.append(decided(reply, verdict_of_reply(reply), policy, judgement, more))
    if judgement.operation == "EXEC":
        found.append(decided(_CONFLICT, CONFLICT, policy, judgement))
    return found


def _remarks(judgement: CommandJudgement) -> list[str]:
    found = [_ANSWERS[judgement.response]] if judgement.repeatable and judgement.response in _ANSWERS else []
    if judgement.connection:
        found.append("what it does ends with its connection: on a new one it has to be sent again before what needs it")
    entry = tables.entry(NAME, judgement.operation)
    if entry is not None and entry.columns["memorystore"]:
        found.append("Memorystore for Redis does not offer this command")
    return found
