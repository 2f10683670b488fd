"""UNSAFE, RETRY-AFTER and BLOCKING: what is repeated, after which answer of the server, and how the retry waits."""

import ast
from collections.abc import Iterator

from forbear_audit.libraries.errors import error_names, find_predicate, is_doubtful
from forbear_audit.libraries.http import is_reading, says_purpose
from forbear_audit.libraries.unsafe_calls import unsafe_calls_in
from forbear_audit.loops.loop_exits import continues, find_repeated_statuses, may_leave, survives
from forbear_audit.loops.paths import goes_on, returned
from forbear_audit.loops.statuses import DOUBTFUL, is_status, numbers, truth
from forbear_audit.loops.waits import mentions_header
from forbear_audit.reading import patterns
from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import RetryUse, RetryUses
from forbear_audit.reading.scopes import keyword, walk_inside
from forbear_audit.reading.syntax import calls_in, find_all, join_bodies, names_in, plain_names_in
from forbear_audit.rules.find import find_retries

_BUSY, _MISSING = 429, 404
_LOST = (2006, 2013, 2055, 10053, 10054, "08000", "08003", "08006", "08007", "08S01", "57P01", "57P02")
"""The codes of MySQL, SQL Server and PostgreSQL for a connection that was lost."""

_DECIDING = ("retry_on_exception", "retry_on_result", "on", "predicate")
"""The options of decorators with a function that decides: of retrying, stamina and google-api-core."""

_CONDITIONS = ("retry_if_exception", "retry_if_result")
_ACTING_TEXTS = (patterns.INSERTS, patterns.MUTATIONS, patterns.ADDING_UPDATES)
_ACTING = ("POST", "PATCH", "post", "patch")
_DEEPEST = 3  # classes of classes
_MOST_READ = 30  # functions in which an error may be raised
_REPEATING = (ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler)


