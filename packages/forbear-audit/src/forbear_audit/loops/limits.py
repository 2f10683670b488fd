"""The limits of a loop: a number of attempts, a deadline, or a way out that cannot be judged."""

import ast
import math

from forbear_audit.loops.generators import find_generator, find_iterated_call, list_iterated
from forbear_audit.loops.loop_exits import is_caught, may_leave
from forbear_audit.loops.statuses import truth
from forbear_audit.loops.waits import sleeps
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import CLOCK, COUNTS_RETRIES, LOGS, MAXIMUM, STOPS, TIME, TIME_SCOPES
from forbear_audit.reading.retry_use import Limits
from forbear_audit.reading.scopes import Function, Loop, defaults, parameters, walk_inside
from forbear_audit.reading.syntax import (
    calls_in,
    find_all,
    has,
    join_bodies,
    names_in,
    names_stored,
    operands,
    plain_names_in,
    statements_of_handlers,
    targets_in,
    walk_assigned,
)


def read_limits(module: Module, loop: Loop, *, asks: bool = False) -> Limits:
    """Return the limit of attempts and the deadline of a loop.

    Both are None if the loop ends by something that may be no limit, such as a flag that another thread sets. The
    head of a loop that `asks` is the attempt itself.
    """
    counting = counters(loop)
    made = find_generator(module, loop)
    inner = read_limits(*made) if made is not None else None
    timed = _names_of_waits(module, loop)
    tests = _tests(module, loop)
    deadline: bool | None = has_scope(module, loop) or any(_is_time(loop, test, timed) for test in tests)
    if isinstance(loop, ast.While):
        attempts = (_count_compared_attempts if asks else _count_while_attempts)(module, loop, counting)
    elif inner is not None:
        attempts = inner.attempts if inner.attempts != math.inf else _count_compared_attempts(module, loop, counting)
        deadline = deadline or inner.deadline
    else:
        attempts = _count_for_attempts(module, loop, counting)
    counted = not isinstance(loop, ast.While) or any(names_in(leaf) & counting for t in tests for leaf in operands(t))
    if attempts is None and not deadline and not counted:
        deadline = None
    return Limits(attempts, deadline, _is_few(module, loop))


def counters(loop: Loop) -> set[str]:
    """Return the names that differ from attempt to attempt: counted ones, and those computed from them or the clock."""
    result = names_in(loop.target) if isinstance(loop, (ast.For, ast.AsyncFor)) else set[str]()
    assigns = [*find_all(loop.body, ast.Assign)]
    for step in find_all(loop.body, ast.AugAssign):
        if isinstance(step.op, (ast.Add, ast.Sub, ast.Mult)):
            result.add(ast.unparse(step.target))
    for call in calls_in(loop.body):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("pop", "popleft"):
            result.add(ast.unparse(call.func.value))  # a list of waits that gets shorter
    result |= {each.target.id for each in find_all([loop], ast.NamedExpr) if isinstance(each.value, ast.BinOp)}
    for _ in range(2):  # a name of a name
        for assign in assigns:
            own = {ast.unparse(target) for target in assign.targets}
            if isinstance(assign.value, ast.Constant) or own <= result:
                continue
            steps = isinstance(assign.value, ast.BinOp) and bool(own & names_in(assign.value))
            if steps or names_in(assign.value) & result or CLOCK.search(ast.unparse(assign.value)):
                result |= own
    return result


def is_limit(loop: Loop, test: ast.expr, counting: set[str]) -> bool:
    """Return whether a test compares the number of attempts, the time, or a name computed from them."""
    return any(
        bool(names_in(leaf) & counting)
        or (isinstance(leaf, ast.Compare) and bool(MAXIMUM.search(ast.unparse(leaf))))
        or (bool(TIME.search(" ".join(_texts(loop, leaf)))) and not isinstance(leaf, ast.Constant))
        for leaf in operands(test)
    )


