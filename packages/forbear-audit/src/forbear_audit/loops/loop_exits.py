"""The ways through a loop: which errors and statuses repeat it, what leaves it, and what runs after a failure."""

import ast
from collections.abc import Iterable
from typing import cast

from forbear_audit.libraries.errors import error_names, is_doubtful
from forbear_audit.loops.paths import AGAIN, ON, Walk, is_exit, is_out
from forbear_audit.loops.statuses import FAILED, GOOD, Status, truth
from forbear_audit.reading.modules import Module
from forbear_audit.reading.names import is_none
from forbear_audit.reading.patterns import TAKES_NEXT, WAITS
from forbear_audit.reading.scopes import Loop, following, walk_inside
from forbear_audit.reading.syntax import calls_in, calls_method, functions_in, names_in, names_stored, operands

_RAISING = ("raise_for_status", "fail_json", "fail", "abort")
"""Methods that may raise."""


def may_leave(nodes: list[ast.stmt], *kinds: type[ast.stmt]) -> bool:
    """Return whether code has a statement that leaves the loop (one of `kinds`, if given), or a call that raises."""
    for node in walk_inside(nodes):
        if isinstance(node, kinds) if kinds else isinstance(node, ast.stmt) and is_exit(node):
            return True
    return calls_method(nodes, *_RAISING)


def continues(module: Module, loop: Loop, handler: ast.ExceptHandler) -> bool:
    """Return whether the loop may go on after a handler."""
    return _may_repeat(module, loop, handler.body, "any")


def survives(module: Module, loop: Loop, attempt: ast.Try, handler: ast.ExceptHandler, status: Status) -> bool:
    """Return whether a loop may go on after an error with this status: past its handler, and past what follows it."""
    return _may_repeat(module, loop, [*handler.body, *statements_after(module, loop, attempt)], status)


def is_caught(module: Module, loop: Loop, node: ast.stmt) -> bool:
    """Return whether all that leaves a statement is an error after whose handler the loop surely goes on."""
    around, walk = module.parents[node], Walk(module, "any", _flags(loop))
    if not isinstance(around, ast.Try) or node not in around.body or not any(map(is_out, walk.ways([node]))):
        return False
    return not any(map(is_out, walk.ways([ast.Try([node], around.handlers, [], [])])))


def names_of_errors(handlers: list[ast.ExceptHandler], code: list[ast.stmt]) -> set[str]:
    """Return the names that hold an error of these handlers, or something that `code` computes from it."""
    names = {handler.name for handler in handlers if handler.name}
    nodes = [*walk_inside(code)]
    for _ in range(2):  # a name of a name
        for node in nodes:
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
                about = names_in(node.value) & names or "exc_info" in ast.unparse(node.value)
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {ast.unparse(target) for target in targets} if about else set()
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
                names |= {ast.unparse(node.func.value)} if names_in(node) & names else set()
    return names


def statements_after(module: Module, loop: Loop, node: ast.AST) -> list[ast.stmt]:
    """Return the statements that follow `node` within an attempt, to the end of the loop."""
    rest: list[ast.stmt] = []
    while node is not loop:
        rest += following(module, node)
        node = module.parents[node]
    return rest


def statements_below(module: Module, loop: Loop) -> list[ast.stmt]:
    """Return the statements that run when the attempts are used up: the `else` of a loop, and what follows it."""
    rest, node = [*loop.orelse], cast("ast.AST", loop)
    while True:
        after, around = following(module, node), module.parents[node]
        rest += after
        if after or not isinstance(around, (ast.With, ast.AsyncWith)):
            return rest
        node = around


def failures(module: Module, loop: Loop, attempt: ast.Try) -> list[list[ast.stmt]]:
    """Return what runs after each error that does not leave the loop: the handler, and all that follows it."""
    rest = statements_after(module, loop, attempt)
    return [[*handler.body, *rest] for handler in attempt.handlers if continues(module, loop, handler)]


def success_leaves(module: Module, loop: Loop, attempt: ast.Try) -> bool:
    """Return whether an attempt without an error leaves the loop, while one with an error may not."""
    success = [*attempt.body, *attempt.orelse, *statements_after(module, loop, attempt)]
    walks = [Walk(module, status, _flags(loop), awaited=_find_awaited(loop), fails=True) for status in GOOD]
    ends = [walk.ways(success) for walk in walks]
    leaving = [ways for ways in ends if any(map(is_out, ways)) and ON not in ways]
    leaving = leaving or [ways for ways in ends if AGAIN not in ways and _checks_answer(module, loop, attempt, success)]
    if not leaving:
        return False
    if all(AGAIN in ways for ways in leaving) and not any(map(WAITS.search, functions_in(loop.body))):
        return False  # it goes on after a success, too, without a wait: a pump
    return any(_may_repeat(module, loop, path, "any") for path in failures(module, loop, attempt))


def _checks_answer(module: Module, loop: Loop, attempt: ast.Try, success: list[ast.stmt]) -> bool:
    """Return whether a loop ends if it likes the answer of an attempt, and else asks again at once.

    One that waits then, or takes the next message, waits for a state.
    """
    errors = [name for handler in attempt.handlers for name in error_names(module, handler.type) or ()]
    is_lost = any(is_doubtful(name, "network") and name not in ("Exception", "BaseException") for name in errors)
    known, calls = names_stored(attempt.body), functions_in(attempt.body)
    tests = [node for node in success if isinstance(node, ast.If) and names_in(node.test) & known]
    handled = {id(call) for handler in attempt.handlers for call in calls_in(handler.body)}
    others = [call for call in calls_in(loop.body) if id(call) not in handled]
    waits = any(WAITS.search(ast.unparse(call.func)) for call in others)
    ends = any(may_leave(test.body, ast.Return, ast.Break) for test in tests)
    return ends and is_lost and not (waits or may_leave(attempt.body) or any(map(TAKES_NEXT.search, calls)))


def find_repeated_statuses(module: Module, loop: Loop, statuses: Iterable[int] = FAILED) -> tuple[int, ...]:
    """Return those of some statuses that may repeat a loop, empty if no success surely ends it."""
    if all(_may_repeat(module, loop, loop.body, status) for status in GOOD):
        return ()
    return tuple(status for status in statuses if _may_repeat(module, loop, loop.body, status))


def _may_repeat(module: Module, loop: Loop, body: list[ast.stmt], status: Status) -> bool:
    """Return whether a loop may make another round after this code and a response with this status."""
    if isinstance(loop, ast.While) and status != "any" and truth(module, loop.test, status) is False:
        return False
    return not all(map(is_out, Walk(module, status, _flags(loop), awaited=_find_awaited(loop)).ways(body)))


def _flags(loop: Loop) -> frozenset[str]:
    """Return the names in the test of a `while`: a constant assigned to one of them is a way out."""
    return frozenset(names_in(loop.test)) if isinstance(loop, ast.While) else frozenset()


def _find_awaited(loop: Loop) -> frozenset[str]:
    """Return the names that the test of a `while` compares with None: a result that is assigned to one is a way out."""
    leaves = [*operands(loop.test)] if isinstance(loop, ast.While) else []
    tests = [leaf for leaf in leaves if isinstance(leaf, ast.Compare) and isinstance(leaf.ops[0], (ast.Is, ast.Eq))]
    return frozenset(ast.unparse(test.left) for test in tests if is_none(test.comparators[0]))
