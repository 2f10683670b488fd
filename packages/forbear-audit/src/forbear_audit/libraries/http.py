"""Requests in code: their method and URL where they can be read, and whether they may be executed twice."""

import ast
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from forbear import services
from forbear.adapters import Request
from forbear.verdicts import Safety
from forbear_audit.libraries import keys
from forbear_audit.reading import patterns
from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import Function, find_argument, from_package, keyword

LIBRARIES = (
    "requests", "httpx", "httpx2", "aiohttp", "niquests", "urllib3", "aiohttp_retry", "google.auth.transport.requests",
    "requests_toolbelt", "http.client",
)  # fmt: skip
_CLIENTS = (
    "Session", "Client", "AsyncClient", "ClientSession", "PoolManager", "RetryClient", "AuthorizedSession", "session",
    "HTTPConnection", "HTTPSConnection",
)  # fmt: skip
_VERBS = ("get", "post", "put", "patch", "delete", "head", "options")
_METHODS = (*_VERBS, "request", "stream")
_PREPARES, _MAKES = ("prepare", "prepare_request"), ("Request", "build_request")
_OPTIONS = frozenset({"json", "data", "headers", "timeout", "files", "params", "content", "auth", "verify"})
_RUNS = {"run": 0, "run_with_advanced_retry": 1}
"""The methods of the hook of Airflow for HTTP, with the position of the path."""

_CONDITIONS = ("if-match", "if-none-match", "if-unmodified-since", "if-none-exist")
"""The headers that make a request conditional; the last one is of FHIR."""

_MOST_CALLERS = 10  # of a function that sends any request
_DEEPEST = 5  # steps from a name to its text


@dataclass
class CodeRequest:
    """A request that a call sends: method in capitals, URL with "x" for each unknown part, None if unknown."""

    call: ast.Call
    method: str
    url: str | None
    place: ast.expr | None = None