def has_scope(module: Module, loop: Loop) -> bool:
    """Return whether a loop, or what it does, is within a limit of time such as `asyncio.timeout`."""
    for node in (*module.ancestors(loop), *walk_inside(loop.body)):
        items = node.items if isinstance(node, (ast.With, ast.AsyncWith)) and node not in loop.body else []
        calls = [item.context_expr for item in items if isinstance(item.context_expr, ast.Call)]
        if any(TIME_SCOPES.search(module.name_of(call.func)) for call in calls):
            return True
        if isinstance(node, Function):
            return False
    return False


def _tests(module: Module, loop: Loop) -> list[ast.expr]:
    """Return the conditions that may end a loop: its own, and those before something that leaves it."""
    tests = [loop.test] if isinstance(loop, ast.While) else []
    kinds = (ast.If, ast.Assert)
    nodes = [n for n in walk_inside(loop.body) if isinstance(n, kinds) and not is_caught(module, loop, n)]
    return tests + [n.test for n in nodes if isinstance(n, ast.Assert) or may_leave([n]) or has(n, ast.Continue)]


def _texts(loop: Loop, test: ast.expr) -> list[str]:
    """Return the text of a test, and of what the loop assigns to the names in it."""
    return [ast.unparse(test), *map(ast.unparse, walk_assigned(loop.body, test))]


def _is_time(loop: Loop, test: ast.expr, timed: set[str]) -> bool:
    """Return whether a test compares the time: the clock, a deadline, or the sum of the waits."""
    steps = [step for step in find_all(loop.body, ast.AugAssign) if isinstance(step.value, ast.Constant)]
    numbers = {ast.unparse(step.target) for step in steps if getattr(step.value, "value", 0) == 1}
    for leaf in operands(test):
        if names_in(leaf) & timed:
            return True
        if names_in(leaf) & numbers and not CLOCK.search(ast.unparse(leaf)):
            continue  # `left` attempts
        if isinstance(leaf, ast.Name):
            if any(CLOCK.search(text) for text in _texts(loop, leaf)):
                return True
            continue
        if TIME.search(ast.unparse(leaf)):
            return True
    return False


def _names_of_waits(module: Module, loop: Loop) -> set[str]:
    """Return the names that sum up the waits (`waited += delay`, then `sleep(delay)`), and those computed from them."""
    waits = {ast.unparse(call.args[0]) for call in sleeps(module, loop.body) if call.args}
    steps = [node for node in find_all(loop.body, ast.AugAssign) if not isinstance(node.value, ast.Constant)]
    sums = {ast.unparse(node.target) for node in steps if ast.unparse(node.value) in waits}
    for node in find_all(loop.body, ast.Assign):
        if names_in(node.value) & sums:
            sums |= {ast.unparse(target) for target in node.targets}
    return sums


def _count_for_attempts(module: Module, loop: ast.For | ast.AsyncFor, counting: set[str]) -> float | None:
    values = list_iterated(module, loop)
    if values is not None:
        return float(len(values))
    known = find_iterated_call(module, loop)
    if known is not None:
        call, name = known
        if name in ("count", "cycle") or (name == "repeat" and len(call.args) == 1):
            return _count_compared_attempts(module, loop, counting)
        numbers = [_number(module, item) for item in call.args]
        if 1 <= len(numbers) <= 2 and None not in numbers:
            ends = [number for number in numbers if number is not None]
            most = float(ends[-1] - (ends[0] if len(ends) == 2 else 0))
            return None if most <= 1 and not isinstance(call.args[-1], ast.Constant) else most  # a default for none
    return None


def _number(module: Module, expr: ast.expr | None) -> int | None:
    value = module.constant(expr)
    return value if isinstance(value, int) else None


def _is_few(module: Module, loop: Loop) -> bool:
    """Return whether a parameter limits the attempts, and its default allows at most two."""
    if isinstance(loop, ast.While):
        leaves = [leaf for test in _tests(module, loop) for leaf in operands(test)]
        bounds = [bound for leaf in leaves if isinstance(leaf, ast.Compare) for bound in leaf.comparators]
    else:
        bounds = [*loop.iter.args] if isinstance(loop.iter, ast.Call) else []
    for bound in bounds:
        more = sum(1 for node in ast.walk(bound) if isinstance(node, ast.Constant) and node.value == 1)
        given = (_find_default(module, node) for node in ast.walk(bound) if isinstance(node, ast.Name))
        if any((number := _number(module, default)) is not None and number + more <= 2 for default in given):
            return True
    return False


