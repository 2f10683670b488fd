"""`check`: the rules, applied to the retries of one module."""

import ast
import math
from collections.abc import Iterator

from forbear_audit.libraries.errors import INTERRUPTS, is_answer, is_conflict, is_hopeless, is_status_error
from forbear_audit.loops.waits import is_momentary, moves_only_files
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import CONFLICT_MESSAGES, RENAMES, STATUS_READS
from forbear_audit.reading.retry_use import RetryUse, RetryUses
from forbear_audit.reading.syntax import calls_method, find_all, functions_in, join_bodies, texts_in
from forbear_audit.rules.find import find_retries
from forbear_audit.rules.hidden_ends import find_hidden_ends, find_swallowed
from forbear_audit.rules.last_attempt import last_attempt
from forbear_audit.rules.leftover_state import leaves_behind
from forbear_audit.rules.nesting import find_nested
from forbear_audit.rules.unsafe_repeats import (
    find_blocking_waits,
    find_ignored_retry_after,
    find_unsafe_calls,
    find_unsafe_uses,
    repeats_failures,
)
from forbear_audit.rules.used_up import find_used_up

LibraryFlaw = tuple[str, ast.AST, str, str]
"""A flaw, as a rule reports it, and the library."""

_REWIND = ("google-api-core", "redis", "grpc")
"""The libraries that keep what they send themselves."""

_LONGEST = 120.0  # seconds: a single wait above this needs a reason


def check(module: Module) -> Iterator[LibraryFlaw]:
    """Yield what the rules say of a module."""
    uses = find_retries(module)
    for use in uses:
        for rule, node, message in _check_use(module, use, uses):
            yield rule, node, message, use.policy.library
    yield from find_unsafe_uses(module, uses)
    yield from find_blocking_waits(module, uses)
    yield from find_hidden_ends(module)
    yield from find_used_up(module, uses)


def _check_use(module: Module, use: RetryUse, uses: RetryUses) -> Iterator[tuple[str, ast.AST, str]]:
    yield from use.policy.flaws
    if use.policy.limits.attempts == 1:
        return  # the policy is off
    if not use.defined_elsewhere:
        momentary = is_momentary(module, use)
        yield from _limits(use, momentary=momentary)
        yield from _waits(module, use, momentary=momentary)
        yield from _errors(use, momentary=momentary)
    elif use.code.region:
        yield from _wrong_statuses(use)
    if use.code.region:
        # A list, so that parameters stand for what the call passes only while these two look.
        with module.bound(use.code.function, use.code.call, module):
            flaws = [*find_unsafe_calls(module, use), *find_nested(module, use, uses)]
        yield from flaws
        yield from find_ignored_retry_after(module, use)
        if use.policy.library not in _REWIND:
            for node, message in leaves_behind(module, use):
                yield "STATE", node, message
    yield from (("LOST-CAUSE", *found) for found in find_swallowed(module, use))
    if use.code.loop is not None:
        yield from last_attempt(module, use, use.code.loop)


def _limits(use: RetryUse, *, momentary: bool) -> Iterator[tuple[str, ast.AST, str]]:
    limits = use.policy.limits
    if limits.unbounded:
        yield "UNBOUNDED", use.node, "no limit of attempts and no deadline: it may never end"
    elif limits.deadline is False and not (momentary or limits.at_most_two_attempts or moves_only_files(use)):
        if limits.attempts == 2 and use.policy.waits.kind == "none":
            return
        yield "NO-DEADLINE", use.node, "no limit of time: slow attempts and long waits add up"


def _waits(module: Module, use: RetryUse, *, momentary: bool) -> Iterator[tuple[str, ast.AST, str]]:
    limits, waits = use.policy.limits, use.policy.waits
    place = waits.node or use.node
    is_single = limits.at_most_two_attempts or limits.attempts == 2
    if momentary or (is_single and waits.kind in ("none", "fixed")):
        return  # for something on this machine; a single retry brings no storm
    if (waits.kind == "none" or (waits.kind == "fixed" and not limits.unbounded)) and _is_conflict(module, use):
        return  # the rival has finished
    if use.policy.errors.names == () and use.code.loop is None and not repeats_failures(module, use):
        return  # it repeats by what a call returns: a state is awaited
    if waits.kind == "none":
        yield "FIXED", place, "it does not wait between attempts"
    elif waits.kind == "fixed":
        yield "FIXED", place, "every wait has the same length"
    elif waits.kind == "growing" and waits.jitter is False and not moves_only_files(use):
        yield "NO-JITTER", place, "the waits have no jitter: clients that fail together retry together"
    longest = waits.longest if waits.kind == "growing" and limits.deadline is not True else None
    if longest is not None and longest > _LONGEST:
        yield "NO-CAP", place, f"the waits grow {'without a limit' if longest == math.inf else f'to {longest:.0f} s'}"


def _is_conflict(module: Module, use: RetryUse) -> bool:
    """Return whether a retry repeats after conflicts with a rival: its errors, tests or messages say so."""
    if not use.code.tries:
        chosen = any if use.policy.waits.jitter else all
        return bool(use.policy.errors.names) and chosen(map(is_conflict, use.policy.errors.names or ()))
    body = join_bodies(use.code.handlers)
    tests = [node.test for node in find_all(body, ast.If)]
    types = [value for handler in use.code.handlers if (value := module.value(handler.type)) is not None]
    names = [ast.unparse(n) for e in [*tests, *types] for n in ast.walk(e) if isinstance(n, (ast.Name, ast.Attribute))]
    return any(map(is_conflict, names)) or any(map(CONFLICT_MESSAGES.search, texts_in(body)))


def _errors(use: RetryUse, *, momentary: bool) -> Iterator[tuple[str, ast.AST, str]]:
    errors, names = use.policy.errors, use.policy.errors.names or ()
    every = next((errors.places[name] for name in ("BaseException", "Exception") if name in errors.places), None)
    place = every or errors.node or use.node
    swallowed = [name for name in names if name in INTERRUPTS and name not in errors.inspected]
    if swallowed and not (errors.has_predicate and "BaseException" not in swallowed and use.policy.library != "loop"):
        yield "CATCH-ALL", place, f"it retries {_short(swallowed[0])}, and so swallows interrupts or cancellation"
    elif errors.everything:
        yield "CATCH-ALL", place, "it retries every Exception, bugs included"
    moves = any(map(RENAMES.search, functions_in(use.code.region)))  # Windows refuses it while another program reads
    known = {*errors.cured, *(["PermissionError"] if moves else [])}
    wrong = [name for name in names if is_hopeless(name) and name not in known]
    if wrong and not momentary:
        message = f"another attempt does not cure {' or '.join(map(_short, wrong))}"
        yield "WRONG-ERROR", errors.places.get(wrong[0], place), message
    else:
        yield from _wrong_statuses(use)


def _wrong_statuses(use: RetryUse) -> Iterator[tuple[str, ast.AST, str]]:
    names = use.policy.errors.names or ()
    answers = any(map(is_answer, names))
    if use.policy.errors.has_predicate or not (answers or any(map(is_status_error, names))):
        return
    texts = map(ast.unparse, use.code.region)
    if (answers or calls_method(use.code.attempt, "raise_for_status")) and not any(map(STATUS_READS.search, texts)):
        message = "the error stands for every status from 400, and 4xx is permanent"
        yield "WRONG-ERROR", use.policy.errors.node or use.node, message


def _short(name: str) -> str:
    return name.rpartition(".")[2]