def request_of(module: Module, call: ast.Call) -> CodeRequest | None:
    """Return the request that a call of an HTTP library sends, None if it is no such call or its method is unknown."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    first = call.args[0] if call.args else None
    if name in ("send", "urlopen"):
        return _read_sent(module, call, first)
    if name in _RUNS:
        return _read_hook(module, call, _RUNS[name])
    if not isinstance(call.func, ast.Attribute) or not (name in _METHODS and _is_client(module, call, call.func.value)):
        return None
    if name in _VERBS:
        return _make(module, call, name, first or keyword(call, "url"))
    return _read_named(module, call)


def _read_hook(module: Module, call: ast.Call, position: int) -> CodeRequest | None:
    """Return the request that a hook of Airflow sends: its method is an option of the hook, by default POST."""
    made = module.value(call.func.value) if isinstance(call.func, ast.Attribute) else None
    if not isinstance(made, ast.Call) or not from_package(module.name_of(made.func), "airflow", "HttpHook"):
        return None
    option = keyword(made, "method") or next(iter(made.args), None)
    method = module.constant(option) if option is not None else "POST"
    return _make(module, call, method, find_argument(call, position, "endpoint"))


def _make(module: Module, call: ast.Call, method: object, place: ast.expr | None) -> CodeRequest | None:
    return CodeRequest(call, method.upper(), read_text(module, place), place) if isinstance(method, str) else None


def _read_named(module: Module, call: ast.Call) -> CodeRequest | None:
    """Return the request of a call whose first argument is the method, None if that is unknown."""
    method = module.constant(call.args[0] if call.args else keyword(call, "method"))
    return _make(module, call, method, call.args[1] if len(call.args) > 1 else keyword(call, "url"))


def _read_sent(module: Module, call: ast.Call, first: ast.expr | None) -> CodeRequest | None:
    """Return the request that `urlopen` and `send` get: one that was made before, or its URL and body."""
    made = module.value(first)
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in _PREPARES:
        made = module.value(made.args[0] if made.args else made.func.value)
    name = module.name_of(made.func) if isinstance(made, ast.Call) else ""
    if isinstance(made, ast.Call) and name.rpartition(".")[2] in _MAKES and not name.startswith("urllib"):
        return _read_named(module, made)
    if not module.name_of(call.func).endswith("urlopen"):
        return None
    body, url = keyword(call, "data") or (call.args[1] if len(call.args) > 1 else None), made
    if isinstance(made, ast.Call) and name == "urllib.request.Request":
        body = body or keyword(made, "data") or (made.args[1] if len(made.args) > 1 else None)
        call, url = made, made.args[0] if made.args else keyword(made, "url")
    option = keyword(call, "method")
    method = module.constant(option) if option is not None else "POST" if body is not None else "GET"
    return _make(module, call, method, url)


def _is_client(module: Module, call: ast.Call, owner: ast.expr) -> bool:
    if module.name_of(owner) in LIBRARIES:
        return True
    value = module.value(owner)
    if isinstance(value, ast.Call) and _makes_client(module.name_of(value.func)):
        return True
    note = module.type_name(value) if value is not None else ""
    if note.partition(".")[0] in LIBRARIES:
        return _makes_client(note)
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    named = not module.packages.isdisjoint(LIBRARIES) and bool(patterns.HTTP_CLIENTS.search(name))
    has_path = any("/" in (read_text(module, item) or "") for item in call.args[:2])
    return (named and has_path) or ((named or has_path) and any(item.arg in _OPTIONS for item in call.keywords))


def _makes_client(dotted: str) -> bool:
    package, _, name = dotted.rpartition(".")
    return name in _CLIENTS and any(package == lib or package.startswith(f"{lib}.") for lib in LIBRARIES)


def read_text(module: Module, expr: ast.expr | None, depth: int = 0) -> str | None:
    """Return the text of an expression with "x" for each part that cannot be read, None if it is no text."""
    expr = module.value(expr) if depth < _DEEPEST else None
    if isinstance(expr, ast.Constant) and isinstance(expr.value, str):
        return expr.value
    if isinstance(expr, ast.JoinedStr):
        inner = [v.value if isinstance(v, ast.FormattedValue) else v for v in expr.values]
        return "".join(read_text(module, part, depth + 1) or "x" for part in inner)
    if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr == "format":
        text = read_text(module, expr.func.value, depth + 1)
        return None if text is None else re.sub(r"\{\w*\}", "x", text)
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Mod):
        text = read_text(module, expr.left, depth + 1)
        return None if text is None else re.sub(r"%(?:\(\w+\))?[sdr]", "x", text)
    match expr:
        case ast.Call(args=[left, right, *_]) if module.name_of(expr.func).endswith("urljoin"):
            base = "x/"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            base = "x"
        case _:
            return None
    return (read_text(module, left, depth + 1) or base) + (read_text(module, right, depth + 1) or "x")


def find_unsafe_request(module: Module, request: CodeRequest, region: list[ast.stmt]) -> str | None:
    """Return why a request may not be executed twice, None if it may be or if that cannot be known.

    `region` is the code that is repeated: an idempotency key that is made there is another one on every attempt.
    """
    url = request.url or ""
    split = urlsplit(url) if patterns.WHOLE_URL.search(url) else None
    service = services.find(split.netloc, split.path) if split is not None else None
    headers = keys.headers_of(module, request.call)
    if service is not None and split is not None:
        target = f"{split.path}?{split.query}" if split.query else split.path
        judged = service.classify(Request(request.method, split.netloc, target, {k.lower(): "x" for k in headers}))
        unread = (
            keyword(request.call, "params", "json", "data", "headers") is not None
            and judged.safety is Safety.CONDITIONAL
        )
        if judged.repeatable or (unread and any("b:" in c or "etag" in c.lower() for c in judged.conditions)):
            return None
        operation = judged.operation or f"this {request.method}"
        return f"the table of {judged.service} says that {operation} may not be executed twice"
    if request.method == "PUT" and request.place is not None and keys.find_fresh(module, request.place, region):
        return "its URL is made inside of what is repeated, so every attempt creates another one"
    if request.method not in ("POST", "PATCH") or _is_harmless(module, request) or _is_part(module, request.call):
        return None
    if any(name.lower() in _CONDITIONS for name in headers):
        return None
    key = keys.find_key(module, request.call)
    if key is not None:
        return keys.WHY if keys.find_fresh(module, key, region) is not None else None
    if keys.has_own_id(module, request.call, region):
        return None
    return f"{request.method} is not idempotent: a lost response does not prove that nothing was done"


def shows_purpose(module: Module, request: CodeRequest) -> bool:
    """Return whether code shows what a request does: by the path of its URL, or by the name of the function around."""
    if (request.url or "").strip("x/") or _mutates(module, request.call):
        return True
    function = _find_writer(module, request.call)
    return function is not None and says_purpose(module, function)


def _find_writer(module: Module, call: ast.Call) -> Function | None:
    """Return the function in which a call is written: of a partial the one that makes it."""
    return module.function_of(call.func) or module.function_of(call)


def says_purpose(module: Module, function: Function) -> bool:
    """Return whether the name of a function says what it does, or of one that calls it."""
    if not _is_general(function.name):
        return True
    calls = [(home, call) for home in module.list_near() for call in home.calls_of(function.name)[:_MOST_CALLERS]]
    users = (home.function_of(call) for home, call in calls)
    return any(user is not None and not _is_general(user.name) and not is_reading(user.name) for user in users)


def _is_general(name: str) -> bool:
    """Return whether the name of a function does not say what it sends, such as `make_request`."""
    return bool(patterns.GENERAL_FUNCTIONS.search(patterns.WORD_STARTS.sub("_", name).lower().strip("_")))


def is_reading(name: str) -> bool:
    """Return whether the name of a function says that it reads, computes, or sets a state."""
    name = patterns.WORD_STARTS.sub("_", name).lower()
    if patterns.ABSOLUTE_FUNCTIONS.search(name):
        return True
    return bool(patterns.READING_FUNCTIONS.search(name)) and not patterns.WRITING_FUNCTIONS.search(name)


def _is_harmless(module: Module, request: CodeRequest) -> bool:
    """Return whether a request only reads, computes or logs in, as its URL or the function around it are named."""
    path = (request.url or "").partition("?")[0]
    if path.rstrip("/").endswith("graphql"):
        return not _mutates(module, request.call)
    if path and patterns.HARMLESS_PATHS.search(path):
        return True
    call = request.call
    place = keyword(call, "url") or next((item for item in call.args if not isinstance(item, ast.Constant)), None)
    named = ast.unparse(place).rpartition(".")[2] if isinstance(place, (ast.Name, ast.Attribute)) else ""
    if patterns.HARMLESS_URL_NAMES.search(named):
        return True
    function, owner = _find_writer(module, call), module.class_of(call)
    if function is not None and patterns.TOKEN_READS.search(ast.unparse(function)):
        return True
    name = patterns.WORD_STARTS.sub("_", function.name).lower() if function is not None else ""
    if is_reading(name):
        return True
    reads = owner is not None and patterns.READING_CLASSES.search(owner.name)
    return bool(reads) and not patterns.WRITING_FUNCTIONS.search(name)


def _mutates(module: Module, call: ast.Call) -> bool:
    """Return whether a request sends a mutation of GraphQL."""
    body = module.value(keyword(call, "json", "data", "content"))
    texts = map(module.constant, body.values if isinstance(body, ast.Dict) else [body])
    return any(isinstance(text, str) and patterns.MUTATIONS.search(text) for text in texts)


def _is_part(module: Module, call: ast.Call) -> bool:
    """Return whether a request says which part of an upload it sends: sent again, it replaces that part."""
    options = [module.value(keyword(call, name)) for name in ("params", "json", "data", "headers")]
    keys = [key for option in options if isinstance(option, ast.Dict) for key in option.keys if key is not None]
    names = [name for name in map(module.constant, keys) if isinstance(name, str)]
    return any(patterns.PART_PARAMETERS.search(name) or name.lower() == "content-range" for name in names)


def requests_of_session(module: Module, session: ast.expr) -> list[CodeRequest]:
    """Return the requests that a module sends by a session with this name."""
    name = ast.unparse(session)
    calls = [c for c in module.calls if isinstance(c.func, ast.Attribute) and ast.unparse(c.func.value) == name]
    return [request for request in (request_of(module, call) for call in calls) if request is not None]


def are_harmless(module: Module, requests: list[CodeRequest]) -> bool:
    """Return whether there are POST or PATCH requests, and all of them only read, compute or log in."""
    sent = [request for request in requests if request.method in ("POST", "PATCH")]
    return bool(sent) and all(_is_harmless(module, request) for request in sent)