def _find_default(module: Module, expr: ast.expr) -> ast.expr | None:
    """Return the default of the parameter that a name is, None if it is none or has none."""
    name, function = getattr(expr, "id", ""), module.function_of(expr)
    while function is not None and name not in {one.arg for one in parameters(function)}:
        function = module.function_of(function)
    return None if function is None or module.values(expr) else defaults(function).get(name)


def _count_while_attempts(module: Module, loop: ast.While, counting: set[str]) -> float | None:
    constant = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    asked = [ast.unparse(leaf) for leaf in operands(loop.test)]  # only a flag that another thread may set
    flag = not any(names_in(leaf) & counting for leaf in operands(loop.test)) and all(map(STOPS.search, asked))
    if not (constant or flag or _is_off(module, loop.test) or _tests_only_success(module, loop, counting)):
        return None  # a condition: a counter, or something that another thread changes
    return _count_compared_attempts(module, loop, counting)


def _is_off(module: Module, test: ast.expr) -> bool:
    """Return whether a limit of 0, None or infinity lets a loop go on: `while not most or n < most`."""
    match test:
        case ast.BoolOp(op=ast.Or(), values=[ast.UnaryOp(op=ast.Not(), operand=limit), ast.Compare()]):
            return module.constant(limit) in (None, 0)
        case ast.BoolOp(
            op=ast.Or(),
            values=[ast.Compare(left=limit, ops=[ast.Is()], comparators=[ast.Constant(None)]), ast.Compare()],
        ):
            return _is_none_by_default(module, limit)
        case ast.Compare(comparators=[limit]):
            return module.constant(limit) == math.inf
        case _:
            return False


def _tests_only_success(module: Module, loop: ast.While, counting: set[str]) -> bool:
    """Return whether the test of a loop only reads what an attempt sets when it succeeds: flags, a status."""
    stored = targets_in(loop.body) - targets_in(statements_of_handlers(loop.body)) - counting
    tested = {leaf: _find_tested(leaf) for leaf in operands(loop.test)}
    names = plain_names_in(loop.test)
    is_plain = all(name is not None or truth(module, leaf, 200) is not None for leaf, name in tested.items())
    return is_plain and bool(names) and (names <= stored or {*tested.values()} <= stored)


def _find_tested(test: ast.expr) -> str | None:
    """Return what a test says to be no result yet: a flag, `result is None`, `done is False`, `self.conn.closed`."""
    match test:
        case ast.Name() | ast.Compare(left=ast.Name() | ast.Attribute(), comparators=[ast.Constant(None | False)]):
            return ast.unparse(test if isinstance(test, ast.Name) else test.left)
        case ast.Attribute(value=owner, attr="closed"):
            return ast.unparse(owner)
        case _:
            return None


def _count_compared_attempts(module: Module, loop: Loop, counting: set[str]) -> float | None:
    """Return the attempts of a loop without end: a number if a test compares one, None if a limit may exist."""
    errors = {handler.name for handler in find_all(loop.body, ast.ExceptHandler) if handler.name}
    results = names_stored(join_bodies(find_all(loop.body, ast.Try))) - counting
    for test in _tests(module, loop):
        if test is getattr(loop, "test", None) or _is_never(module, test):
            continue
        for leaf in operands(test):
            if truth(module, leaf, 200) is not None:
                continue  # that is success, not a limit
            if names_in(leaf) & counting:
                return _limit(module, loop, leaf)
            if names_in(leaf) & (errors | results):
                continue
            if isinstance(leaf, ast.Name) and _is_set_once(module, loop, leaf):
                return 2  # `if retried: raise`
            if "self." in ast.unparse(leaf) or STOPS.search(ast.unparse(leaf)) or isinstance(leaf, ast.Call):
                return None
    returned = {id(node) for node in walk_inside([*find_all(loop.body, ast.Return)])}  # that is the attempt itself
    others = (node for node in walk_inside(loop.body) if id(node) not in returned)
    return None if any(_is_in_other_hands(module, node, counting) for node in others) else math.inf