def find_unsafe_calls(module: Module, use: RetryUse) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield the calls that are repeated though they may have been executed, and are not safe to repeat."""
    if use.policy.is_safe or _knows_duplicates(module, use):
        return
    errors = _doubts(module, use)
    errors += tuple(name for error in errors for name in _find_causes(module, use.code.attempt, error, []))
    by_status = repeats_failures(module, use)
    if not errors and not by_status:
        return
    inspected = frozenset[str]() if _repeats_lost(module, use) else use.policy.errors.inspected
    created = _names_created(use.code.region)
    for unsafe in unsafe_calls_in(module, use.code.attempt, repeated=[*use.code.region, *use.code.around]):
        if created and any(isinstance(n, ast.If) and names_in(n.test) & created for n in module.ancestors(unsafe.node)):
            continue
        names = errors if unsafe.kind != "sql" else [name for name in errors if name not in inspected]
        if (by_status and unsafe.kind == "network") or any(is_doubtful(name, unsafe.kind) for name in names):
            rule = "UNSAFE" if unsafe.is_seen else "MAYBE-UNSAFE"
            yield rule, unsafe.node, f"{unsafe.text} is repeated; {unsafe.why}"
            if unsafe.key is not None:
                yield "OUTER-KEY", unsafe.key, f"the key of {unsafe.text} is another one in every attempt"


def _repeats_lost(module: Module, use: RetryUse) -> bool:
    """Return whether a handler repeats after a code that says that the connection to a database was lost.

    Other codes tell if the transaction was undone.
    """
    for test in find_all(join_bodies(use.code.handlers), ast.If):
        leaves = may_leave(test.body, ast.Raise, ast.Return, ast.Break)
        for compared in find_all([test.test], ast.Compare):
            side = compared.comparators[0]
            is_lost = any(code in _LOST for code in module.items(side) or (module.constant(side),))
            if is_lost and isinstance(compared.ops[0], (ast.NotIn, ast.NotEq)) == leaves:
                return True
    return False


def _knows_duplicates(module: Module, use: RetryUse) -> bool:
    """Return whether code handles the answer "this was done before", an error or a status, as a success."""
    loop, region = use.code.loop, use.code.region
    nodes: list[ast.ExceptHandler | ast.If] = [*find_all(region, ast.ExceptHandler), *find_all(region, ast.If)]
    for node in nodes:
        test = node.type if isinstance(node, ast.ExceptHandler) else node.test
        leaves = any(isinstance(inner, (ast.Return, ast.Break)) for inner in node.body)
        ends = loop is not None and isinstance(node, ast.ExceptHandler) and not continues(module, loop, node)
        is_done = (leaves or ends) and not isinstance(node.body[-1], ast.Raise)
        if is_done and test is not None and patterns.DUPLICATES.search(ast.unparse(test)):
            return True
    return False


def _names_created(region: list[ast.stmt]) -> set[str]:
    """Return the names that say whether a row is new: the second ones of `row, created = get_or_create(...)`."""
    return {
        target.elts[1].id
        for node in find_all(region, ast.Assign)
        if isinstance(node.value, ast.Call) and "get_or_create" in ast.unparse(node.value.func)
        for target in node.targets
        if isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[1], ast.Name)
    }


def _doubts(module: Module, use: RetryUse) -> tuple[str, ...]:
    """Return the errors that are retried, without those whose handler goes on after statuses such as 429 only."""
    if use.code.loop is None or not use.code.tries:
        home, give_up = find_predicate(module, keyword(use.node, "giveup") if isinstance(use.node, ast.Call) else None)
        if give_up is not None and all(returned(home, give_up, status) == {True} for status in (*DOUBTFUL, None)):
            return ()
        return use.policy.errors.names or ()
    certain: set[str] = set()
    for handler in use.code.tries[0].handlers:
        outcomes = (survives(module, use.code.loop, use.code.tries[0], handler, status) for status in (*DOUBTFUL, None))
        if not any(outcomes):
            certain |= {*(error_names(module, handler.type) or ())}
    return tuple(name for name in use.policy.errors.names or () if name not in certain)


def _find_causes(module: Module, region: list[ast.stmt], error: str, read: list[ast.AST]) -> Iterator[str]:
    """Yield the errors and failed statuses for which code raises an error of its own package."""
    if is_doubtful(error, "network") or "." not in error:
        return
    last = error.rpartition(".")[2]
    for node in walk_inside(region):
        if isinstance(node, ast.Raise) and last in _names_with_bases(module, node.exc):
            around = next((p for p in module.ancestors(node) if isinstance(p, (ast.If, ast.ExceptHandler))), None)
            if isinstance(around, ast.ExceptHandler):
                yield from error_names(module, around.type) or ()
            elif around is not None and any(truth(module, around.test, status) for status in DOUBTFUL):
                yield "forbear.transient"
        elif isinstance(node, ast.Call) and len(read) < _MOST_READ:
            for home, function in module.list_behaviours(node):
                if function not in read:
                    read.append(function)
                    yield from _find_causes(home, function.body, error, read)


def _names_with_bases(module: Module, raised: ast.expr | None) -> list[str]:
    """Return the last parts of the names of an error that is raised, and of what it is made of."""
    made = raised.func if isinstance(raised, ast.Call) else raised
    names = list[str]()
    for _ in range(_DEEPEST):
        if not isinstance(made, (ast.Name, ast.Attribute)):
            break
        names.append(module.name_of(made).rpartition(".")[2])
        module, node = module.definition(made)
        made = node.bases[0] if isinstance(node, ast.ClassDef) and node.bases else None
    return names


def repeats_failures(module: Module, use: RetryUse) -> bool:
    """Return whether a status of 5xx leads to another attempt: by the conditions of a loop, or by a predicate."""
    if use.code.loop is not None:
        return bool(find_repeated_statuses(module, use.code.loop, DOUBTFUL))
    tests = [*_conditions(module, use)]
    said = [
        (returned(home, each, status), returned(home, each, _MISSING)) for home, each in tests for status in DOUBTFUL
    ]
    return any(now == {True} or (False not in now and False in missing) for now, missing in said)  # or it is left open


def _conditions(module: Module, use: RetryUse) -> Iterator[tuple[Module, ast.AST]]:
    """Yield the functions that decide for a decorator whether it retries, with their modules."""
    made = module.value(use.node) if isinstance(use.node, ast.expr) else None
    if not isinstance(made, ast.Call):
        return
    given = [keyword(made, name) for name in _DECIDING]
    given += made.args[1:2] if module.name_of(made.func) == "backoff.on_predicate" else []
    for node in ast.walk(module.value(keyword(made, "retry")) or ast.Constant(None)):
        if isinstance(node, ast.Call) and module.name_of(node.func).rpartition(".")[2] in _CONDITIONS:
            given += node.args[:1]
    for each in given:
        home, chosen = find_predicate(module, each)
        if chosen is not None:
            yield home, chosen


def find_unsafe_uses(module: Module, uses: RetryUses) -> Iterator[tuple[str, ast.AST, str, str]]:
    """Yield the calls that pass what to send to a function of the package with a retry: `self.request("POST", ...)`."""
    own = {use.code.function.name for use in uses if use.code.function is not None}
    for call in module.calls:
        named = getattr(call.func, "attr", getattr(call.func, "id", "")) in own
        texts = [*_list_texts(module, call)]
        acts = any(text in _ACTING or any(says.search(text) for says in _ACTING_TEXTS) for text in texts)
        if not (acts or (named and any(map(str.isidentifier, texts)))):
            continue
        home, function = module.resolve_behaviour(call)
        others = uses if home is module else home.keep(find_retries)
        use = others.by_function.get(id(function)) or others.by_place.get(id(function))
        user = module.function_of(call)
        if function is None or use is None or (user is not None and is_reading(user.name)):
            continue
        with home.bound(function, call, module), home.bound(use.code.function, use.code.call, home):
            hits = [*find_unsafe_calls(home, use)]
        shown = user is not None and says_purpose(module, user)
        keys = [hit for hit in hits if hit[0] == "OUTER-KEY"]
        for rule, _, message in hits[:1] + keys[:1]:
            seen = "UNSAFE" if shown and rule == "MAYBE-UNSAFE" else rule
            yield seen, call, f"{message} (in {function.name}())", use.policy.library


def _list_texts(module: Module, call: ast.Call) -> Iterator[str]:
    """Yield the texts that a call passes: constants, those in `text(...)`, and statements that have a name."""
    for item in call.args[:2]:
        value = module.value(item) if isinstance(item, ast.Name) and item.id.isupper() else item
        inner = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
        text = inner.value if isinstance(inner, ast.Constant) else None
        if isinstance(text, str) and (item is inner or " " in text):
            yield text


def find_ignored_retry_after(module: Module, use: RetryUse) -> Iterator[tuple[str, ast.AST, str]]:
    """Yield the condition that sends a status 429 to another attempt, if no code reads the server's Retry-After."""
    if use.policy.waits.reads_header or (use.policy.waits.kind == "unknown" and use.policy.waits.node is not None):
        return
    conditions = [*_conditions(module, use)]
    nodes: list[ast.AST] = [*use.code.region, *(each for _, each in conditions)]
    if not use.defined_elsewhere and isinstance(use.node, ast.expr):
        nodes.append(use.node)
    place = next((node for part in nodes for node in ast.walk(part) if _asks_for_429(module, node)), None)
    if place is None or not _is_retried(module, use, conditions) or _may_read(use, nodes):
        return
    yield "RETRY-AFTER", place, "after a 429 the server's Retry-After is not read"


