"""The judges: compare a run under a fault with the clean runs, and return what is wrong with its retries."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from dis import opmap
from types import CodeType

from forbear_audit.storm.counting import CHANGES
from forbear_audit.storm.faults import INJECTED, KINDS, MAYBE_DONE, RETRY_AFTER, PlannedFault
from forbear_audit.storm.observe import StormLimits
from forbear_audit.storm.run_record import STUCK, RunRecord, SentCall, StormEnded
from forbear_audit.storm.stack import is_of_client, is_part_of

_READING_RPC = re.compile(r"/[\w.]+/(?:Get|List|Describe|Search|Lookup|Count|Check|BatchGet|Query|Read)(?![a-z])")
"""The RPCs that read, by their names: those of services without a table are no more than doubted."""

NESTED_ATTEMPTS = 5
"""The most attempts that one retry makes, for a call that the audit suspects to be within two."""


@dataclass(frozen=True, slots=True)
class StormFinding:
    """One thing that is wrong with the retries of one call.

    `site` is file:line of the user's code, `call` the call and its number, `fault` the fault in the form that
    `--forbear-fault` takes ("" without one). Example: see `storm`.
    """

    kind: str
    rule: str
    test: str
    site: str
    call: str
    fault: str
    text: str

    @property
    def is_note(self) -> bool:
        """Return whether it is information that fails no test."""
        return KINDS[self.kind].is_note

    @property
    def reproduction(self) -> str:
        """Return the command that shows it again, "" for a test that is not deterministic."""
        test, fault = (text.replace("'", "'\"'\"'") for text in (self.test, self.fault))
        return f"pytest '{test}' --forbear-fault '{fault}'" if self.fault else ""

    def as_dict(self) -> dict[str, str]:
        """Return the finding as JSON has it."""
        return asdict(self) | {"reproduction": self.reproduction}


def unstable(test: str, text: str) -> StormFinding:
    """Return the finding for a test that the storm cannot judge, because it is not the same each time."""
    return StormFinding("unstable", "", test, "?", "", "", text)


def plan(clean: RunRecord) -> list[PlannedFault]:
    """Return all faults to try: each fault for each call, and lasting ones from the first call of each place on."""
    faults: list[PlannedFault] = []
    places: set[tuple[str, str]] = set()
    for call in clean.calls:
        faults += [PlannedFault(call.label, call.number, name) for name in call.applicable()]
        if call.responded and (call.label, call.site) not in places:
            places.add((call.label, call.site))
            names = [name for name in ("503", "refused", "lost") if name in call.faults]
            faults += [PlannedFault(call.label, call.number, name, lasting=True) for name in names]
    return faults


def judge(
    test: str, clean: RunRecord, run: RunRecord, limits: StormLimits, *, nested: bool = False
) -> list[StormFinding]:
    """Return the findings on one run with a fault, compared with a clean run of the same test.

    `nested` says whether the audit suspects the call to be within two retries.
    """
    fault = run.fault
    target = next((call for call in run.calls if call.fault is not None), None)
    if fault is None:
        return []
    if target is None:
        return [unstable(test, f"{fault.label}#{fault.number} did not occur in the run with the fault")]
    return [
        StormFinding(kind, rule, test, target.site, f"{target.label}#{target.number}", str(fault), text)
        for kind, text in _judge_all(clean, run, target, limits, nested=nested)
        for rule in ["CATCH-ALL" if kind == "late" and run.ends.found else KINDS[kind].rule]
    ]


def _judge_all(
    clean: RunRecord, run: RunRecord, target: SentCall, limits: StormLimits, *, nested: bool
) -> Iterator[tuple[str, str]]:
    place = (target.label, target.site)
    attempts = 1 + run.sent()[place] - clean.sent()[place]
    lasting = run.fault is not None and run.fault.lasting
    duplicated = list(_duplicates(clean, run, target))
    yield from duplicated
    if lasting:
        yield from _find_too_many(run, attempts, limits.attempts, nested=nested)
    if run.ends.found:
        yield "late", "no end: a bare `except:`, or one of BaseException, goes on after each error, interrupts included"
    elif run.ended == STUCK:
        yield "late", "no end: the test waits for something that does not come, and without a limit"
    elif run.time.judged and run.elapsed > limits.minutes * 60:
        yield "late", f"no end within {limits.minutes:g} virtual minutes"
    if target.fault == "429" and run.time.judged:
        again = next((call for call in run.calls if call.number > target.number and call.label == target.label), None)
        if again is not None and attempts > 1 and again.at - target.at < RETRY_AFTER:
            yield "early", f"sent again after {again.at - target.at:.1f} s; Retry-After was {RETRY_AFTER} s"
    if run.outcome != "failed" or run.error is None or isinstance(run.error, StormEnded) or run.ended:
        return
    if not _is_injected(run.error, run, target):
        if not duplicated:
            yield _failure(run.error, target, run.test, more=attempts > 1)
    elif not target.by_test and not lasting and attempts <= 1 and (not target.unsafe or target.fault == "refused"):
        yield "lost", "given up at the first fault, though it is safe to send again"


def _find_too_many(run: RunRecord, attempts: int, limit: int, *, nested: bool) -> Iterator[tuple[str, str]]:
    """Yield the finding for more attempts than the limit while a fault lasts: without an end, nested, or many."""
    made = f"{attempts} attempts at one call while the fault lasts"
    if attempts > limit and run.ended not in (None, STUCK):
        yield "storm", f"at least {made}, and no end; the limit is {limit}"
    elif nested and attempts > NESTED_ATTEMPTS:
        yield "nested", f"{made}: the attempts of retries within each other multiply"
    elif attempts > limit:
        yield "many", f"{made}; the limit is {limit}"


def _duplicates(clean: RunRecord, run: RunRecord, target: SentCall) -> Iterator[tuple[str, str]]:
    """Yield the finding for an unsafe call that was sent again after it may have been executed, if it was."""
    if not target.unsafe or target.fault not in MAYBE_DONE:
        return
    sent = [call for call in run.calls if _is_again(call, target)]
    again = len(sent) > sum(_is_again(call, target) for call in clean.calls)
    if not again and sum(call.unsafe for call in run.calls) <= sum(call.unsafe for call in clean.calls):
        return
    rose, sent_as = _find_risen_count(clean, run, new=again), (target.label, target.number)
    if rose is not None:
        yield "duplicated", f"executed again after its response was {_HOW[target.fault]}: {rose}"
    elif again and not any(call.counted for call in clean.calls if (call.label, call.number) == sent_as):
        keys = {call.key for call in sent[sent.index(target) :] if call.site == target.site}
        how = f"sent again after its response was {_HOW[target.fault]}"
        if None in keys:
            kind = "doubted" if _READING_RPC.match(target.label) else "suspected"
            yield kind, f"{how}: the server may execute it twice"
        elif len(keys) > 1:
            yield "rekeyed", f"{how}, with another idempotency key: the server takes it for a call of its own"


def _is_again(call: SentCall, target: SentCall) -> bool:
    """Return whether a call is the one with the fault, or may be that again: by its label, or by lines and method."""
    if call.label == target.label:
        return True
    methods = {one.label.partition(" ")[0] for one in (call, target)}
    return call.unsafe and len(methods) == 1 and call.frames == target.frames != ()


def _find_risen_count(clean: RunRecord, run: RunRecord, *, new: bool) -> str | None:
    """Return which count rose more than in a clean run, and by how much; None if none did.

    With `new`, more effects count too if their names are other ones, as with numbers that the server makes.
    """
    for source, counts in run.effects.items():
        effects, others = counts, new
        before = clean.effects.get(source, Counter())
        if source == "Redis":
            if effects[CHANGES] <= before[CHANGES]:
                continue  # such as the LPOP of an empty list
            effects, others = Counter({name: counts[name] for name in counts if name != CHANGES}), False
        more = sorted(name for name in effects if effects[name] > before[name] and (before[name] or effects[name] > 1))
        if more:
            name = more[0]
            return f"`{name}` rose by {effects[name]} instead of {before[name] or 1}"
        if others and before.total() and effects.total() > before.total():
            return f"`{source}` rose by {effects.total()} instead of {before.total()}"
    return None


_MISTAKES = (AttributeError, LookupError, NameError, TypeError, ValueError)
"""The errors that Python raises where code takes a bad response for a good one."""


def _failure(error: BaseException, target: SentCall, test: CodeType | None, *, more: bool) -> tuple[str, str]:
    """Return the kind and the text for a test that fails with an error that does not come from the fault.

    `more` says whether the call was sent again.
    """
    said = str(error).strip().partition("\n")[0]
    shown = f"{type(error).__name__}: {said}" if said else type(error).__name__
    if target.by_test:
        return "unchecked", f"the test makes this call by itself, and does not expect the fault: {shown}"
    frame, is_raised = _origin(error)
    is_mistake = isinstance(error, _MISTAKES) and not is_raised
    by_test = is_mistake and frame is not None and is_part_of(frame, test)
    if by_test or isinstance(error, AssertionError) or type(error).__module__ == "_pytest.outcomes":
        if more:
            return "unchecked", f"the call was sent again, and the test counts calls or time: {shown}"
        return "silent", f"no error is raised, but the result is wrong: {shown}"
    if is_mistake:
        return "broken", f"the code takes what it got for a good response: {shown}"
    return "wrong", f"the test fails with {shown}, which does not come from the injected fault"


def _origin(error: BaseException) -> tuple[CodeType | None, bool]:
    """Return the code in which an error arose, and whether a `raise` statement raised it there.

    A `raise` of client libraries and of the standard library does not count.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None, False
    code = trace.tb_frame.f_code
    return code, not is_of_client(code.co_filename) and code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]


