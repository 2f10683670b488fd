"""The judgement of what a failed function sent: one row of a table decides for each request.

Of several requests the least safe one decides. The judge is loaded at the first failure of a function, through the slot
in `forbear.run.judge_slot`. Evidence only ever stops a run: what the policy does not retry is not retried.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.evidence import walk
from forbear.evidence.sent import Sent
from forbear.evidence.walk import Evidence
from forbear.http.request import READS
from forbear.judges.arguments import Arguments
from forbear.judges.data_facts import BY_PROTOCOL, is_refused, was_read
from forbear.judges.facts import VOUCH_FOR_ALL, Facts, Word, are_reads, http_facts, is_covered, is_used_up
from forbear.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from forbear.http.api import Api
    from forbear.run.judge_slot import RunContext


_CONDITIONS = (None, "version", "absent", "key")


class Ruling(NamedTuple):
    """One row of the table.

    - `code` names it, for tests and docs.
    - `repeats` is True if the function is then called again.
    - `fits` says whether the facts about a request lead to this row, if they lead to no row before it.
    - `why` and `cure` are the words of the note if the row stops, in which `{what}` is the request and `{cure}` how to
      vouch for it.
    - `conditions` has the conditions of requests that the row is for, by default all.
    - `maybe_done`: a later conflict may be one's own.
    """

    code: str
    repeats: bool
    fits: Callable[[Facts], object]
    why: str = ""
    cure: str = "{cure}"
    conditions: tuple[str | None, ...] = _CONDITIONS
    maybe_done: bool = False


def _check(test: Callable[[Facts], object]) -> Callable[[Facts], object]:
    return test  # so that type checkers know the parameter of a lambda


_ALWAYS = _check(lambda _: True)


ROWS: tuple[Ruling, ...] = (
    Ruling(
        "used_up",
        False,
        attrgetter("used_up"),
        "{what} sent what the attempt read from a file or an iterator of outside, and the next would send what is left",
        "open it in the function, or pass bytes",
    ),
    Ruling("read", True, attrgetter("is_read")),
    Ruling("not_sent", True, attrgetter("not_sent")),
    Ruling("refused", True, attrgetter("refused")),
    Ruling("rolled_back", True, attrgetter("rolled_back")),
    Ruling("vouched", True, attrgetter("vouched")),
    Ruling(
        "still_open",
        False,
        attrgetter("still_open"),
        "{what} belongs to a transaction that is still open, and a repeat would go on with it",
        "decorate the function that begins it, and roll back there, as `with connection:` does",
    ),
    Ruling(
        "their_transaction",
        False,
        _check(lambda f: f.rolled_back is False and not f.safe),
        "{what} belongs to a transaction that may have begun before the function",
        "decorate the function that begins the transaction, or open the session or connection in it",
    ),
    Ruling("unread", False, _check(lambda f: f.unread is not None), "{what} could not be read"),
    Ruling(
        "autocommit",
        False,
        attrgetter("commits_alone"),
        "{what} was rolled back, but statements before it may have been committed by themselves",
        "begin a transaction in the function, with a connection that does not commit by itself",
    ),
    Ruling("commits", False, attrgetter("commits"), "{what} may have been committed"),
    Ruling(
        "claims",
        False,
        attrgetter("claims"),
        "{what} says by its value who was first, and a repeat would say: somebody else",
        "write a value of your own and read it back, or {cure}",
    ),
    Ruling(
        "made",
        False,
        _check(lambda f: f.done and (f.kept or f.condition == "absent")),
        "{what} has succeeded, and the next attempt would be in conflict with it",
        "decorate what follows it by itself, or {cure}",
        conditions=("absent", "version"),
    ),
    Ruling("version_kept", True, attrgetter("kept"), conditions=("version",), maybe_done=True),
    Ruling(
        "version",
        False,
        _ALWAYS,
        "{what} depends on a version, and the next attempt would read a newer one",
        "use forbear.update, or pass the version to the function",
        conditions=("version",),
    ),
    Ruling(
        "drawn",
        False,
        attrgetter("drawn"),
        "{what} creates a name that looks new in each attempt",
        "pass the name to the function",
        conditions=("absent",),
    ),
    Ruling("absent", True, _ALWAYS, conditions=("absent",), maybe_done=True),
    Ruling(
        "read_before",
        False,
        _check(lambda f: f.safe and f.read_before),
        "{what} writes what the attempt has read before, and the next attempt would read what was written",
        "use forbear.update, or {cure}",
    ),
    Ruling("safe", True, attrgetter("safe")),
    Ruling(
        "used_key",
        False,
        _check(lambda f: f.automatic and f.done),
        "{what} has succeeded, and the next attempt would send it with another key",
        "send a key of forbear.run_key, or {cure}",
    ),
    Ruling(
        "expired",
        False,
        _check(lambda f: f.kept and f.until > f.span),
        "{what} has a key that the server may have forgotten by the next attempt",
        "pass a shorter timeout, or say for how long the server remembers keys, by forbear.Api",
        conditions=("key",),
    ),
    Ruling("key", True, attrgetter("kept"), conditions=("key",)),
    Ruling(
        "new_key",
        False,
        _ALWAYS,
        "{what} has a key that may be new in each attempt",
        "take it from forbear.run_key, or pass it to the function",
        conditions=("key",),
    ),
    Ruling("never", False, _ALWAYS, "{what} may have been executed and must not be executed twice"),
)
"""The table: the first row that fits decides for each request."""

_BY_CONDITION = {each: tuple(row for row in ROWS if each in row.conditions) for each in _CONDITIONS}


def facts_of(
    sent: Sent, errors: tuple[BaseException, ...], arguments: Arguments, safe: tuple[str, ...], apis: "tuple[Api, ...]"
) -> Facts:
    """Return the facts about a request that `errors` show; `safe` and `apis` are the user's word."""
    if sent.protocol == "http":
        facts = http_facts(sent, arguments, safe, apis, errors)
    elif sent.unread is not None:
        facts = Facts(sent, f"a request of {sent.client or 'some client'}", sent.cure or VOUCH_FOR_ALL)
        facts.unread = sent.unread
        facts.refused = sent.protocol == "grpc" and is_refused(errors[0])
    else:
        facts = BY_PROTOCOL[sent.protocol](sent, errors, arguments)
    facts.used_up = is_used_up(sent, facts.not_sent, arguments, errors)
    if sent.protocol != "http" and not (facts.is_read or facts.not_sent):
        facts.vouched = _is_named(sent, safe) or is_covered(sent.subject, safe, errors)
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


