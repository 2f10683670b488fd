"""Find what the definition of an RPC says of it, if a module that has the definition is loaded.

Generated pb2 modules put their services into protobuf's pool of descriptors. Google's generated clients put only their
messages there; their gRPC transports name the RPCs, and the base of a REST transport has the HTTP bindings. Nothing is
imported, and no server is asked; what a server said of itself, because the user asked, comes by `add_pool`.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, get_args

from forbear.core.check import suggest
from forbear.grpc.status import parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NO_SIDE_EFFECTS, IDEMPOTENT = 1, 2
"""The values of `idempotency_level` that say something (google/protobuf/descriptor.proto)."""

_LEVEL, _HTTP = 34, 72295728  # numbers of options of a method: idempotency_level and google.api.http
_METHODS = {2: "GET", 3: "PUT", 4: "POST", 5: "DELETE", 6: "PATCH"}  # fields of google.api.HttpRule
_CUSTOM, _MORE = 8, 11
_MOST_BINDINGS, _MOST_FIELDS, _DEEPEST = 64, 2000, 3
_TRANSPORT = ".transports.grpc"
_PATH = re.compile(r"/[\w.]+/\w+")


class Definition(NamedTuple):
    """The definition of an RPC: its annotations.

    - `level` is its `idempotency_level`, 0 where it has none.
    - `bindings` are the HTTP methods in its `google.api.http`, in upper case, each once.
    - `fields` are the names of the fields of its request, and of the messages in it; None if they are not known.
    - `source` says where the definition was found.
    """

    level: int
    bindings: tuple[str, ...]
    fields: frozenset[str] | None
    source: str


class RpcTypes(NamedTuple):
    """The classes of an RPC's request and response, as its client has them, and the paths of its HTTP bindings."""

    request: "Any"
    response: "Any"
    paths: tuple[str, ...]


_found: dict[str, Definition] = {}  # only of names in loaded modules
_pools: "list[Any]" = []


def add_pool(pool: "Any") -> None:
    """Also look for definitions in `pool`, a DescriptorPool; those of loaded modules and earlier pools count more."""
    _pools.append(pool)


def find(name: str) -> Definition | None:
    """Return the definition of the RPC with the full name "package.Service/Method", None if none is loaded."""
    definition = _found.get(name)
    if definition is None:
        definition = _find_in_pool(name) or _find_in_transports(name, len(sys.modules))
        if definition is not None:
            _found[name] = definition
    return definition


def find_types(name: str) -> RpcTypes | None:
    """Return the types of the RPC with this full name, None if no module with its definition is loaded."""
    method = _find_method(name, ())
    if method is not None:
        from google.protobuf.message_factory import GetMessageClass

        rules = [value for number, value in parts(method.GetOptions().SerializeToString()) if number == _HTTP]
        bound = [pair for rule in rules if isinstance(rule, bytes) for pair in parts(rule)]
        bound += [pair for number, more in bound if number == _MORE and isinstance(more, bytes) for pair in parts(more)]
        paths = (value.decode() for number, value in bound if number in _METHODS and isinstance(value, bytes))
        return RpcTypes(GetMessageClass(method.input_type), GetMessageClass(method.output_type), tuple(paths))
    for module, stubs in _find_transports(name):
        attribute = next(each for each, path in paths_of(stubs).items() if path == f"/{name}")
        hints: Any = getattr(stubs, attribute).fget.__annotations__
        kinds: tuple[Any, ...] = get_args(hints.get("return"))  # of Callable[[request], response]
        if len(kinds) == 2:
            return RpcTypes(kinds[0][0], kinds[1], tuple(rule["uri"] for rule in _rest_rules(name, module)))
    return None


def check_method(name: str, parameter: str) -> None:
    """Raise ValueError if the service in the name of an RPC is loaded, but has no such method; any other name passes.

    `parameter` is the one that has the name, for the text.
    """
    service, _, method = name.partition("/")
    module: Any = sys.modules.get("google.protobuf.descriptor_pool")
    for pool in () if module is None else (module.Default(), *_pools):
        with suppress(KeyError):
            methods = pool.FindServiceByName(service).methods_by_name
            if method in methods:
                return
            near = suggest(method, methods)
            raise ValueError(f"`{parameter}` must hold names of RPCs; {service} has no method {method!r}{near}")


