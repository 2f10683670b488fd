"""The judgement of what a failed function sent: one table, whose first row that fits decides for each request.

Of several requests the least safe one decides. The judge is loaded at the first failure of a function, through the slot
in `forbear.run.judge_slot`. Evidence only ever stops a run: what the policy does not retry is not retried.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forbear.core.service import Judgement, OperationSet
from forbear.core.verdict import Safety
from forbear.evidence import walk
from forbear.evidence.sent import Evidence, Sent
from forbear.http.request import READS
from forbear.judges.arguments import Arguments
from forbear.judges.data_facts import aws_facts, find_facts_by_name, redis_facts, sql_facts, was_read
from forbear.judges.facts import VOUCH_FOR_ALL, Facts, Word, grpc_facts, http_facts, is_refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.http.api import Api
    from forbear.run.judge_slot import RunContext


@dataclass(frozen=True, slots=True)
class Ruling:
    """One row of the table.

    - `code` names it, for tests and docs.
    - `fits` says whether it is about a request.
    - `repeats` says whether the function is then called again. `maybe_done`: a later conflict may be one's own.
    - `why` and `cure` are the words of the note, in which `{what}` is the request and `{cure}` how to vouch for it.
    """

    code: str
    fits: Callable[[Facts], bool]
    repeats: bool
    why: str = ""
    cure: str = "{cure}"
    maybe_done: bool = False


ROWS: tuple[Ruling, ...] = (
    Ruling("not_sent", lambda f: f.not_sent, repeats=True),
    Ruling("refused", lambda f: f.refused, repeats=True),
    Ruling("rolled_back", lambda f: f.rolled_back is True, repeats=True),
    Ruling("vouched", lambda f: f.vouched, repeats=True),
    Ruling(
        "still_open",
        lambda f: f.still_open,
        repeats=False,
        why="{what} belongs to a transaction that is still open, and a repeat would go on with it",
        cure="roll back in the function, as `with connection:` does",
    ),
    Ruling(
        "their_transaction",
        lambda f: f.rolled_back is False and not f.safe,
        repeats=False,
        why="{what} belongs to a transaction that began before the function",
        cure="decorate the function that begins the transaction",
    ),
    Ruling("unread", lambda f: f.unread is not None, repeats=False, why="{what} could not be read"),
    Ruling(
        "autocommit",
        lambda f: f.commits_alone,
        repeats=False,
        why="{what} was rolled back, but statements before it may have been committed by themselves",
        cure="begin a transaction in the function",
    ),
    Ruling("commits", lambda f: f.commits, repeats=False, why="{what} may have been committed"),
    Ruling(
        "claims",
        lambda f: f.claims,
        repeats=False,
        why="{what} says by its value who was first, and a repeat would say: somebody else",
        cure="write a value of your own and read it back, or {cure}",
    ),
    Ruling(
        "made",
        lambda f: f.done and (f.condition == "absent" or (f.condition == "version" and f.kept)),
        repeats=False,
        why="{what} has succeeded, and the next attempt would be in conflict with it",
        cure="decorate what follows it by itself, or {cure}",
    ),
    Ruling(
        "version_kept",
        lambda f: f.condition == "version" and f.kept,
        repeats=True,
        maybe_done=True,
    ),
    Ruling(
        "version",
        lambda f: f.condition == "version",
        repeats=False,
        why="{what} depends on a version, and the next attempt would read a newer one",
        cure="use forbear.update, or pass the version to the function",
    ),
    Ruling(
        "drawn",
        lambda f: f.condition == "absent" and f.drawn,
        repeats=False,
        why="{what} creates a name that looks new in each attempt",
        cure="pass the name to the function",
    ),
    Ruling("absent", lambda f: f.condition == "absent", repeats=True, maybe_done=True),
    Ruling(
        "read_before",
        lambda f: f.safe and f.read_before,
        repeats=False,
        why="{what} writes what the attempt has read before, and the next attempt would read what was written",
        cure="use forbear.update, or {cure}",
    ),
    Ruling("safe", lambda f: f.safe, repeats=True),
    Ruling(
        "expired",
        lambda f: f.condition == "key" and f.kept and not (f.automatic and f.done) and f.until > f.span,
        repeats=False,
        why="{what} has a key that the server may have forgotten by the next attempt",
        cure="pass a shorter timeout, or say for how long the server remembers keys, by forbear.Api",
    ),
    Ruling("key", lambda f: f.condition == "key" and f.kept and not (f.automatic and f.done), repeats=True),
    Ruling(
        "used_key",
        lambda f: f.automatic and f.done,
        repeats=False,
        why="{what} has succeeded, and the next attempt would send it with another key",
        cure="send a key of forbear.run_key, or {cure}",
    ),
    Ruling(
        "new_key",
        lambda f: f.condition == "key",
        repeats=False,
        why="{what} has a key that may be new in each attempt",
        cure="take it from forbear.run_key, or pass it to the function",
    ),
    Ruling("never", lambda f: True, repeats=False, why="{what} may have been executed and must not be executed twice"),
)
"""The table. Its order matters: the first row that fits a request decides."""


_BY_PROTOCOL = {
    "redis": redis_facts,
    "aws": aws_facts,
    "grpc": grpc_facts,
    "sql": sql_facts,
    "named": find_facts_by_name,
}


def facts_of(
    sent: Sent,
    error: BaseException,
    arguments: Arguments,
    safe: tuple[str, ...] = (),
    apis: "tuple[Api, ...]" = (),
    errors: tuple[BaseException, ...] = (),
) -> Facts:
    """Return the facts about a request of `error`, which holds `errors`; `safe` and `apis` are the user's word."""
    if sent.protocol == "http":
        return http_facts(sent, arguments, safe, apis, errors)
    if sent.unread is not None:
        facts = Facts(sent, f"a request of {sent.client or 'some client'}", VOUCH_FOR_ALL)
        facts.unread = sent.unread
        facts.refused = sent.protocol == "grpc" and is_refused(error)
    else:
        facts = _BY_PROTOCOL[sent.protocol](sent, error, arguments)
    facts.vouched = _is_named(sent, safe) or _is_vouched(sent.subject, safe, errors)
    return facts


