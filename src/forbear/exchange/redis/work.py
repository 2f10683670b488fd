"""What an attempt sends: one command, several together, or what keeps a subscription. It sends nothing itself."""

from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace

from forbear.exchange.redis import promises
from forbear.services.redis.batch import classify_many, classify_transaction
from forbear.services.redis.service import classify
from forbear.services.redis.table import CommandJudgement, Promise
from forbear.services.redis.words import Command

_CYCLE: frozenset[Promise] = frozenset({"cycle"})


@dataclass(frozen=True, slots=True)
class Work:
    """What one run sends, over and over where that is allowed.

    `operation` names it in reports and events, `repeatable` says whether it may be executed twice and `unsafe` why not.
    An error reply to a part of it holds for all of it if it is `atomic`. `redirected` marks work whose next attempt
    goes where a redirection says, and `watched` what must not be sent again without the WATCH that came before it. The
    `nodes` are those of a cluster that it has been sent to so far. `scripted` marks work with a script, whose error
    responses prove nothing.
    """

    operation: str
    repeatable: bool
    unsafe: str
    texts: tuple[str, ...] = ()
    atomic: bool = True
    redirected: bool = False
    watched: bool = False
    nodes: Sized = ()
    scripted: bool = False

    def is_maybe_done(self, text: str) -> bool:
        """Whether an error reply to a later attempt may mean that an earlier one had worked."""
        lowered = text.lower()
        return any(part in lowered for part in self.texts)


SUBSCRIPTION = Work("SUBSCRIBE", repeatable=True, unsafe="")
"""Subscribing and waiting for messages, which executes nothing; what is published in the meantime is lost."""


def single(command: Command, *, at_once: bool = False, nodes: Sized = ()) -> Work:
    """Describe one command; `at_once` says that a pipeline sends it at once: WATCH, or what follows it."""
    judgement = classify(command, promised=_promises(at_once=at_once))
    return Work(
        judgement.operation or "unknown command",
        judgement.repeatable,
        _why_not(judgement),
        judgement.errors,
        nodes=nodes,
        scripted=judgement.scripted,
    )


def pipeline(commands: Sequence[Command]) -> Work:
    """Commands that are sent together and executed one by one."""
    judged = judge_together(commands)
    unsafe = next((f"the pipeline with {_why_not(judgement)}" for judgement in judged if not judgement.repeatable), "")
    scripted = any(judgement.scripted for judgement in judged)
    return Work("pipeline", not unsafe, unsafe, atomic=len(judged) == 1, scripted=scripted)


def several(commands: Sequence[Command]) -> Work:
    """A pipeline of which one node may execute its part where another is not reached, and nobody says which."""
    work = pipeline(commands)
    return work if len(commands) == 1 else replace(work, nodes=commands)


def transaction(commands: Sequence[Command], *, watched: bool, redirected: bool = False) -> Work:
    """Describe commands between MULTI and EXEC; after a WATCH they are not repeated without it."""
    judgement = classify_transaction(commands, watched=watched, promised=promises.given())
    unsafe = "the transaction may have been executed; only its whole cycle, from WATCH on, can tell and may be repeated"
    judged = judge_together(commands)
    if not watched:
        unsafe = next((f"the transaction with {_why_not(one)}" for one in judged if not one.repeatable), unsafe)
    scripted = any(one.scripted for one in judged)
    return Work("transaction", judgement.repeatable, unsafe, redirected=redirected, watched=watched, scripted=scripted)


def judge_together(commands: Sequence[Command], *, at_once: bool = False) -> tuple[CommandJudgement, ...]:
    """The judgements on commands in each other's company; `at_once` on those that a pipeline sends under WATCH."""
    return classify_many(commands, promised=_promises(at_once=at_once))


def _promises(*, at_once: bool) -> frozenset[Promise]:
    # A WATCH dies with its connection, and what was read under it is read again.
    return promises.given() | _CYCLE if at_once else promises.given()


def _why_not(judgement: CommandJudgement) -> str:
    name = judgement.operation or "an unknown command"
    if judgement.refused is not None:
        return f"{name} may have been executed; {judgement.refused}"
    if judgement.conditions:
        return f"{name} may have been executed; it may be repeated only with {' or '.join(judgement.conditions)}"
    return f"{name} may have been executed and must not be executed twice"