def _find_method(name: str, pools: "Iterable[Any]") -> "Any":
    module: Any = sys.modules.get("google.protobuf.descriptor_pool")
    for pool in () if module is None else (module.Default(), *pools):
        with suppress(KeyError):
            return pool.FindMethodByName(name.replace("/", "."))
    return None


def _find_in_pool(name: str) -> Definition | None:
    method = _find_method(name, _pools)
    if method is None:
        return None
    level, bindings, source = 0, list[str](), method.containing_service.file.name
    for number, value in parts(method.GetOptions().SerializeToString()):
        if number == _LEVEL and isinstance(value, int):
            level = value
        elif number == _HTTP and isinstance(value, bytes):
            bindings += _read_bindings(value)
    return Definition(level, tuple(dict.fromkeys(bindings)), _fields_of(method.input_type), source)


def _read_bindings(rule: bytes) -> Iterator[str]:
    """Yield the HTTP methods of an encoded google.api.HttpRule; additional bindings have none of their own."""
    for number, value in islice(parts(rule), _MOST_BINDINGS):
        if number in _METHODS:
            yield _METHODS[number]
        elif number == _CUSTOM and isinstance(value, bytes):
            yield bytes(dict(parts(value)).get(1, b"")).decode("utf-8", "replace").upper()
        elif number == _MORE and isinstance(value, bytes):
            yield from (_METHODS.get(inner, "CUSTOM") for inner, _ in parts(value) if inner in (*_METHODS, _CUSTOM))


@lru_cache(maxsize=1024)
def _find_in_transports(name: str, loaded: int) -> Definition | None:
    """Return the definition of an RPC of a generated client; `loaded` is the number of loaded modules."""
    service, _, method = name.partition("/")
    for module, _ in _find_transports(name):
        bindings = tuple(dict.fromkeys(rule["method"].upper() for rule in _rest_rules(name, module)))
        return Definition(0, bindings, _fields_of(_request_type(service, method)), module)
    return None


def _find_transports(name: str) -> "Iterator[tuple[str, Any]]":
    """Yield the modules of Google's gRPC transports that have an RPC, each with the class of the transport."""
    short = name.partition("/")[0].rpartition(".")[2]
    for module in [each for each in tuple(sys.modules) if each.endswith(_TRANSPORT)]:
        stubs = vars(sys.modules[module]).get(f"{short}GrpcTransport")
        if f"/{name}" in paths_of(stubs).values():  # names of classes repeat
            yield module, stubs


def _rest_rules(name: str, module: str) -> "list[Mapping[str, str]]":
    """Return the HTTP bindings of an RPC, which the REST transport beside a `module` has; [] without one."""
    service, _, method = name.partition("/")
    rest = sys.modules.get(module.removesuffix("grpc") + "rest_base")
    bound = vars(rest or sys).get(f"_Base{service.rpartition('.')[2]}RestTransport")
    options = getattr(vars(bound or object).get(f"_Base{method}"), "_get_http_options", None)
    return [] if options is None else options()


def paths_of(transport: "Any") -> dict[str, str]:
    """Return the paths of RPCs, "/package.Service/Method", by the properties of a class of Google's gRPC transports."""
    paths: dict[str, str] = {}
    for name, each in vars(transport or object).items():
        code = getattr(getattr(each, "fget", None), "__code__", None)
        for constant in () if code is None else code.co_consts:
            if isinstance(constant, str) and _PATH.fullmatch(constant):
                paths[name] = constant
    return paths


def _request_type(service: str, method: str) -> "Any":
    """Return the descriptor of the message that by Google's rule is the request of a method, None without one."""
    pool: Any = sys.modules.get("google.protobuf.descriptor_pool")
    package = service.rpartition(".")[0]
    try:
        return None if pool is None else pool.Default().FindMessageTypeByName(f"{package}.{method}Request")
    except KeyError:
        return None


def _fields_of(message: "Any") -> frozenset[str] | None:
    """Return the names of the fields of a message and of those in it; None if it is not known, or too large."""
    if message is None:
        return None
    names, level = set[str](), [message]
    for _ in range(_DEEPEST):
        fields = [field for each in level for field in each.fields]
        names.update(field.name for field in fields)
        if len(names) > _MOST_FIELDS or len(fields) > _MOST_FIELDS:
            return None
        inner = {field.message_type.full_name: field.message_type for field in fields if field.message_type is not None}
        level = list(inner.values())
    return frozenset(names)