def _asks_for_429(module: Module, node: ast.AST) -> bool:
    """Return whether a node compares a status with 429, alone or among others."""
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    if not any(is_status(module, side) or "status" in ast.unparse(side) for side in sides):
        return False
    return any(_BUSY in (numbers(module, side) or ()) for side in sides)


def _is_retried(module: Module, use: RetryUse, conditions: list[tuple[Module, ast.AST]]) -> bool:
    """Return whether a 429 may lead to another attempt."""
    if use.code.loop is not None:
        bodies = [use.code.loop.body, *(handler.body for handler in use.code.handlers)]
        return any(
            any(_asks_for_429(module, node) for node in walk_inside(body)) and goes_on(module, body, _BUSY)
            for body in bodies
        )
    return True if not conditions else any(returned(home, each, _BUSY) != {False} for home, each in conditions)


def _may_read(use: RetryUse, nodes: list[ast.AST]) -> bool:
    """Return whether code reads the header, or lets a function look at the response to compute the wait."""
    if mentions_header(nodes) or any(patterns.RESET.search(ast.unparse(node)) for node in nodes):
        return True
    for call in calls_in(use.code.region):
        names = set[str]().union(*map(plain_names_in, call.args))
        if patterns.WAITS.search(ast.unparse(call.func)) and any(map(patterns.RESPONSES_AND_ERRORS.search, names)):
            return True
    return False


def find_blocking_waits(module: Module, uses: list[RetryUse]) -> Iterator[tuple[str, ast.AST, str, str]]:
    """Yield the waits that stop an event loop: `time.sleep()` in a coroutine, and the waits of libraries there.

    A sleep counts in a loop or an error handler. A sync function that a coroutine calls is left alone: it may run in
    a thread.
    """
    for call in module.calls:
        if not _is_sleep(module, call) or not isinstance(module.scope(call), ast.AsyncFunctionDef):
            continue
        around = next(each for each in module.ancestors(call) if isinstance(each, (*_REPEATING, ast.AsyncFunctionDef)))
        if isinstance(around, _REPEATING):
            yield "BLOCKING", call, "time.sleep() stops the whole event loop", "loop"
    for use in uses:
        if isinstance(module.scope(use.node), ast.AsyncFunctionDef) and _waits_in_sync(module, use):
            name = use.policy.library
            yield "BLOCKING", use.node, f"{name} waits by time.sleep() here, which stops the event loop", name


def _is_sleep(module: Module, call: ast.Call) -> bool:
    """Return whether a call is `time.sleep(...)` of more than zero, under any name."""
    if isinstance(call.func, ast.Name):
        sleeps = module.imports.get(call.func.id) == "time.sleep"
    else:
        named = isinstance(call.func, ast.Attribute) and call.func.attr == "sleep"
        sleeps = named and module.name_of(call.func) == "time.sleep"
    return sleeps and not (call.args and module.constant(call.args[0]) == 0)


def _waits_in_sync(module: Module, use: RetryUse) -> bool:
    """Return whether a retry in a coroutine is `for attempt in Retrying(...)`, or a call of `Retrying(...)`."""
    if use.policy.library not in ("tenacity", "stamina", "retrying") or use.policy.waits.kind == "none":
        return False
    parent = module.parents.get(use.node)
    if isinstance(parent, ast.For) and parent.iter is use.node:
        return True
    made = module.value(use.node) if isinstance(use.node, ast.expr) else None
    kind = module.name_of(made.func).rpartition(".")[2] if isinstance(made, ast.Call) else ""
    return kind == "Retrying" and isinstance(parent, ast.Call) and parent.func is use.node
