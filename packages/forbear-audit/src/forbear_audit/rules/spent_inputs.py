"""STATE of inputs: files, generators and iterators that the first attempt reads to their end."""

import ast
from collections.abc import Callable, Iterator

from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import FILE_MODE, REWINDS, STREAMS
from forbear_audit.reading.retry_use import RetryUse
from forbear_audit.reading.scopes import list_passed, parameters, walk_inside
from forbear_audit.reading.syntax import calls_in, group

_BODIES = ("data", "content", "body", "files", "fileobj", "Body", "Fileobj")
"""The options by which a body is sent."""

_SENDS_FILES = (
    "upload_fileobj", "upload_from_file", "storbinary", "storlines", "putfo", "copy_expert", "copy_from", "upload_blob",
    "load_table_from_file", "upload_file_to_blob", "upload_from_stream", "put_from_stream",
)  # fmt: skip
"""The methods that read a file which they get."""

_STREAMS = ("BinaryIO", "TextIO", "IO", "BufferedReader", "TextIOWrapper")
_DISPLAYS = (ast.Dict, ast.Tuple, ast.List)
_SPENT = ("iter", "map", "filter", "zip", "reversed", "enumerate")
"""The builtins whose result can be read once."""


def find_streams(module: Module, use: RetryUse, own: set[str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the open files that the caller passes and an attempt reads, if nothing goes back to their begin."""
    if use.code.function is None:
        return
    taken = {each.arg for each in parameters(use.code.function)} - own
    for call in (node for statement in use.code.region for node in ast.walk(statement) if isinstance(node, ast.Call)):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        rewinds = method and "httpx" in module.packages and "requests" not in module.packages  # of its own `files`
        names = [name for name in _BODIES if name != "files"] if rewinds else _BODIES
        bodies = [option.value for option in call.keywords if option.arg in names]
        sent = [node for body in bodies if not isinstance(body, ast.Call) for node in walk_inside([body])]
        sent += [*call.args] if method in _SENDS_FILES else []
        sent += [call.func.value] if isinstance(call.func, ast.Attribute) and method == "read" else []
        given = [part for part in sent if isinstance(part, ast.Name)]
        named = {part.id for part in given if STREAMS.search(part.id) or module.type_name(part).endswith(_STREAMS)}
        reads = [body.func for body in bodies if isinstance(body, ast.Call) and not body.args]
        named |= {ast.unparse(each.value) for each in reads if isinstance(each, ast.Attribute) and each.attr == "read"}
        for name in sorted(named & taken):
            if not changes(use, name, REWINDS.search):
                taken.remove(name)
                yield call, f"the file `{name}` is at its end after the first attempt"


def changes(use: RetryUse, target: str, is_method: Callable[[str], object]) -> bool:
    """Return whether the function of a retry calls such a method of `target`, or sets an item of it."""
    whole = use.code.loop is None and use.code.function is not None
    for node in walk_inside(use.code.function.body if whole and use.code.function is not None else use.code.region):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if is_method(name):
                if ast.unparse(owner) == target:
                    return True
            case ast.Assign(targets=[ast.Subscript(value=owner) | (ast.Attribute() as owner)]) if (
                ast.unparse(owner) == target
            ):
                return True
            case _:
                pass
    return False


def find_spent(module: Module, use: RetryUse, body: list[ast.stmt], own: set[str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the files and iterators that are made before the first attempt and read by each."""
    seen: set[str] = set()
    sent = use.code.call  # what it passes is made once
    for item in list_passed(sent) if sent is not None else ():
        what = _name_spent(module, item) if isinstance(item, ast.Call) else None
        if what is not None:
            yield item, f"the {what} `{ast.unparse(item)}` is at its end after the first attempt"
    for item in _find_read(body):
        text = ast.unparse(item)
        if text.partition(".")[0] in own or text in seen or changes(use, text, REWINDS.search):
            continue
        seen.add(text)
        made = module.value(item)
        filled = module.keep(_index_appended).get(f"{text}.append", [])
        held = [made, *(each for call in filled if isinstance(made, ast.List) for each in call.args)]
        for value in (part for each in held if each is not None for part in _parts(each)):
            what = _name_spent(module, value)
            if what is not None:
                yield item, f"the {what} `{text}` is at its end after the first attempt"


def _index_appended(module: Module) -> dict[str, list[ast.Call]]:
    """Return the calls of a module that append to a list, by their text."""
    return group((ast.unparse(call.func), call) for call in module.calls_of("append"))


def _find_read(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """Yield the names and attributes that an attempt passes to a call, iterates, or reads from."""
    for node in walk_inside(body):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call):
            parts = list_passed(node)
            shown = [part for item in parts if isinstance(item, _DISPLAYS) for part in ast.walk(item)]
            parts += [part for part in shown if isinstance(part, ast.Name)]  # {"file": ("a.txt", file)}
            made = [part.args[0] for part in parts if isinstance(part, ast.Call) and part.args]
            inner = calls_in(each.body for each in made if isinstance(each, ast.Lambda))  # iter(lambda: f.read(9), b"")
            methods = [each.func for each in (node, *inner) if isinstance(each.func, ast.Attribute)]
            parts += [method.value for method in methods if method.attr == "read"]
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            parts = [node.iter]
        yield from (part for part in parts if isinstance(part, (ast.Name, ast.Attribute)))


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression, or what a dictionary, a tuple or a list holds: `("a.txt", open("a.txt"))`."""
    inner = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", None)
    yield from [value] if inner is None else (part for each in inner for part in _parts(each))


def _name_spent(module: Module, value: ast.expr | None) -> str | None:
    """Return what can be read only once, None for other values."""
    if isinstance(value, ast.GeneratorExp):
        return "generator"
    if isinstance(value, ast.Attribute):
        made = module.value(value.value) if value.attr == "stdout" else None
        is_pipe = isinstance(made, ast.Call) and module.name_of(made.func) == "subprocess.Popen"
        return "file" if is_pipe or module.name_of(value).startswith("sys.stdin") else None
    if not isinstance(value, ast.Call):
        return None
    name = module.name_of(value.func)
    if name in (*_SPENT, "csv.reader", "csv.DictReader"):
        return "iterator"
    if name in ("aiohttp.FormData", "aiohttp.MultipartWriter", "requests_toolbelt.MultipartEncoder"):
        return "form"
    if name in ("io.BytesIO", "io.StringIO", "tempfile.TemporaryFile", "tempfile.NamedTemporaryFile"):
        return "file"
    function = module.resolve_call(value)[1]
    if function is not None and any(isinstance(node, ast.Yield) for node in walk_inside(function.body)):
        return None if function.decorator_list else "generator"
    opened = name == "open" or (isinstance(value.func, ast.Attribute) and value.func.attr == "open")
    modes = [mode for mode in map(module.constant, value.args) if isinstance(mode, str) and FILE_MODE.search(mode)]
    return "file" if opened and not any(mode[0] in "wax" or "+" in mode for mode in modes) else None
