"""Keys by which a server knows a call that it has seen: where they are, and whether each attempt makes a new one."""

import ast
from collections.abc import Iterator

from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import FRESH_VALUES, IDEMPOTENCY_HEADERS, KEYS_IN_BODIES, SENT_KEYS
from forbear_audit.reading.scopes import Function, from_package, keyword, list_passed
from forbear_audit.reading.syntax import find_all, plain_names_in

WHY = "its idempotency key is made inside of what is repeated, so every attempt has another one"
_DUMPS = ("asdict", "vars", "model_dump", "model_dump_json", "dict", "to_dict")
_MOST_CALLS = 10  # of a function with what makes a key
_DEEPEST = 4  # steps from a name to its value, and from a call to the function that it calls


def headers_of(module: Module, call: ast.Call) -> dict[str, ast.expr]:
    """Return the headers that a call passes, with those that the code around sets later."""
    given = keyword(call, "headers")
    headers = dict(_items(module, given))
    value = module.value(given)
    if given is not None and not headers and value is not None and "idempot" in ast.unparse(value).lower():
        headers["Idempotency-Key"] = value
    return headers


def find_key(module: Module, call: ast.Call) -> ast.expr | None:
    """Return the idempotency key that a call passes in a header or an option, None without one."""
    fields = _fields(module, call, 2)
    return find_named_key(module, call) or next((value for name, value in fields if SENT_KEYS.search(name)), None)


def find_named_key(module: Module, call: ast.Call) -> ast.expr | None:
    """Return the key in a header or an option that is there for nothing else, None without one."""
    headers = headers_of(module, call)
    if isinstance(call.func, ast.Attribute):
        headers |= dict(_set_later(module, ast.unparse(call.func.value) + ".headers", call))
    key = next((value for name, value in headers.items() if IDEMPOTENCY_HEADERS.search(name)), None)
    return key or next((option.value for option in call.keywords if "idempot" in (option.arg or "")), None)


def find_fresh_key(module: Module, call: ast.Call, region: list[ast.stmt]) -> ast.AST | None:
    """Return the call within `region` that makes the key, id or token of a call anew, None if there is none."""
    values = [value for name, value in _fields(module, call, 2) if KEYS_IN_BODIES.search(name)]
    key = find_key(module, call)
    for value in (*values, *(() if key is None else (key,))):
        fresh = find_fresh(module, value, region)
        if fresh is not None:
            return fresh
    return None


def has_own_id(module: Module, call: ast.Call, region: list[ast.stmt]) -> bool:
    """Return whether a call passes an id or token that the code makes itself, at random, before the first attempt."""
    values = [value for name, value in _fields(module, call, 2) if KEYS_IN_BODIES.search(name)]
    return any(
        _is_fresh(module, part) and not is_inside(module, part, region)
        for value in values
        if (made := module.value(value)) is not None and find_fresh(module, value, region) is None
        for part in ast.walk(made)
        if isinstance(part, ast.Call)
    )


def _fields(module: Module, call: ast.Call, depth: int) -> Iterator[tuple[str, ast.expr]]:
    """Yield the options of a call, and the items of the dictionaries that it passes."""
    for option in call.keywords:
        if option.arg:
            yield option.arg, option.value
    for given in list_passed(call):
        value = open_text(module, given.elts[0] if isinstance(given, ast.List) and len(given.elts) == 1 else given)
        yield from _items(module, value, depth)
        made = module.value(value)
        name = ast.unparse(made.func).rpartition(".")[2] if isinstance(made, ast.Call) else ""
        if isinstance(made, ast.Call) and name in _DUMPS:
            yield from _fields_of_object(module, made)
        if isinstance(made, ast.Call) and (name == "dict" or name[:1].isupper()):  # Order(id=...)
            known = [value, *module.values(value)]  # else a function of this package makes the object
            yield from ((o.arg, o.value if made in known else value) for o in made.keywords if o.arg)
            yield from _fields(module, made, depth - 1) if depth and made in known else ()


def open_text(module: Module, expr: ast.expr) -> ast.expr:
    """Return what a text is made of: the dictionary in `json.dumps(...).encode()`, else the expression."""
    match module.value(expr):
        case ast.Call(func=ast.Attribute(value=inner, attr="encode")) if not isinstance(inner, ast.Constant):
            return open_text(module, inner)
        case ast.Call(func=ast.Attribute(attr="dumps"), args=[inner, *_]):
            return inner
        case _:
            return expr