def _is_named(sent: Sent, safe: tuple[str, ...]) -> bool:
    """Return whether `safe` names a call, as the adapters of Redis and gRPC take names, too."""
    if not safe or not sent.method:
        return False
    if sent.protocol == "redis" and sent.unread is None:
        from forbear.services.redis.vouch import names_of

        return not names_of(sent.method, sent.subject[0][0]).isdisjoint(text.upper() for text in safe)
    name = sent.method.removeprefix("/")
    return not {name, f"/{name}", f"/{name.partition('/')[0]}/*"}.isdisjoint(safe)


def _is_vouched(call: object, safe: tuple[str, ...], errors: tuple[BaseException, ...]) -> bool:
    """Return whether a named set vouches for a call: one in `safe`, or in a scope that was open when it was sent."""
    from forbear.run.vouching import is_vouched, is_vouched_within

    if any(isinstance(each, OperationSet) and each(call) for each in safe):
        return True
    return is_vouched(call) or any(is_vouched_within(call, error) for error in errors)


def row_of(facts: Facts) -> Ruling:
    """Return the first row that fits a request."""
    for row in ROWS[:-1]:
        if row.fits(facts):
            return row
    return ROWS[-1]


find = walk.find
"""Looks for requests in an error; `judge` then judges them. `forbear.run.judge_slot` asks both."""


def judge(evidence: Evidence, error: BaseException, context: "RunContext") -> Judgement:
    """Return the judgement on the least safe request of the `evidence` that was found in `error`."""
    plan, until = context.plan, _find_latest(context)
    return _rule(*_find_least_safe(evidence, error, Arguments.of(context), plan.safe, plan.apis, until, context.reads))


def _rule(row: Ruling, facts: Facts) -> Judgement:
    """Return the judgement of the row that fits a request."""
    if row.repeats:
        return _MAYBE_DONE if row.maybe_done else _BILLED if row.code == "safe" and facts.billed else _REPEATED
    return _forbid(row, facts)


