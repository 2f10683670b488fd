"""A file among the others of its package: what an expression stands for, here or in the module that it comes from."""

import ast
import math
from collections.abc import Iterable
from itertools import islice
from typing import cast

from forbear_audit.reading.names import DEEPEST, choose_only, index_puts, is_none
from forbear_audit.reading.objects import Objects
from forbear_audit.reading.patterns import NUMBER
from forbear_audit.reading.scopes import (
    Function,
    call_like,
    defaults,
    from_package,
    has_unknown,
    hides_arguments,
    keyword,
    parameters,
    walk_inside,
)
from forbear_audit.reading.syntax import compute_number, keep_simple, make_key

_WIDEST = 1000  # parts of a constant
_MOST_OPTIONS = 50  # no retry has as many, and each call would get a list of them all
_MOST_CALLERS = 6  # of a function whose parameters are looked for in its calls
_FIELDS = ("field", "Field", "ib", "attrib")
_KEPT = (
    "cache", "lru_cache", "fixture", "property", "cached_property", "staticmethod", "classmethod", "contextmanager",
    "asynccontextmanager", "override",
)  # fmt: skip
"""The decorators of functions whose calls still stand for what the functions return."""

RUNNERS = {
    "to_thread": 0, "run_in_executor": 1, "run_in_threadpool": 0, "run_sync": 0, "submit": 0, "map": 0, "starmap": 0,
}  # fmt: skip
"""The methods that run a function which they get, and its position."""