def _fields_of_object(module: Module, dump: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield the fields of an object that a call makes a dictionary or a text of."""
    given = dump.args[0] if dump.args else dump.func.value if isinstance(dump.func, ast.Attribute) else dump.func
    known = module.type_of(given)
    for owner, name in known[0].assigned if known is not None else ():
        if known is not None and owner is known[1]:
            yield name, module.locate(ast.Attribute(given, name, ast.Load()), dump)


def _items(module: Module, expr: ast.expr | None, depth: int = 1) -> Iterator[tuple[str, ast.expr]]:
    value = module.value(expr)
    assigned = module.values(expr) if expr is not None else []
    made = assigned[0] if len(assigned) == 1 else expr  # a call, if a function of this package makes the dictionary
    if isinstance(value, ast.Dict):
        for key, item in zip(value.keys, value.values, strict=True):
            name = module.constant(key) if key is not None else None
            if isinstance(name, str):
                yield name, item if expr is None or isinstance(made, ast.Dict) else expr
            if depth > 1:
                yield from _items(module, item, depth - 1)
    if isinstance(expr, ast.Name):
        yield from _set_later(module, expr.id, expr)
    home, function = module.resolve_call(made) if isinstance(made, ast.Call) else (module, None)
    for result in find_all(function.body if function is not None else (), ast.Return):
        later = _set_later(home, result.value.id, result.value) if isinstance(result.value, ast.Name) else ()
        yield from ((name, expr) for name, _ in later if expr is not None)


def _set_later(module: Module, owner: str, place: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the items that the function around a place sets by `owner["name"] = value`."""
    function = module.function_of(place)
    for item in module.items_set.get((function, owner), []) if function is not None else ():
        yield str(item.arg), item.value
    for call in module.calls_of("update") if function is not None else ():
        if call.args and isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == owner:
            yield from _items(module, call.args[0])


def is_inside(module: Module, node: ast.AST, region: list[ast.stmt], depth: int = 0) -> bool:
    """Return whether a node stands in a piece of code, or in a function that it calls."""
    tops = {id(part) for s in region for part in (s, s.value if isinstance(s, ast.Expr) else s)}
    if id(node) in tops or any(id(parent) in tops for parent in module.ancestors(node)):
        return True
    function = module.function_of(node) if depth == 0 else None
    calls = module.calls_of(function.name)[:_MOST_CALLS] if function is not None else []
    return any(is_inside(module, call, region, 1) for call in calls)


def find_fresh(module: Module, expr: ast.expr, region: list[ast.stmt], depth: int = 0) -> ast.AST | None:
    """Return what gives an expression a new value on every execution of `region`, None if nothing does."""
    for part in ast.walk(expr):
        if isinstance(part, ast.Call):
            fresh = _is_fresh(module, part) or _returns_fresh(*module.resolve_call(part), depth)
            if fresh and is_inside(module, part, region):
                return part
            if (made := _find_fresh_object(module, part, region)) is not None:
                return made
        elif isinstance(part, ast.Attribute) and depth < _DEEPEST:
            made = module.value(part.value)
            if _returns_fresh(*module.definition(part), depth) and is_inside(module, part, region):
                return part  # a property
            if isinstance(made, ast.Call) and is_inside(module, made, region) and _is_fresh_field(module, part):
                return made
        elif isinstance(part, ast.Name) and depth < _DEEPEST:
            around = module.parents.get(region[0]) if region else None
            if isinstance(around, ast.For) and part.id in plain_names_in(around.target):
                return part  # the number of the attempt
            for value in (*module.values(part), *(value for _, value in _set_later(module, part.id, part))):
                found = find_fresh(module, value, region, depth + 1)
                if found is not None:
                    return found
    return None


def _find_fresh_object(module: Module, call: ast.Call, region: list[ast.stmt]) -> ast.AST | None:
    """Return what makes the object of a method anew in each attempt, if the method reads a field that is fresh."""
    made = module.value(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if not (isinstance(made, ast.Call) and is_inside(module, made, region)):
        return None
    home, function = module.resolve_call(call)
    fields = find_all(function.body if function is not None else (), ast.Attribute)
    return made if any(_is_fresh_field(home, field) for field in fields) else None


def _is_fresh_field(module: Module, attribute: ast.Attribute) -> bool:
    """Return whether each object of a class has another value in an attribute, by the default of the class."""
    owner = module.type_of(attribute.value)
    home, field = owner[0].find_member(owner[1], attribute.attr) if owner is not None else (module, None)
    calls = [node for node in ast.walk(field) if isinstance(node, ast.Call)] if isinstance(field, ast.expr) else []
    return any(_is_fresh(home, call) for call in calls)


def _is_fresh(module: Module, call: ast.Call) -> bool:
    """Return whether each execution of a call returns another value: something random, the time, or a count."""
    name = module.name_of(call.func)
    counter = module.value(call.args[0]) if name == "next" and call.args else None
    counts = isinstance(counter, ast.Call) and from_package(module.name_of(counter.func), "itertools", "count")
    return counts or bool(FRESH_VALUES.search(name))


def _returns_fresh(home: Module, function: ast.AST | None, depth: int) -> bool:
    """Return whether a function of this package returns another value on every call."""
    if not isinstance(function, Function) or depth >= _DEEPEST:
        return False
    results = [node.value for node in find_all(function.body, ast.Return) if node.value]
    return any(find_fresh(home, result, function.body, depth + 1) for result in results)