_HOW = {"lost": "lost", "slow": "late", "cut": "cut off"}


def _is_injected(error: BaseException, run: RunRecord, target: SentCall) -> bool:
    """Return whether `error` is one that the storm injected, or comes from one, or names the injected status."""
    known = {id(injected) for injected in run.injected}
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        current = waiting.pop()
        if not isinstance(current, BaseException) or id(current) in seen:
            continue
        seen.add(id(current))
        text = str(current)
        is_marked = INJECTED in text and not isinstance(current, AssertionError)
        if id(current) in known or is_marked or (target.fault in {"503", "429"} and target.fault in text):
            return True
        response = getattr(current, "response", None)
        if target.fault in {"503", "429"} and str(getattr(response, "status_code", "")) == target.fault:
            return True
        if target.fault == "slow" and isinstance(current, TimeoutError):
            return True
        waiting += [current.__cause__, current.__context__, getattr(current, "reason", None), *current.args]
        waiting += getattr(current, "exceptions", ())
    return False


def drop_repeats(findings: Iterable[StormFinding]) -> list[StormFinding]:
    """Return the first finding of each kind for each call and place, with all that are no notes first."""
    kept: dict[tuple[str, str, str], StormFinding] = {}
    for finding in findings:
        kept.setdefault((finding.kind, finding.site, finding.call.partition("#")[0]), finding)
    return sorted(kept.values(), key=lambda finding: finding.is_note)


