"""`unsafe_calls_in`: the calls in a piece of code that must not be executed twice, and why.

The tables of forbear.services decide for Cloud Storage, IAM and Redis, and RFC 9110 for other requests.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from forbear_audit.libraries import clients, http, keys, sdks, sql
from forbear_audit.libraries.lookups import adds_to_read, looks_first
from forbear_audit.reading.modules import Module
from forbear_audit.reading.objects import is_stub
from forbear_audit.reading.patterns import ACTING_COMMANDS, ACTING_NAMES, FILE_MODE
from forbear_audit.reading.scopes import from_package, hides_arguments, keyword
from forbear_audit.reading.syntax import calls_in, calls_method, find_all

_DEEPEST = 3  # functions within functions
_MOST_READ = 100  # functions behind one retry
_WRITES = ("write", "writelines", "writerow", "writerows", "writeheader", "dump", "copyfileobj", "to_csv")
_RUNS = ("run", "check_call", "check_output", "call")
_SHELLS = ("paramiko.", "asyncssh.", "fabric.")


@dataclass
class UnsafeCall:
    """A call that may not be executed twice: the call, what it does, and why that is harmful.

    `kind` is what it works on ("network", "sql" or "file"), for errors that prove nothing was done. `is_seen` is
    whether the code shows what the call does. `key` is what makes its idempotency key anew in each attempt.
    """

    node: ast.Call
    text: str
    why: str
    kind: str
    is_seen: bool = True
    key: ast.AST | None = None


def unsafe_calls_in(
    module: Module,
    region: list[ast.stmt],
    *,
    repeated: list[ast.stmt] | None = None,
    path: tuple[ast.AST, ...] = (),
    read: list[ast.AST] | None = None,
) -> Iterator[UnsafeCall]:
    """Yield the calls of `region` that are not safe to repeat, and those of functions that the region calls.

    `repeated` is all that an attempt executes, by default `region`. A call in another function is reported at its
    caller. `path` has the functions that led here, `read` all that were read.
    """
    repeated, read = region if repeated is None else repeated, [] if read is None else read
    for node in calls_in(region):
        call = module.whole(node)
        if hides_arguments(call) and module.is_parameter(node.func):
            continue  # what it calls is judged where it is passed
        unsafe = _judge(module, call, repeated)
        if unsafe is not None and looks_first(module, call, repeated, changes=unsafe.text.startswith("PATCH")):
            continue
        if unsafe is not None:
            yield replace(unsafe, key=unsafe.key or keys.find_fresh_key(module, call, repeated))
            continue
        behaviours = module.list_behaviours(call)
        known = sdks.find_unknown_call(module, call, repeated) if all(is_stub(one) for _, one in behaviours) else None
        if known is not None and not looks_first(module, node, repeated, changes=False):
            yield UnsafeCall(node, *known, "network", True, keys.find_fresh_key(module, call, repeated))
        for home, function in behaviours:
            if function in path or len(path) >= _DEEPEST or len(read) >= _MOST_READ:
                continue
            read.append(function)
            with home.bound(function, call, module):
                body = [*repeated, *function.body]
                within = unsafe_calls_in(home, function.body, repeated=body, path=(*path, function), read=read)
                inner = next(within, None)
            if inner is not None:
                text = inner.text if " in " in inner.text else f"{inner.text} in {function.name}()"
                yield replace(inner, node=node, text=text, key=node if inner.key is not None else None)
                break


def _judge(module: Module, call: ast.Call, region: list[ast.stmt]) -> UnsafeCall | None:
    if adds_to_read(module, call, region):
        text = ast.unparse(call.func)
        kind = "sql" if text.endswith(("save", "commit", "flush")) else "network"
        return UnsafeCall(call, f"{text}()", "it adds to what was read, so a second attempt adds once more", kind)
    request = http.request_of(module, call)
    if request is not None:
        made = (module.resolve_call(each)[1] for each in calls_in(call.args))  # each attempt runs these, too
        region = [*region, *(part for function in made if function is not None for part in function.body)]
        harm = http.find_unsafe_request(module, request, region)
        if not harm:
            return None
        url = request.url or ""
        url = url[1:] if url.startswith("x/") else url  # a base that cannot be read is left out
        seen = http.shows_purpose(module, request)
        key = keys.find_fresh_key(module, request.call, region)
        if key is None and request.method == "PUT" and request.place:
            key = keys.find_fresh(module, request.place, region)
        return UnsafeCall(call, f"{request.method} {url}".strip(), harm, "network", seen or key is not None, key)
    known = sdks.find_adding(module, call, region) or clients.find_unsafe_call(module, call, region)
    if known is not None:
        return UnsafeCall(call, *known, "network")
    statement = sql.find_unsafe_statement(module, call, region) or sql.find_unsafe_model(module, call, region)
    if statement is not None:
        return UnsafeCall(call, *statement, "sql")
    if _appends(module, call, region):
        return UnsafeCall(call, "appending to a file", "what a failed attempt wrote stays in the file", "file")
    if _writes_to_device(module, call):
        return UnsafeCall(call, f"{ast.unparse(call.func)}()", "the device may have acted before it failed", "network")
    return _program(module, call)


def _writes_to_device(module: Module, call: ast.Call) -> bool:
    """Return whether a function whose name says that it acts writes to a socket or a serial port."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("write", "send", "sendall", "sendto"):
        return False
    function, made = module.function_of(call), sdks.maker(module, call.func.value)
    name = function.name.lstrip("_") if function is not None else ""
    acts = bool(ACTING_NAMES.search(name)) and not name.startswith(("send", "post", "push", "start", "open", "emit"))
    return acts and made.startswith(("socket.", "serial."))


def _appends(module: Module, call: ast.Call, region: list[ast.stmt]) -> bool:
    """Return whether a call opens a file to write at its end: of this machine, or of another one."""
    if getattr(call.func, "attr", getattr(call.func, "id", "")) != "open":
        return False
    modes = [module.constant(item) for item in (*call.args[:2], keyword(call, "mode")) if item is not None]
    continues = any(constant.value == "Range" for constant in find_all(region, ast.Constant))
    appends = any(isinstance(mode, str) and FILE_MODE.search(mode) and "a" in mode for mode in modes)
    return appends and calls_method(region, *_WRITES) and not continues


def _program(module: Module, call: ast.Call) -> UnsafeCall | None:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    names = (*_RUNS, "exec_command") if owner is not None and sdks.maker(module, owner).startswith(_SHELLS) else ()
    is_remote = getattr(call.func, "attr", "") in names
    if not (is_remote or from_package(module.name_of(call.func), "subprocess", *_RUNS)) or not call.args:
        return None
    words = module.value(call.args[0]) or call.args[0]
    sent = module.value(keys.open_text(module, keyword(call, "input") or ast.Constant(""))) or call
    passed = [each.value if isinstance(each, ast.Starred) else each for each in getattr(words, "elts", [words])]
    line = " ".join(ast.unparse(module.value(each) or each) for each in (*passed, sent))
    line = " ".join(re.sub(r"""[\[\](),'"]+""", " ", line).split())
    found = ACTING_COMMANDS.search(f"ssh {line}" if is_remote else line)
    name = found[found.lastindex or 0] if found else ""
    return UnsafeCall(call, f"the program {name}", "it may have acted before it failed", "network") if found else None
