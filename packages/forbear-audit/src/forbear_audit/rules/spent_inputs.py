"""STATE of inputs: files, generators and iterators that the first attempt reads to their end."""

import ast
from collections.abc import Callable, Iterator

from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import AWAITED_AGAIN, FILE_MODE, REWINDS, STREAMS
from forbear_audit.reading.retry_use import RetryUse
from forbear_audit.reading.scopes import list_passed, walk_inside
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
_ENDLESS = ("count", "cycle", "repeat")
_BUILDS = ("list", "tuple", "dict", "set", "sorted", "sum", "max", "min", "len", "dumps", "join")
"""The functions that read what they get at once, and cannot fail by a fault elsewhere."""

_SPENT = {
    "iterator": (
        "iter", "map", "filter", "zip", "reversed", "enumerate", "csv.reader", "csv.DictReader", "os.scandir",
    ),
    "form": ("aiohttp.FormData", "aiohttp.MultipartWriter", "requests_toolbelt.MultipartEncoder"),
    "file": (
        "io.BytesIO", "io.StringIO", "tempfile.TemporaryFile", "tempfile.NamedTemporaryFile",
        "tempfile.SpooledTemporaryFile",
    ),
}  # fmt: skip
"""The makers of things that can be read once, by what they make."""


def changes(use: RetryUse, target: str, is_method: Callable[[str], object], *, sets: bool = True) -> bool:
    """Return whether the function of a retry calls such a method of `target`, or (`sets`) sets an item of it."""
    whole = use.code.loop is None and use.code.function is not None
    for node in walk_inside(use.code.function.body if whole and use.code.function is not None else use.code.region):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if is_method(name):
                pass
            case ast.Assign(targets=[ast.Subscript(value=owner) | (ast.Attribute() as owner)]) if sets:
                pass
            case _:
                continue
        if ast.unparse(owner) == target:
            return True
    return False