def number_of_each(listed: list[dict[str, str]]) -> str:
    """Return how many findings there are of each kind, such as "1 duplicated, 2 lost"."""
    kinds = sorted({finding["kind"] for finding in listed})
    counts = (f"{sum(finding['kind'] == kind for finding in listed)} {kind}" for kind in kinds)
    return ", ".join(counts) or "nothing found"


def _name_kind(finding: dict[str, str]) -> str:
    return f"{finding['kind']} ({finding['rule']})" if finding["rule"] else finding["kind"]


def finding_title(finding: dict[str, str]) -> str:
    """Return kind, rule, call and place of a finding."""
    return f"{_name_kind(finding)}: {finding['call']} at {finding['site']}"


def finding_lines(finding: dict[str, str]) -> str:
    """Return a finding as text: what, where, and the command that shows it again."""
    call = f"{finding['call']} at {finding['site']}: " if finding["call"] else ""
    lines = [f"{_name_kind(finding)}: {finding['test']}", f"  {call}{finding['text']}"]
    return "\n".join(lines + ([f"  {finding['reproduction']}"] if finding["reproduction"] else []))


def text_of_missed_fault(fault: str, sent: list[str]) -> str:
    """Return the error for a fault of `--forbear-fault` that met none of the calls that were sent."""
    calls = f"they sent {', '.join(sent)}" if sent else "they sent none that a storm sees"
    return f"ERROR: `--forbear-fault '{fault}'` meets no call of these tests; {calls}"