def _is_never(module: Module, test: ast.expr) -> bool:
    """Return whether a limit is off by default: `self.most is not None and ...`, `most and ...`, for None and 0."""
    for leaf in operands(test) if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else ():
        match leaf:
            case ast.Compare(left=limit, ops=[ast.IsNot()], comparators=[ast.Constant(None)]):
                return _is_none_by_default(module, limit)
            case ast.Attribute() | ast.Name():
                return module.constant(leaf) in (None, 0)
            case _:
                pass
    return False


def _is_none_by_default(module: Module, limit: ast.expr) -> bool:
    """Return whether a limit is None, or a parameter that is None unless the caller sets it."""
    given = _find_default(module, limit)
    is_default = isinstance(given, ast.Constant) and given.value is None
    return module.constant(limit) is None or (is_default and module.value(limit) is limit)


def _is_set_once(module: Module, loop: Loop, flag: ast.Name) -> bool:
    """Return whether a flag has one value before a loop, perhaps by default, and the other one after a failure."""
    given = _find_default(module, flag)
    values = [value.value for value in (given, *module.values(flag)) if isinstance(value, ast.Constant)]
    stored = [value.value for value in walk_assigned(loop.body, flag) if isinstance(value, ast.Constant)]
    return values[:1] in ([False], [True]) and stored == [not values[0]]


def _limit(module: Module, loop: Loop, leaf: ast.expr) -> float | None:
    """Return the number of attempts that a counter from 0 or 1 is compared with, None if it cannot be read."""
    if isinstance(leaf, ast.Name) or (isinstance(leaf, ast.Compare) and module.constant(leaf.comparators[0]) == 0):
        return _countdown(module, loop, leaf.left if isinstance(leaf, ast.Compare) else leaf)
    if not isinstance(leaf, ast.Compare) or len(leaf.ops) != 1 or not isinstance(leaf.left, ast.Name):
        return None
    name, bound = leaf.left.id, _number(module, leaf.comparators[0])
    steps = [node for node in find_all(loop.body, ast.AugAssign) if ast.unparse(node.target) == name]
    first = [module.constant(value) for value in module.values(leaf.left)]
    if bound is None or len(steps) != 1 or not isinstance(steps[0].op, ast.Add) or first not in ([0], [1]):
        return None
    if not isinstance(leaf.ops[0], (ast.GtE, ast.Eq, ast.Gt)):
        return None
    late = isinstance(leaf.ops[0], ast.Gt) + (steps[0].lineno > leaf.lineno)
    return float(bound + late - (first == [1]))


def _countdown(module: Module, loop: Loop, counter: ast.expr) -> float | None:
    """Return the number from which a counter goes down to 0, None if it cannot be read."""
    steps = [node for node in find_all(loop.body, ast.AugAssign) if names_in(node.target) & names_in(counter)]
    first = [module.constant(value) for value in module.values(counter)]
    if len(steps) != 1 or not isinstance(steps[0].op, ast.Sub) or len(first) != 1 or not isinstance(first[0], int):
        return None
    return float(first[0])


def _is_in_other_hands(module: Module, node: ast.AST, counting: set[str]) -> bool:
    """Return whether a call may count the attempts: a schedule, an object of retries, or what gets the number."""
    if not isinstance(node, ast.Call):
        return False
    function = module.resolve_call(node)[1] if any(names_in(item) & counting for item in node.args) else None
    if function is not None and has(ast.Module(function.body, []), ast.Raise):
        return True
    name = ast.unparse(node.func).lower()
    return not (LOGS.search(name) or name.endswith("sleep")) and (bool(COUNTS_RETRIES.search(name)) or name == "next")