def find_spent(module: Module, use: RetryUse, body: list[ast.stmt], own: set[str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the files and iterators that are made before the first attempt and read by each."""
    seen: set[str] = set()
    sent = use.code.call  # what it passes is made once
    for item in list_passed(sent) if sent is not None else ():
        what = _name_spent(module, item) if isinstance(item, ast.Call) else None
        if what is not None:
            yield item, f"the {what} `{ast.unparse(item)}` is at its end after the first attempt"
    for item in _find_read(module, body):
        text = ast.unparse(item)
        if text.partition(".")[0] in own or text in seen or changes(use, text, REWINDS.search):
            continue
        made = module.value(item)
        filled = module.keep(_index_appended).get(f"{text}.append", [])
        held = [module.find_assigned(item), made, _find_unpacked(module, item)]
        held += [each for call in filled if isinstance(made, ast.List) for each in call.args]
        known = (_name_spent(module, part) for each in held if each is not None for part in _parts(each))
        what = "file" if _is_stream(module, item) else next((kind for kind in known if kind), None)
        if isinstance(module.parents.get(item), ast.Await) and module.is_parameter(item):
            what = None if AWAITED_AGAIN.search(f"{text} {module.type_name(item)}") else "coroutine"
        if what is not None:
            seen.add(text)
            yield item, f"the {what} `{text}` is at its end after the first attempt"


def _find_unpacked(module: Module, item: ast.expr) -> ast.expr | None:
    """Return what a function of the package returns for a name among others."""
    value, at = module.unpacked.get((module.scope(item), getattr(item, "id", "")), (None, 0))
    made = module.value(value)
    return module.value(made.elts[at]) if isinstance(made, ast.Tuple) and len(made.elts) > at else None


def _is_stream(module: Module, item: ast.expr) -> bool:
    """Return whether a parameter is an open file: by its name, its type, or since it is read to be sent."""
    around, name = module.parents.get(item), getattr(item, "id", "")
    is_sent = isinstance(around, ast.Call) and getattr(around.func, "attr", "") in _SENDS_FILES
    is_sent = is_sent or (isinstance(around, ast.keyword) and around.arg in _BODIES)
    reads = isinstance(around, ast.Attribute) and around.attr == "read"
    body = module.parents.get(module.parents.get(around, item)) if reads and around is not None else None
    is_read = isinstance(body, ast.keyword) and body.arg in _BODIES
    is_named = is_read or ((is_sent or reads) and STREAMS.search(name)) or module.type_name(item).endswith(_STREAMS)
    return bool(is_named) and module.is_parameter(item)


def _index_appended(module: Module) -> dict[str, list[ast.Call]]:
    """Return the calls of a module that append to a list, by their text."""
    return group((ast.unparse(call.func), call) for call in module.calls_of("append"))


def _find_read(module: Module, body: list[ast.stmt]) -> Iterator[ast.Name | ast.Attribute]:
    """Yield the names and attributes that an attempt passes to a call, awaits, iterates, or reads from."""
    for node in walk_inside(body):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call) and _is_last(module, node):
            continue
        if isinstance(node, ast.Call):
            rewinds = "httpx" in module.packages and "requests" not in module.packages  # of its own `files`
            parts = [*node.args, *(each.value for each in node.keywords if each.arg != "files" or not rewinds)]
            shown = [part for item in parts if isinstance(item, _DISPLAYS) for part in ast.walk(item)]
            parts += [part for part in shown if isinstance(part, ast.Name)]  # {"file": ("a.txt", file)}
            made = [part.args[0] for part in parts if isinstance(part, ast.Call) and part.args]
            inner = calls_in(each.body for each in made if isinstance(each, ast.Lambda))  # iter(lambda: f.read(9), b"")
            methods = [each.func for each in (node, *inner) if isinstance(each.func, ast.Attribute)]
            parts += [method.value for method in methods if method.attr == "read"]
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            parts = [node.iter]
        elif isinstance(node, ast.Await):
            parts = [node.value]
        yield from (part for part in parts if isinstance(part, (ast.Name, ast.Attribute)))


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression, or what a dictionary, a tuple or a list holds: `("a.txt", open("a.txt"))`."""
    inner = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", None)
    yield from [value] if inner is None else (part for each in inner for part in _parts(each))


def _is_last(module: Module, call: ast.Call) -> bool:
    """Return whether an attempt is over when a call has read what it gets: it only builds what is returned."""
    name = ast.unparse(call.func).rpartition(".")[2]
    return name in _BUILDS and isinstance(module.parents.get(call), ast.Return)


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
    what = next((kind for kind, names in _SPENT.items() if name in names), None)
    if what is not None or (name.startswith("itertools.") and name.rpartition(".")[2] not in _ENDLESS):
        return what or "iterator"
    function = module.resolve_call(value)[1]
    if function is not None:
        kinds = {ast.unparse(each).rpartition(".")[2] for each in function.decorator_list}
        if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in walk_inside(function.body)):
            return None if kinds - {"staticmethod", "classmethod"} else "generator"
        is_plain = isinstance(function, ast.AsyncFunctionDef) and not kinds - {"staticmethod", "classmethod"}
        return "coroutine" if is_plain and not isinstance(module.parents.get(value), ast.Await) else None
    if getattr(value.func, "attr", "") in ("extractfile", "iter_content", "iter_lines", "iter_bytes", "iterdir"):
        return "file" if name.endswith("extractfile") else "iterator"
    mode = find_mode(module, value)
    return "file" if mode is not None and mode[:1] not in ("w", "a", "x") and "+" not in mode else None


def find_mode(module: Module, made: ast.Call) -> str | None:
    """Return the mode in which a call opens a file, "" if it does not say it; None if it opens none."""
    if not (ast.unparse(made.func) == "open" or getattr(made.func, "attr", "") == "open"):
        return None
    modes = [mode for mode in map(module.constant, list_passed(made)) if isinstance(mode, str)]
    return next(filter(FILE_MODE.search, modes), "")