class Module(Objects):
    """A file among the others of its package."""

    def value(self, expr: ast.expr | None) -> ast.expr | None:
        """Return the expression behind `expr`: the only value of a name, an attribute or an item, else `expr`.

        A call of a function of this package that only returns something stands for that, too, a parameter for what
        all calls pass. Of `given or default` it is the default, of `a if b else c` the only call.
        """
        for _ in range(3 * DEEPEST):
            inner = self._step(expr) if expr is not None else None
            if inner is None or inner is expr:
                break
            expr = inner
        return expr

    def _step(self, expr: ast.expr) -> ast.expr | None:
        match expr:
            case ast.Name() | ast.Attribute():
                return self.find_assigned(expr)
            case ast.Await(value=inner) | ast.NamedExpr(value=inner):
                return inner
            case ast.Call() | ast.Subscript():
                return self.find_once(self._returned, expr, self._find_result, None)
            case ast.BoolOp(op=ast.Or(), values=[*_, (ast.Call() | ast.Name() | ast.Attribute()) as inner]):
                return inner
            case ast.BoolOp(op=ast.Or(), values=[first, ast.Tuple() as default]):
                given = self.value(first)
                return given if isinstance(given, ast.Tuple) and given.elts else default
            case ast.IfExp():
                calls = [side for side in (expr.body, expr.orelse) if isinstance(side, ast.Call)]
                return calls[0] if len(calls) == 1 else None
            case _:
                return None

    def _find_item(self, item: ast.Subscript) -> ast.expr | None:
        """Return the item of a constant dictionary, or the only value that its home puts at its key."""
        owner, home = item.value, self.home_of(item.value)
        made, wanted = self.value(owner), make_key(self.constant(item.slice))
        found = list[ast.expr | None]()
        if isinstance(made, ast.Dict) and wanted is not ...:
            pairs = [*zip(made.keys, made.values, strict=True)][::-1]
            items = (one and item for one, item in pairs if one is None or self.constant(one) == wanted)
            found = [*islice(items, 1)]  # the last one counts, and after it `**others` may have the key, too
        if isinstance(owner, (ast.Name, ast.Attribute)):
            found += home.keep(index_puts).get((home.owner_of(owner), ast.unparse(owner), wanted), [])
        known = [one for one in found if one is not None]
        return self.take(home, choose_only(known)) if len(known) == len(found) else None

    def find_assigned(self, name: ast.Name | ast.Attribute) -> ast.expr | None:
        """Return the only expression that is assigned to a name, here or in its module; None if there is none."""
        home = self.home_of(name)
        values = home.values(name)
        if values:
            return self.take(home, choose_only(values))
        if isinstance(name, ast.Name) and name.id not in home.imports:
            fixture = home.top.get(name.id)
            function = home.function_of(name)
            is_given = function is not None and name.id in {one.arg for one in parameters(function)}
            if isinstance(fixture, ast.FunctionDef) and is_given:
                return self.take(home, home.find_returned(fixture))
            return self.take(home, home.find_passed(name)) if function is not None else None
        place, node = self.definition(name)
        if isinstance(node, ast.expr):
            return self.take(place, node)
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        is_property = any(ast.unparse(each).endswith("property") for each in decorators)
        return self.take(place, place.find_returned(node)) if isinstance(node, Function) and is_property else None

    def find_passed(self, name: ast.Name) -> ast.expr | None:
        """Return what all calls in this module pass for a parameter, or its default; None if they differ."""
        function = self.function_of(name)
        while function is not None and name.id not in {one.arg for one in parameters(function)}:
            function = self.function_of(function)
        if function is None or name.id in ("self", "cls"):  # no call writes these
            return None
        around = self.parents.get(function)
        called = around if isinstance(around, ast.ClassDef) and function.name == "__init__" else function
        if (function, name.id) not in self._passed:
            self._passed[function, name.id] = None  # a circle ends here
            place = [one.arg for one in parameters(function)].index(name.id) - isinstance(around, ast.ClassDef)
            hiding = has_unknown if name.id in {one.arg for one in function.args.kwonlyargs} else hides_arguments
            callers = self.find_callers(called.name)
            unknown = [call for call in callers.get(None, []) if keyword(call, name.id) and self.is_given(call.func)]
            passing, passed = 0, dict[str, ast.expr | None]()
            for call in [*callers.get(called, []), *unknown]:
                one = None
                if len(call.args) > place or hides_arguments(call) or keyword(call, name.id) is not None:
                    passing += 1  # the others need no reading
                    one = self.pass_arguments(function, call, self).get(name.id)
                    if one is None and hiding(self.whole(call)):
                        return None
                held = self.values(one) if isinstance(one, ast.Attribute) and called is around else [one]
                inside = (self.class_of if called is around else self.function_of)(call) is called
                if inside and [getattr(each, "id", None) for each in held] == [name.id]:
                    continue  # it passes on what it has
                passed[ast.unparse(one) if one is not None else ""] = one
                if len(passed) > 1 or passing > _MOST_CALLERS:
                    return None
            found = next(iter(passed.values()), None) or defaults(function).get(name.id)
            self._passed[function, name.id] = None if found is None or is_none(found) else found
        return self._passed[function, name.id]

    def _find_result(self, call: ast.expr) -> ast.expr | None:
        """Return what a function of this package returns to a call, or an item; None if it is none or does more."""
        if not isinstance(call, ast.Call):
            return self._find_item(call) if isinstance(call, ast.Subscript) else None
        home, function = self.resolve_call(call)
        return self.take(home, home.find_returned(function)) if function is not None else self._find_default(call)

    def _find_default(self, call: ast.Call) -> ast.expr | None:
        """Return the default in a call that reads a setting or declares a field: `getenv("TRIES", 3)`, `field(...)`."""
        dotted = self.name_of(call.func)
        last = dotted.rpartition(".")[2]
        if last in _FIELDS:
            made = keyword(call, "default_factory", "factory")
            if isinstance(made, (ast.Name, ast.Attribute)):
                made = self.adopt(self.home_of(call), call_like(made, made))
            first = call.args[0] if call.args and last == "Field" else None
            return made.body if isinstance(made, ast.Lambda) else made or keyword(call, "default") or first
        if (
            last in ("enter_context", "enter_async_context", "closing", "nullcontext", "staticmethod")
            and len(call.args) == 1
        ):
            return call.args[0]
        if dotted in ("getattr", "typing.cast", "cast"):
            return call.args[-1] if len(call.args) > 1 + (last == "getattr") else None
        if dotted in ("os.getenv", "os.environ.get"):
            return call.args[1] if len(call.args) > 1 else None
        if dotted in ("int", "float") and len(call.args) == 1:
            given = self.value(call.args[0])
            match given:
                case ast.Constant(value=str() as text):
                    number = (float if "." in text else int)(text) if NUMBER.search(text) else None
                    return ast.copy_location(ast.Constant(number), call) if number is not None else None
                case _:
                    return given
        return None

    def whole(self, call: ast.Call) -> ast.Call:
        """Return a call with the arguments of its partial, and of `*args` and `**options`, written out.

        A call that runs another function in a thread stands for the call of that one.
        """
        if call not in self._whole:
            self._whole[call] = self._write_out(call)
        return self._whole[call]

    def _write_out(self, call: ast.Call) -> ast.Call:
        function, args, keywords = call.func, list(call.args), list(call.keywords)
        place = RUNNERS.get(function.attr) if isinstance(function, ast.Attribute) else None
        if place is not None and len(args) > place and self.is_function(args[place]):
            call = self.locate(ast.Call(args[place], args[place + 1 :], keywords), call)
            function, args = args[place], args[place + 1 :]
        made = self.value(function) if isinstance(function, (ast.Name, ast.Attribute)) else function
        if (named := self._find_named(made)) is not None:
            function = named
        elif isinstance(made, ast.Call) and from_package(self.name_of(made.func), "functools", "partial") and made.args:
            function, args, keywords = made.args[0], [*made.args[1:], *args], [*made.keywords, *keywords]
        elif isinstance(made, ast.Attribute) and isinstance(function, ast.Name):
            function = made  # `post = requests.post`
        elif not hides_arguments(call):
            return call
        given: list[ast.expr] = []
        for item in args:
            many = self.value(item.value) if isinstance(item, ast.Starred) else None
            given += many.elts if isinstance(many, (ast.Tuple, ast.List)) else [item]
        result: list[ast.keyword] = []
        for option in keywords:
            options = self._options(option.value) if option.arg is None else None
            result += [option] if options is None else options
        return self.locate(ast.Call(func=function, args=given, keywords=result), call)

    def _find_named(self, made: ast.expr | None) -> ast.expr | None:
        """Return the attribute that `getattr(owner, "name")` is, None for any other expression."""
        match made:
            case ast.Call(func=ast.Name("getattr"), args=[owner, given, *_]):
                name = self.constant(given)
                if isinstance(name, str) and name.isidentifier():
                    return self.locate(ast.Attribute(owner, name, ast.Load()), made)
            case _:
                pass
        return None

    def _options(self, expr: ast.expr, depth: int = 0) -> list[ast.keyword] | None:
        """Return the keywords that a dictionary stands for, with the items that are set later; None if unknown."""
        value = self.value(expr)
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "dict" and not value.args:
            options = value.keywords
        elif isinstance(value, ast.Dict) and len(value.keys) <= _MOST_OPTIONS:
            options = list[ast.keyword]()
            for key, item in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    options = [one for one in options if one.arg != key.value]
                    options.append(ast.keyword(arg=key.value, value=item))
                elif key is None and depth < DEEPEST:
                    inner = self._options(item, depth + 1)
                    options += [ast.keyword(arg=None, value=item)] if inner is None else inner
                else:
                    return None
        else:
            return None
        if any(isinstance(made, ast.Call) and made is not value for made in self.values(expr)):
            return None  # a function makes it, and may change it
        scope = self.function_of(expr)
        later = self.items_set.get((scope, expr.id), []) if isinstance(expr, ast.Name) and scope is not None else []
        return options + later if len(options) + len(later) <= _MOST_OPTIONS else None

    def constant(self, expr: ast.expr | None, depth: int = 0, width: int = 1) -> object:
        """Return the value of a constant expression: a number, text, or a collection of them. Ellipsis if unknown.

        `width` is the product of the numbers of parts around it: names that stand for each other twice would explode.
        """
        expr, depth = self.value(expr), depth + 1
        match expr:
            case _ if depth > 4 * DEEPEST or width > _WIDEST:
                return ...  # a circle, or deeper than anybody writes
            case ast.Constant():
                return keep_simple(expr.value)
            case ast.UnaryOp(op=ast.USub()):
                inner = self.constant(expr.operand, depth, width)
                return -inner if isinstance(inner, (int, float)) else ...
            case ast.List() | ast.Tuple() | ast.Set():
                width *= max(len(expr.elts), 1)
                return tuple(self.constant(item, depth, width) for item in expr.elts)
            case ast.Dict():
                width *= max(2 * len(expr.keys), 1)
                keys = (make_key(self.constant(key, depth, width)) for key in expr.keys)
                return dict(zip(keys, (self.constant(one, depth, width) for one in expr.values), strict=True))
            case ast.BinOp():
                sides = (self.constant(side, depth, 2 * width) for side in (expr.left, expr.right))
                return keep_simple(compute_number(expr.op, *sides))
            case ast.Attribute(value=ast.Name("math"), attr="inf"):
                return math.inf
            case ast.Call(func=ast.Name("float"), args=[ast.Constant(value="inf" | "Infinity" | "+inf")]):
                return math.inf
            case ast.Call(func=ast.Name(id="frozenset" | "set" | "list" | "tuple"), args=[inner_expr]):
                inner = self.constant(inner_expr, depth, width)
                return tuple(cast("Iterable[object]", inner)) if isinstance(inner, (tuple, dict)) else ...
            case _:
                return ...

    def items(self, expr: ast.expr | None) -> tuple[object, ...] | None:
        """Return the values of a constant list, tuple or set, None if it is none."""
        value = self.constant(expr)
        return cast("tuple[object, ...]", value) if isinstance(value, tuple) else None

    def find_returned(self, function: Function) -> ast.expr | None:
        """Return what a function of this module returns, None if it does more than that, or is not known."""
        names = [self.local_name(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]
        nodes = [node for node in walk_inside(function.body) if isinstance(node, (ast.Return, ast.Yield))]
        results = [node.value for node in nodes if isinstance(node, ast.Return) or names]
        found = results[0] if len(results) == 1 else choose_only([each for each in results if each is not None])
        if found is None or any(n.rpartition(".")[2] not in _KEPT for n in names):
            return None
        return found


def sets_constant(module: Module, name: str, value: object) -> bool:
    """Return whether a module assigns a constant to an attribute with this dotted name, or by `update` of its owner."""
    assigns = [node for node in module.tree.body if isinstance(node, ast.Assign)]
    found = [node.value for node in assigns if name in map(module.local_name, node.targets)]
    owner, _, last = name.rpartition(".")
    updates = [call for call in module.calls_of("update") if module.local_name(call.func) == f"{owner}.update"]
    found += [item.value for call in updates for item in module.whole(call).keywords if item.arg == last]
    return any(module.constant(expr) == value for expr in found)