_REPEATED = Judgement("functions", None, Safety.ALWAYS, repeatable=True)
_BILLED = _REPEATED.replace(billed=True)
_MAYBE_DONE = Judgement("functions", None, Safety.ALWAYS, repeatable=True, maybe_done=(409, 412))


def judge_sent(
    sent: Sent, context: "RunContext | None", reads: Sequence[object], *, done: bool, word: Word
) -> Judgement:
    """Return the judgement on a request that an adapter has sent, for the ledger.

    `done` says whether it has succeeded. None as `context` is for any run, and `reads` are those before the request.
    """
    arguments = Arguments(None, (), {}) if context is None else Arguments.of(context)
    safe = word.safe if context is None else (*word.safe, *context.plan.safe)
    apis = word.apis if context is None else (*word.apis, *context.plan.apis)
    if sent.protocol == "http":
        facts = http_facts(sent, arguments, safe, apis, known=word.judgement)
    else:
        facts = facts_of(sent, Exception(), arguments, safe, apis)
    facts.vouched = facts.vouched or word.vouched
    if word.automatic is not None and not facts.safe and facts.condition in (None, "key"):
        facts.condition, facts.kept, facts.automatic, facts.span = "key", True, True, word.automatic
    facts.done = done
    facts.read_before = bool(reads) and sent.method not in READS and was_read(sent, reads)
    facts.until = 0.0 if context is None or facts.automatic else _find_latest(context)
    return _rule(row_of(facts), facts)


def _find_latest(context: "RunContext") -> float:
    """Return the seconds after the start of the run at which the next attempt may begin, at the latest."""
    limits = context.plan.limits
    until = context.elapsed + limits.max_retry_after
    return until if limits.timeout is None else min(until, limits.timeout)


def judge_alone(error: BaseException) -> Judgement | None:
    """Return the judgement on what `error` shows without a run: there are no arguments, so each key counts as new."""
    evidence = walk.read(error)
    if evidence is None:
        return None
    row, facts = _find_least_safe(evidence, error, Arguments(None, (), {}))
    return _rule(row, facts).replace(operation=facts.what)


def may_repeat(error: BaseException) -> bool:
    """Return False if `error` shows a request that must not be executed twice, True for any other error.

    It is for the conditions of other retry libraries. It does not say that an error is transient. Keys and versions
    count as new in each attempt, since nobody knows what stays the same. TypeError for anything but an exception.

    >>> forbear.may_repeat(ConnectionRefusedError())
    True
    """
    if not isinstance(error, BaseException):
        raise TypeError(f"`error` must be an exception, got {error!r}")
    evidence = walk.read(error)
    return evidence is None or _find_least_safe(evidence, error, Arguments(None, (), {}))[0].repeats


def _forbid(row: Ruling, facts: Facts) -> Judgement:
    """Return the judgement of a row that stops, with its reason and its cure."""
    why = row.why.format(what=facts.what)
    if facts.done:
        why = why.replace("may have been executed", "has been executed")
    text = f"{why}; {row.cure.format(cure=facts.cure)}"
    return Judgement("functions", facts.what, Safety.NEVER, refused=text)


def _find_least_safe(
    evidence: Evidence,
    error: BaseException,
    arguments: Arguments,
    safe: tuple[str, ...] = (),
    apis: "tuple[Api, ...]" = (),
    until: float = 0.0,
    reads: Sequence[object] = (),
) -> tuple[Ruling, Facts]:
    """Return the least safe request of the evidence, and its row.

    `until` is the number of seconds after the start of the run at which the next attempt may begin, at the latest.
    `reads` are those that adapters made in the attempt.
    """
    known = [facts_of(sent, error, arguments, safe, apis, evidence.errors) for sent in evidence.requests]
    for sent, each in zip(evidence.requests, known, strict=True):
        each.until = until
        each.read_before = bool(reads) and sent.method not in READS and was_read(sent, reads)
    pairs = [(row_of(facts), facts) for facts in known]
    return pairs[0] if len(pairs) == 1 else min(pairs, key=lambda pair: (pair[0].repeats, not pair[0].maybe_done))
