"""Redis commands: parse a command line, and say what follows each error response. Arguments are never printed."""

import re
import shlex
from collections.abc import Iterator, Sequence

from forbear.answers import tables
from forbear.answers.answer import LOST, NOT_SENT, Answer, FailureOutcome, outcome_of, reason, unsafe_text
from forbear.answers.errors import NoAnswer
from forbear.answers.profile import ProfileChoice
from forbear.core.service import cure_for
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, TRANSIENT, Kind
from forbear.policy import Policy
from forbear.services.redis.errors import needs_reconnect, verdict_of_response
from forbear.services.redis.service import classify, explain_refusal
from forbear.services.redis.table import NAME, CommandJudgement
from forbear.services.redis.vouch import find_similar_command, option_for

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9._|-]{0,39}", re.ASCII)

ERROR_RESPONSES = (
    "LOADING", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "NOREPLICAS", "ERR max number of clients reached",
    "READONLY", "MOVED", "ASK", "NOSCRIPT", "IOERR", "WRONGTYPE", "ERR", "OOM", "MISCONF", "NOAUTH", "NOPERM",
    "EXECABORT",
)  # fmt: skip
"""The codes of error responses. Most of them may answer any command, some only certain ones."""

_ONLY_OF = {"NOSCRIPT": ("EVALSHA", "EVALSHA_RO"), "IOERR": ("MIGRATE",), "EXECABORT": ("EXEC",)}
_CONFLICT = "nil, because a watched key changed"

_LATER_RESPONSES = {
    "same": "a later attempt gets the same response as the first one",
    "may differ": "a later attempt may get a different response if an earlier attempt worked",
}


def parse_command(line: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command, or of one word with spaces, split as a shell would; NoAnswer if it cannot be."""
    words = tuple(line)
    if len(words) == 1 and any(map(str.isspace, words[0])):
        try:
            words = tuple(shlex.split(words[0]))
        except ValueError as error:
            raise NoAnswer(f"the command cannot be read: {error}".lower(), "close every quote") from None
    if not words or not words[0]:
        raise NoAnswer("a command must have a name, got none", "such as SET key value NX")
    return words


def answer(words: Sequence[str], profile: ProfileChoice) -> Answer:
    """Return which failures of the command `words` are retried, and why, under the policy of Redis called `profile`."""
    profile.check_service(NAME, "a Redis command")
    policy = profile.policy(NAME)
    judgement = classify(words)
    if judgement.operation is None and (near := find_similar_command(words[0].upper())):
        raise NoAnswer(f"{words[0].upper()} is no known command of Redis", f"is it {near}?")
    name, count = _describe(words, judgement)
    option = option_for(judgement, words)
    cure = cure_for(judgement, option)
    return Answer(
        f"Redis {name.removeprefix('a ')} ({count} argument{'' if count == 1 else 's'})",
        {"command": name, "arguments": count},
        profile.name,
        policy,
        judgement,
        reason(judgement),
        tuple(_outcomes(judgement, policy, unsafe_text(judgement, explain_refusal(judgement)) + cure)),
        option if cure else None,
        judgement.errors,
        tuple(_remarks(judgement)),
        more={"connection": judgement.connection, "response": judgement.response},
    )


def _describe(words: Sequence[str], judgement: CommandJudgement) -> tuple[str, int]:
    """Return the parts of a command that are not secret: its name if it looks like one, and the number of arguments."""
    count = len(words) - 1 + len(words[0].split()[1:])
    if judgement.operation is not None:
        return judgement.operation, count - judgement.operation.count(" ")
    return words[0].upper() if _WORD.fullmatch(words[0]) else "a command", count


def _outcomes(judgement: CommandJudgement, policy: Policy, unsafe: str) -> Iterator[FailureOutcome]:
    """Yield what follows an unsent command, a lost response, and each error response that this command may get."""
    yield outcome_of(NOT_SENT, NOT_EXECUTED, policy, judgement, unsafe)
    yield outcome_of(LOST, TRANSIENT, policy, judgement, unsafe)
    for response in ERROR_RESPONSES:
        if judgement.operation in _ONLY_OF.get(response, (judgement.operation,)):
            more = "; on a new connection" if needs_reconnect(response) else ""
            verdict = verdict_of_response(response)
            # A script may send any error after it wrote something.
            if judgement.scripted and verdict.kind is Kind.NOT_EXECUTED:
                verdict, more = TRANSIENT, ""
            yield outcome_of(response, verdict, policy, judgement, unsafe, more=more)
    if judgement.operation == "EXEC":
        yield outcome_of(_CONFLICT, CONFLICT, policy, judgement, unsafe)


def _remarks(judgement: CommandJudgement) -> Iterator[str]:
    if judgement.repeatable and judgement.response in _LATER_RESPONSES:
        yield _LATER_RESPONSES[judgement.response]
    if judgement.connection:
        yield "its effect ends with the connection: on a new one, send it again before commands that depend on it"
    entry = tables.entry(NAME, judgement.operation)
    if entry is not None and entry.columns["memorystore"]:
        yield "Memorystore for Redis does not offer this command"
