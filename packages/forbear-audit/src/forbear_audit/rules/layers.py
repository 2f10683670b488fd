"""Layers: what repeats every call that goes through it.

That is a transport, an adapter, a session or an interceptor of the package, a service config of gRPC, a client with a
policy, or a policy that a call passes.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from forbear_audit.libraries import sdks
from forbear_audit.libraries.objects import TRANSIENT, read_service_config
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import ACTING_METHODS, WORD_STARTS
from forbear_audit.reading.retry_use import RepeatedCode, RetryPolicy, RetryUse
from forbear_audit.reading.scopes import Function, from_package, keyword, list_passed, parameters
from forbear_audit.reading.syntax import calls_in, find_all, group
from forbear_audit.rules.policies import find_sources, read_policy
from forbear_audit.rules.repeaters import Repeater, find_repeaters

_STEPS = 6  # from a part to the client
_DEEPEST = 3  # arguments of arguments, and methods of a layer
_MOST_PUT = 20  # calls that one batch sends
_ENDS = ("execute", "commit")
"""The methods that send what was put into a pipeline or a batch before."""

_BATCHES = ("pipeline", "batch")
_ELASTIC = ("Elasticsearch", "AsyncElasticsearch", "OpenSearch", "AsyncOpenSearch")
_TOLD = {"RequestsHTTPTransport": ("retries",), **dict.fromkeys(_ELASTIC, ("retry_on_timeout", "retry_on_status"))}
"""The clients with an option by which they repeat every request, also one that acts."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """Something that repeats calls, with the code around each attempt; of a service config the services and RPCs."""

    policy: RetryPolicy
    around: list[ast.stmt]
    names: frozenset[tuple[str, str]] = frozenset()

    def has(self, client: str, method: str) -> bool:
        """Return whether a call of a method of a client goes through it.

        Who names an RPC in a service config has looked at it: it is left alone unless its name says that it acts.
        """
        stub = client.rpartition(".")[2].removesuffix("Stub")
        names = {name for service, name in self.names if service in ("", stub) and name in ("", method)}
        acts = ACTING_METHODS.search(WORD_STARTS.sub("_", method).lower())
        return not self.names or "" in names or (bool(names) and bool(acts))


def find_layered(module: Module) -> Iterator[RetryUse]:
    """Yield the calls that a layer repeats."""
    for call in module.calls:
        layer = _find_layer(module, call, call.func) if isinstance(call.func, ast.Attribute) else None
        if layer is not None:
            sent = [*module.keep(_index_batches).get(call, []), call]  # after what was put into the batch
            region: list[ast.stmt] = [ast.copy_location(ast.Expr(one), one) for one in sent]
            code = RepeatedCode(region, by_call=True, call=call, around=layer.around)
            yield RetryUse(layer.policy, call, code, defined_elsewhere=True)


def _index_batches(module: Module) -> dict[ast.Call, list[ast.Call]]:
    """Return the calls before each one that sends a batch, back to the one that has sent the last batch."""
    found, waiting = dict[ast.Call, list[ast.Call]](), dict[tuple[Function | None, str], list[ast.Call]]()
    for call in sorted(module.calls, key=lambda one: (one.lineno, one.col_offset)):
        if isinstance(call.func, ast.Attribute):
            key = module.function_of(call), ast.unparse(call.func.value)
            if call.func.attr in _ENDS:
                found[call] = waiting.pop(key, [])
            elif len(puts := waiting.setdefault(key, [])) < _MOST_PUT:
                puts.append(call)
    return found


def _index_mounted(module: Module) -> dict[ast.expr | None, list[ast.expr]]:
    """Return the adapters that a module mounts, by what made the session."""
    mounts = [(call.func, call.args[1]) for call in module.calls_of("mount") if len(call.args) > 1]
    return group((module.value(made.value), given) for made, given in mounts if isinstance(made, ast.Attribute))


def _find_layer(module: Module, call: ast.Call, function: ast.Attribute) -> _Layer | None:
    """Return the layer that a call goes through, None without one."""
    given = keyword(call, "retry")
    is_passed_on = given is not None and module.is_parameter(given)
    if given is not None and not (is_passed_on or module.resolve_call(call)[1] or module.is_function(call)):
        option = module.value(given) or given
        policy = read_policy(module, option) if isinstance(option, ast.Call) else None
        if module.name_of(option).endswith(".DEFAULT_RETRY"):
            policy = RetryPolicy("google-api-core", errors=TRANSIENT)
        if policy is not None and policy.library == "google-api-core":
            return _Layer(policy, [])
    owner = function.value
    known = module.type_of(owner)
    if known is not None:  # a class of the package: what it does not define itself goes through its transport
        is_own = known[0].find_member(known[1], function.attr)[1] is not None
        return None if is_own else _read_class(module, *known, module.value(owner) or owner, inherits=True)
    for _ in range(_STEPS):
        value = module.value(owner)
        if isinstance(value, ast.Call):
            layer = module.find_once(module.cache(_read_maker), value, lambda made: _read_maker(module, made, 0), None)
            if layer is not None:
                return layer if layer.has(sdks.maker(module, function.value), function.attr) else None
            value = value.func if getattr(value.func, "attr", "") in _BATCHES else None  # else it is a response
        if not isinstance(value, (ast.Attribute, ast.Subscript)):
            break
        owner = value.value
    return _find_given(module, owner)


def _find_given(module: Module, owner: ast.expr) -> _Layer | None:
    """Return the layer of a client that a function gets, if this module has one function that makes such a client."""
    value = module.value(owner)
    if not isinstance(value, ast.Name) or not module.is_parameter(value):
        return None
    package = module.type_name(value).partition(".")[0]
    named = [(made, module.name_of(made.func)) for made in module.keep(_list_handed_out)]
    named = [(made, name) for made, name in named if package in ("", name.partition(".")[0])]
    found = [(name, layer) for made, name in named if (layer := _read_maker(module, made, _DEEPEST - 1)) is not None]
    return found[0][1] if len(found) == 1 and [name for _, name in named].count(found[0][0]) == 1 else None


def _list_handed_out(module: Module) -> list[ast.Call]:
    """Return the calls that make what the functions return that nothing in this module calls."""
    factories = [each for each in module.top.values() if isinstance(each, Function) and not module.calls_of(each.name)]
    made = [module.value(module.find_returned(each)) for each in factories]
    return [each for each in made if isinstance(each, ast.Call) and module.definition(each.func)[1] is None]


def _read_class(
    module: Module, place: Module, owner: ast.ClassDef, made: ast.expr, *, inherits: bool = False
) -> _Layer | None:
    """Return the layer that an object of a class is, None if it is none; one that `inherits` repeats its methods."""
    found = (home.keep(_find_classes).get((each, inherits)) for home, each in place.list_bases(owner))
    known = next((each for each in found if each is not None), None)
    return _Layer(known.read(module, made), known.around) if known is not None else None


def _read_maker(module: Module, made: ast.Call, depth: int) -> _Layer | None:
    """Return the layer that a client has by what made it: the call gets a layer, or one is mounted later."""
    place, node = module.definition(made.func) if isinstance(made.func, (ast.Name, ast.Attribute)) else (module, None)
    if isinstance(node, ast.ClassDef):
        return _read_class(module, place, node, made)
    if node is not None or depth > _DEEPEST:
        return None
    if from_package(module.name_of(made.func), "aiohttp_retry", "RetryClient"):
        return _Layer(RetryPolicy("aiohttp-retry", errors=TRANSIENT), [])
    name = module.name_of(made.func).rpartition(".")[2]
    told = [keyword(made, option) for option in _TOLD.get(name, ())]
    if any(option is not None and module.constant(option) not in (0, None, ()) for option in told):  # 0 equals False
        return _Layer(RetryPolicy("urllib3", errors=TRANSIENT), [])
    home = module.home_of(made)
    mounted = home.keep(_index_mounted).get(made, [])
    parts = [*list_passed(made), *(module.take(home, each) for each in mounted)]
    layers = [_read_part(module, part, depth + 1) for part in parts if part is not None]
    if depth == 0 and name[:1].isupper():  # `OrdersStub(channel)`
        layers += [_find_given(module, part) for part in list_passed(made)]
    return next((layer for layer in layers if layer is not None), None)


def _read_part(module: Module, part: ast.expr, depth: int) -> _Layer | None:
    """Return the layer that something is which a client gets, alone or in a list; None if it is none."""
    value = module.value(part)
    match value:
        case ast.Tuple(elts=[key, config]) if module.constant(key) == "grpc.service_config":
            retried = read_service_config(module, config)
            return _Layer(retried[0], [], retried[1]) if retried is not None else None
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return next((layer for each in items if (layer := _read_part(module, each, depth + 1)) is not None), None)
        case ast.Call():
            policy = read_policy(module, value)
            if policy is not None:
                return _Layer(policy, []) if policy.library == "redis" else None
            return _read_maker(module, value, depth)
        case ast.Name() | ast.Attribute():
            place, node = module.definition(value)
            known = place.keep(find_repeaters).get(node) if isinstance(node, Function) else None
            return _Layer(known.policy, known.around) if known is not None else None
        case _:
            return None


def _find_classes(module: Module) -> dict[tuple[ast.AST, bool], Repeater]:
    """Return the classes of a module with a method that repeats what it passes on, and whether it does to `super()`."""
    found = dict[tuple[ast.AST, bool], Repeater]()
    for source in module.keep(find_sources):
        function = source.place if isinstance(source.place, Function) else module.function_of(source.place)
        owner = module.parents.get(function) if function is not None else None
        if function is None or not isinstance(owner, ast.ClassDef):
            continue
        sides = (side for test in find_all(function.body, ast.Compare) for side in (test.left, *test.comparators))
        if any(ast.unparse(side).endswith(("method", "method.upper()")) for side in sides):
            continue  # it looks at the request or the name of the RPC: it knows what it repeats
        init = module.methods.get((owner, "__init__"))
        known = Repeater(module, source.policy, source.made, init, None, awaits=True)
        passed = {*_list_passed(module, function, source.region, 0)}
        found |= dict.fromkeys([(owner, inherits) for inherits in (False, *({True} & passed)) if passed], known)
    return found


def _list_passed(module: Module, function: Function, region: list[ast.stmt], depth: int) -> Iterator[bool]:
    """Yield for each call of a parameter, or of the same method of another object, whether that one is `super()`."""
    taken = {one.arg for one in parameters(function)}
    for call in calls_in(region):
        match call.func:
            case ast.Name(name) if name in taken:
                yield False
            case ast.Attribute(value=owner, attr=name) if name == function.name and ast.unparse(owner) != "self":
                yield ast.unparse(owner) == "super()"
            case ast.Attribute(value=ast.Name("self")) if depth < _DEEPEST:
                inner = module.resolve_call(call)[1]
                if inner is not None and inner is not function:
                    yield from _list_passed(module, function, inner.body, depth + 1)
            case _:
                pass
