"""The waits of a loop: its calls of sleep, and whether they grow, have jitter and a cap."""

import ast
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from forbear_audit.loops.generators import find_generator, list_yielded
from forbear_audit.loops.loop_exits import failures
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import CAPS, FILE_METHODS, HEADER, RANDOM, RENAMES, STOPS, TELLS, WAITS
from forbear_audit.reading.retry_use import RetryUse, Wait, Waits, grows_to
from forbear_audit.reading.scopes import Loop, list_passed
from forbear_audit.reading.syntax import calls_in, find_all, functions_in, names_in, targets_in, walk_assigned

_MOMENT = 0.1  # seconds: waits up to this are for something on the same machine
_POLLS = ("poll", "flush", "select")  # with the time to wait for an event: `producer.poll(0.5)`


def sleeps(module: Module, nodes: list[ast.stmt]) -> list[ast.Call]:
    """Return the calls of sleep in a piece of code; to wait some time for an event that ends the loop is one."""
    return [
        call
        for call in calls_in(nodes)
        if module.name_of(call.func).rpartition(".")[2] == "sleep"
        or (getattr(call.func, "attr", "") == "wait" and call.args and STOPS.search(ast.unparse(call.func)))
    ]


def mentions_header(nodes: Iterable[ast.AST]) -> bool:
    """Return whether code reads Retry-After, or passes on a name that is called like it."""
    return any(map(HEADER.search, map(ast.unparse, nodes)))


def read_waits(module: Module, loop: Loop, tries: Sequence[ast.Try], attempts: float | None) -> Waits:
    """Return the waits of a loop that makes so many attempts, by its calls of sleep after a failure of `tries`."""
    after_failure = [s for attempt in tries for path in failures(module, loop, attempt) for s in path] or loop.body
    calls = list(dict.fromkeys(sleeps(module, after_failure) or sleeps(module, loop.body)))
    made = find_generator(module, loop)
    if not calls and made is not None and sleeps(made[0], made[1].body):
        return replace(read_waits(*made, (), attempts), node=None)
    if not calls:
        return _read_helper(module, loop, after_failure)
    waits = Waits(node=calls[0], reads_header=mentions_header([loop]))
    argument = calls[0].args[0] if calls[0].args else None
    given = {ast.unparse(call): call.args[0] for call in calls if call.args}
    differ = len(given) > 1 and not all(isinstance(item, ast.Constant) for item in given.values())
    around = next(node for node in module.ancestors(calls[0]) if isinstance(node, Loop))  # small steps, if another one
    if argument is None or differ or around is not loop:
        return waits
    closure = [argument, *walk_assigned(loop.body, argument), *(list_yielded(*made) if made is not None else ())]
    if mentions_header(closure):
        return waits
    return _classify(module, loop, argument, closure, waits, attempts)


def is_momentary(module: Module, use: RetryUse) -> bool:
    """Return whether a retry only waits a moment between attempts, as for a file that another process writes."""
    call = use.policy.waits.node if use.policy.waits.kind == "fixed" and use.code.loop is not None else None
    value = module.constant(call.args[0]) if isinstance(call, ast.Call) and call.args else None
    return isinstance(value, (int, float)) and (
        value < _MOMENT or (value == _MOMENT and use.policy.limits.deadline is True)
    )


def moves_only_files(use: RetryUse) -> bool:
    """Return whether an attempt of a loop only moves or removes files of this machine."""
    names = functions_in(use.code.tried)
    if use.policy.errors.names == ("PermissionError",):
        return all(map(RENAMES.search, names))
    return bool(names) and all(map(FILE_METHODS.search, names))


def _classify(
    module: Module, loop: Loop, argument: ast.expr, closure: list[ast.expr], waits: Waits, attempts: float | None
) -> Waits:
    """Return waits that are fixed or grow, by what the loop changes in the argument of sleep."""
    texts = [ast.unparse(node) for node in closure]
    changed = names_in(argument) & targets_in([loop])
    jitter = any(RANDOM.search(text) for text in texts)
    calls = [node for part in closure for node in ast.walk(part) if isinstance(node, ast.Call)]
    has_calls = any(ast.unparse(call.func) not in ("min", "max", "float", "int", "pow") for call in calls)
    if changed and (jitter or not has_calls):
        compared = [ast.unparse(test.left) for test in find_all(loop.body, ast.Compare)]
        is_capped = any(CAPS.search(text) for text in texts) or ast.unparse(argument) in compared
        longest = None if is_capped else _longest(module, loop, argument, attempts)
        if longest is not None and attempts not in (None, 1, 2) and longest == _longest(module, loop, argument, 2):
            return replace(waits, kind="fixed", jitter=jitter)  # it is multiplied by 1
        return replace(waits, kind="growing", jitter=jitter, longest=longest)
    kind: Wait = "unknown"
    if not changed and not any(isinstance(node, ast.Call) for node in ast.walk(argument)):
        kind = "fixed"
    elif jitter and not changed:
        grows = any("**" in text for text in texts)
        kind = "growing" if grows else "fixed"
    return replace(waits, kind=kind, jitter=jitter)


def _read_helper(module: Module, loop: Loop, after_failure: list[ast.stmt]) -> Waits:
    """Return the waits of a loop without a sleep of its own, by a function of the package that it calls."""
    changed = targets_in([loop])
    for call in calls_in(after_failure):
        home, function = module.resolve_call(call)
        slept = sleeps(home, function.body) if function is not None else []
        if function is not None and len(slept) == 1 and slept[0].args and not names_in(call) & changed:
            argument = slept[0].args[0]
            texts = [ast.unparse(node) for node in (argument, *walk_assigned(function.body, argument))]
            known = any(map(HEADER.search, texts)) or any("**" in text or "retr" in text for text in texts)
            is_set = names_in(argument) & targets_in(function.body)
            return Waits("unknown" if known or is_set else "fixed", node=call)
    return Waits("unknown" if _waits_elsewhere(module, loop, after_failure) else "none")


def _waits_elsewhere(module: Module, loop: Loop, after_failure: list[ast.stmt]) -> bool:
    """Return whether a function that is called after a failure may wait: it sleeps, is awaited, or is called so."""
    if any(map(WAITS.search, functions_in(loop.body))):
        return True
    for call in calls_in(after_failure):
        home, function = module.resolve_call(call)
        polls = getattr(call.func, "attr", "") in _POLLS and {*map(ast.unparse, list_passed(call))} - {"0", "0.0"}
        awaits = isinstance(module.parents.get(call), ast.Await) and not TELLS.search(ast.unparse(call.func))
        if polls or awaits or (function is not None and sleeps(home, function.body)):
            return True
    return False


def _longest(module: Module, loop: Loop, argument: ast.expr, attempts: float | None) -> float | None:
    powers = any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) for node in ast.walk(argument))
    if attempts == math.inf or powers:
        return grows_to(1, 2, attempts)
    if not isinstance(argument, ast.Name):
        return None
    longest = None
    for step in find_all(loop.body, ast.AugAssign):
        if isinstance(step.op, ast.Mult) and isinstance(step.target, ast.Name) and step.target.id == argument.id:
            factor = module.constant(step.value)
            first = [v for v in map(module.constant, module.values(argument)) if isinstance(v, (int, float))]
            if isinstance(factor, (int, float)) and first:
                longest = grows_to(float(first[0]), float(factor), attempts)
    return longest