def row_of(facts: Facts) -> Ruling:
    """Return the row that decides about a request."""
    row = ROWS[-1]  # it fits always
    for row in _BY_CONDITION[facts.condition]:
        if row.fits(facts):
            break
    return row


is_bare, find = walk.is_bare, walk.find
"""Look for requests in an error; `judge` then judges them. `forbear.run.judge_slot` asks all three."""


def judge(evidence: Evidence, error: BaseException, context: "RunContext") -> Judgement | None:
    """Return the judgement on the least safe request of the `evidence` that was found in `error`.

    None if only variables show requests, which worked, and a repeat of them does no harm: nothing says what failed.
    """
    if evidence.has_responses and not are_reads(evidence.requests, context.plan.apis):
        evidence = evidence.leave_out(Arguments.of(context).find_objects(error).__contains__)
    if are_reads(evidence.requests, context.plan.apis):
        return None if evidence.is_of_variables else _REPEATED
    row, facts = _find_least_safe(evidence, context)
    return None if row.repeats and evidence.is_of_variables else _rule(row, facts, context.plan.safe)


def _rule(row: Ruling, facts: Facts, safe: tuple[str, ...] = ()) -> Judgement:
    """Return the judgement of the row that fits a request; `safe` is the word of the run."""
    if not row.repeats:
        return _forbid(row, facts, safe)
    return _MAYBE_DONE if row.maybe_done else _BILLED if row.code == "safe" and facts.billed else _REPEATED


_REPEATED = Judgement("functions", None, Safety.ALWAYS, repeatable=True)
_BILLED = _REPEATED.replace(billed=True)
_MAYBE_DONE = Judgement("functions", None, Safety.ALWAYS, repeatable=True, maybe_done=(409, 412))


def judge_sent(
    sent: Sent, context: "RunContext | None", reads: "Sequence[object]", *, done: bool, word: Word
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
        facts = facts_of(sent, (Exception(),), arguments, safe, apis)
    facts.vouched = facts.vouched or word.vouched
    if word.automatic is not None and not facts.safe and facts.condition in (None, "key"):
        facts.condition, facts.kept, facts.automatic, facts.span = "key", True, True, word.automatic
    facts.done = done
    facts.read_before = bool(reads) and sent.method not in READS and was_read(sent, reads)
    if context is not None and not facts.automatic and facts.condition == "key":
        _note_latest(facts, context)
    return _rule(row_of(facts), facts, () if context is None else context.plan.safe)


def _note_latest(facts: Facts, context: "RunContext") -> None:
    """Note the seconds after the start of the run at which the next attempt may begin, at the latest."""
    limits = context.plan.limits
    until = context.elapsed + limits.max_retry_after
    facts.until = until if limits.timeout is None else min(until, limits.timeout)


def judge_alone(error: BaseException) -> Judgement | None:
    """Return the judgement on what `error` shows without a run: there are no arguments, so each key counts as new."""
    evidence = walk.read(error)
    if evidence is None:
        return None
    row, facts = _find_least_safe(evidence, None)
    is_nothing = row.repeats and evidence.is_of_variables
    return None if is_nothing else _rule(row, facts).replace(operation=facts.what)


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
    return evidence is None or _find_least_safe(evidence, None)[0].repeats


def _forbid(row: Ruling, facts: Facts, safe: tuple[str, ...]) -> Judgement:
    """Return the judgement of a row that stops, with its reason, its cure, and what in `safe` does not match."""
    what = facts.what
    why = row.why.format(what=what)
    if facts.done:
        why = why.replace("may have been executed", "has been executed")
    unmatched = [f'"{redact(word)}"' for word in safe if not facts.is_matched(word)]
    if unmatched:
        why += f" (safe={', '.join(unmatched)} does not match it)"
    text = f"{why}; {row.cure.format(cure=facts.cure)}"
    return Judgement("functions", what, Safety.NEVER, refused=text)


def _find_least_safe(evidence: Evidence, context: "RunContext | None") -> tuple[Ruling, Facts]:
    """Return the least safe request of the evidence, and its row; without a run there are no arguments."""
    arguments = Arguments(None, (), {}) if context is None else Arguments.of(context)
    safe, apis = ((), ()) if context is None else (context.plan.safe, context.plan.apis)
    pairs: list[tuple[Ruling, Facts]] = []
    for sent in evidence.requests:
        facts = facts_of(sent, evidence.errors, arguments, safe, apis)
        if context is not None and not facts.is_read:
            if facts.condition == "key":
                _note_latest(facts, context)
            if sent.method not in READS and (reads := context.reads):
                facts.read_before = was_read(sent, reads)
        pairs.append((row_of(facts), facts))
    return min(pairs, key=lambda pair: (pair[0].repeats, not pair[0].maybe_done))
