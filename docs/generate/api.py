"""The reference of the API: a page for each public module, made from signatures and docstrings, which are Markdown."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from importlib import import_module
from itertools import pairwise
from pkgutil import iter_modules
from textwrap import dedent
from types import ModuleType
from typing import Any, get_origin

from docs.generate.markdown import bullets, text
from forbear.core.record import Record
from forbear.core.verdict import Verdict
from forbear.policy import Policy

CLIENTS = (
    "aiohttp", "botocore", "discovery", "google", "google_storage", "grpc", "httpx", "httpx2", "redis", "requests",
    "urllib3", "valkey",
)  # fmt: skip
_HTTPX = ("AsyncRetryTransport", "RetryTransport", "install")

MODULES: dict[str, tuple[str, ...] | None] = {
    "forbear": None,
    "forbear.budgets": None,
    "forbear.events": None,
    "forbear.policies": None,
    "forbear.verdicts": None,
    "forbear.answers": None,
    "forbear.adapters": None,
    "forbear.clients.aiohttp": ("RetryMiddleware",),
    "forbear.clients.botocore": ("install", "uninstall"),
    "forbear.clients.discovery": ("install",),
    "forbear.clients.google": ("async_retry_for", "retry_for"),
    "forbear.clients.google_storage": None,
    "forbear.clients.grpc": None,
    "forbear.clients.httpx": _HTTPX,
    "forbear.clients.httpx2": _HTTPX,
    "forbear.clients.redis": None,
    "forbear.clients.requests": ("RetryAdapter", "install"),
    "forbear.clients.urllib3": ("Retry",),
    "forbear.clients.valkey": None,
    "forbear.services": None,
    "forbear.services.aws": None,
    "forbear.services.cloud_storage": None,
    "forbear.services.iam": None,
    "forbear.services.memorystore": None,
    "forbear.services.redis": None,
    "forbear.services.resource_manager": None,
    "forbear.services.rfc9110": ("Rfc9110", "policy"),
    "forbear.testing": None,
    "forbear_cloud": None,
    "forbear.testing.proxy": ("Proxy", "at_random"),
    "forbear_audit.storm": None,
    "forbear.testing.valkey": ("NoValkey", "valkey_server"),
    "forbear_transfer": None,
    "forbear.observe": None,
    "forbear.observe.logging": ("Logging",),
    "forbear.observe.opentelemetry": ("OpenTelemetry",),
    "forbear.observe.prometheus": ("Prometheus",),
    "forbear.observe.structlog": ("Structlog",),
    "forbear_simulate": None,
    "forbear_simulate.gallery": None,
    "forbear.export": None,
    "forbear_audit": None,
    "forbear_audit.fixes": None,
    "forbear.http.request": ("Request",),
    "forbear.text.redact": ("redact",),
}
"""The public modules with their public names; None stands for those of `__all__`."""

_MODULE_NAME = re.compile(r"\b(?:[a-z_][a-z_0-9]*\.)+(?=[A-Za-z_])")
_CHOICE = re.compile(r", (?![^\[]*\])")  # the commas of a Union, not those within its members
_LONGEST = 100


_USED_FIRST = ("retry", "install", "Exponential", "transient", "report", "update", "aupdate", "Api", "Policy")
"""The names of the package that most programs use, in the order of use."""


def names(module: str) -> tuple[str, ...]:
    """Return the public names of a public module in the order of its page.

    It is that of the alphabet; on the page of the package what is used first comes before.
    """
    listed = MODULES[module] or tuple(import_module(module).__all__)
    first = _USED_FIRST if module == "forbear" else ()
    return (*first, *sorted(set(listed) - set(first), key=str.lower))


def index() -> Iterator[str]:
    """Yield the lines of the page that lists all public names."""
    yield from ("# API", "")
    yield from text(
        """Every public name of forbear has an entry. What is not listed here may change in any release
        ([stability](../../stability.md)).""",
        """Most programs need few of them: [`retry`](forbear.md#retry) makes a [`Policy`](forbear.md#policy), with waits
        by [`Exponential`](forbear.md#exponential), and [`report`](forbear.md#report) says why a run ended. A client
        takes a policy as its first argument or as `policy=`.""",
        """Objects that only hold values, such as a `Policy` or a `Report`, cannot be changed;
        `value.replace(field=...)` returns a changed copy.""",
        """In signatures, `Seconds` is a number of seconds or a `timedelta`. `On` is what the parameter `on` takes, and
        `Answer` is what a function given to it may return: a bool, a number, a `timedelta` or a `Verdict`.
        A default of `...` is longer than a line, and the text says what it is.""",
        """The examples run in tests. They have `forbear` and the names of their page. `valkey` is the path of a Unix
        socket on which a Valkey listens, and `cloud` an [embedded cloud](../../testing.md#the-embedded-cloud) with the
        bucket `my-bucket`. Waits take no time there.""",
    )
    for title, prefixes in _PARTS.items():
        yield from (f"## {title}", "")
        modules = [module for module in MODULES if _is_below(module, prefixes)]
        yield from bullets(f"[{module}]({module}.md): {', '.join(_links(module))}" for module in modules)


_PARTS = {
    "Retrying": (
        "forbear",
        "forbear.budgets",
        "forbear.events",
        "forbear.policies",
        "forbear.verdicts",
        "forbear.answers",
    ),
    "Clients": ("forbear.clients", "forbear.adapters"),
    "Services": ("forbear.services",),
    "Testing": ("forbear.testing", "forbear_cloud"),
    "Transfers": ("forbear_transfer",),
    "Observing": ("forbear.observe",),
    "Simulating": ("forbear_simulate",),
    "Tools": ("forbear.export", "forbear_audit", "forbear.http", "forbear.text"),
}


def _is_below(module: str, prefixes: tuple[str, ...]) -> bool:
    return any(module == prefix or (module.startswith(f"{prefix}.") and prefix != "forbear") for prefix in prefixes)


def _links(module: str) -> Iterator[str]:
    """Yield a link to each entry of a page; of two names that differ in their case only, the second gets a number."""
    seen = set[str]()
    for name in names(module):
        anchor = name.lower()
        yield f"[`{name}`]({module}.md#{anchor}{'-1' * (anchor in seen)})"
        seen.add(anchor)


def page(module: str) -> Iterator[str]:
    """Yield the lines of the page of a module."""
    loaded = import_module(module)
    yield from (f"# {module}", "")
    yield from _docstring(loaded.__doc__)
    for name in names(module):
        yield from entry(loaded, name)


def entry(module: ModuleType, name: str) -> Iterator[str]:
    """Yield the entry of a public name: its signature or value, its docstring, and the members of a class."""
    value = getattr(module, name)
    yield from (f"## `{name}`", "")
    if get_origin(value) is not None:
        yield from ("```py", *_wrapped(f"{name} = {_short(repr(value))}"), "```", "")
        yield from _docstring(variable_doc(module.__name__, name))
    elif isinstance(value, type):
        yield from _class(name, value)
    elif callable(value) and hasattr(value, "__name__") and not inspect.isbuiltin(value):
        yield from _signature("async def" if inspect.iscoroutinefunction(value) else "def", name, value)
        yield from _docstring(inspect.getdoc(value))
    elif isinstance(value, ModuleType):
        yield from text(f"The module [{value.__name__}]({value.__name__}.md).")
    else:
        yield from _constant(module, name, value)


def _constant(module: ModuleType, name: str, value: object) -> Iterator[str]:
    shown = _short(repr(value))
    if isinstance(value, int | float | str) or (isinstance(value, Verdict) and len(shown) < _LONGEST):
        yield from ("```py", *_wrapped(f"{name} = {shown}"), "```", "")
    made_by = _function_named(module, name) if isinstance(value, Policy) else None
    said = inspect.getdoc(made_by) if made_by else variable_doc(module.__name__, name)
    if isinstance(value, Policy) and said:
        said = said.removeprefix("Return ")
        said = said[0].upper() + said[1:]
    yield from _docstring(said or f"A `{type(value).__name__}`.")


def _function_named(package: ModuleType, name: str) -> object:
    """Return the function of a module in a package that makes the package's value of the same name, else None."""
    for below in iter_modules(getattr(package, "__path__", ())):
        made_by = vars(import_module(f"{package.__name__}.{below.name}")).get(name)
        if inspect.isroutine(made_by) or hasattr(made_by, "__wrapped__"):
            return made_by
    return None


def _class(name: str, value: type[Any]) -> Iterator[str]:
    own = [each for each in value.__mro__ if each.__module__.startswith("forbear") and each is not Record]
    if issubclass(value, Enum):
        yield from ("```py", f"class {name}({value.__mro__[1].__name__})", "```", "")
        yield from _docstring(value.__doc__)
        yield from bullets(f"`{name}.{member.name}`: {_meaning(member)}" for member in value)
    else:
        has_constructor = any({"__init__", "__new__"} & {*vars(each)} for each in own)
        if not has_constructor or getattr(value, "_is_protocol", False):
            bases = [each.__name__ for each in value.__mro__[1:] if each.__name__ not in {"object", "Generic"}]
            yield from ("```py", f"class {name}({bases[0]})" if bases else f"class {name}", "```", "")
        else:
            yield from _signature("class", name, value)
        yield from _docstring(inspect.getdoc(value))
    members: dict[str, Any] = {}
    for each in own:
        for member, raw in vars(each).items():
            if not member.startswith("_") and (
                type(raw) in {classmethod, staticmethod} or isinstance(raw, property) or inspect.isfunction(raw)
            ):
                members.setdefault(member, raw)
    fields = _fields(own, {*members, *_parameters(value)})
    if fields:
        yield from text("Attributes:")
        yield from bullets(fields)
    for member, raw in members.items():
        yield from _member(name, member, raw, value)


def _parameters(value: type[Any]) -> Iterator[str]:
    """Yield the names of the parameters of a class that no string describes: its signature shows them."""
    try:
        parameters = [*inspect.signature(value).parameters]
    except (TypeError, ValueError):
        return
    described = {
        name for each in value.__mro__ if each.__module__.startswith("forbear") for name in _attribute_docs(each)
    }
    yield from (name for name in parameters if name not in described)


def _member(owner: str, name: str, raw: Any, value: type[Any]) -> Iterator[str]:
    function = raw
    prefix = ""
    if isinstance(raw, property):
        yield from (f"### `{owner}.{name}`", "")
        yield from _docstring(inspect.getdoc(raw))
        return
    if type(raw) in {classmethod, staticmethod}:
        prefix = f"@{type(raw).__name__}\n"
        function = raw.__func__
    if not inspect.isfunction(function):
        return
    yield from (f"### `{owner}.{name}`", "")
    word = "async def" if inspect.iscoroutinefunction(function) else "def"
    yield from _signature(prefix + word, name, getattr(value, name) if prefix else function)
    yield from _docstring(inspect.getdoc(function))


def _fields(own: list[type[Any]], seen: set[str]) -> list[str]:
    """Return a line for each annotated attribute of classes, the most general class first.

    An attribute with a value in its class needs a text, too: without one it is no part of the interface.
    """
    collected: dict[str, str] = {}
    said: dict[str, str] = {}
    valued = {name for each in own for name in vars(each)}
    for each in reversed(own):
        said |= _attribute_docs(each)
        for name, kind in inspect.get_annotations(each).items():
            if not name.startswith("_") and name not in seen and (name in said or name not in valued):
                shown = _short(kind if isinstance(kind, str) else inspect.formatannotation(kind))
                collected[name] = f"`{name}: {shown}`" + (f": {' '.join(said[name].split())}" if name in said else "")
    return [*collected.values()]


@cache
def _attribute_docs(owner: type[Any]) -> dict[str, str]:
    try:
        body = ast.parse(dedent(inspect.getsource(owner))).body[0]
    except (OSError, TypeError, SyntaxError):  # made by a function, not written as a class
        return {}
    said = _said_below(body.body) if isinstance(body, ast.ClassDef) else {}
    return {name: _ruled(rule) for name, rule in _rules(owner).items()} | said


def _rules(owner: type[Any]) -> dict[str, Any]:
    """Return the rules of the fields of a class of forbear_simulate by their names, {} for other classes."""
    return (
        {each.name: each.metadata["rule"] for each in fields(owner) if "rule" in each.metadata}
        if is_dataclass(owner)
        else {}
    )


def _ruled(rule: Any) -> str:
    """Return the text of a rule with the words that it allows, or with its unit of time or rate."""
    allowed = ", ".join(f'"{word}"' for word in getattr(rule, "words", ())) or (
        rule.unit if "second" in rule.unit else ""
    )
    return f"{rule.text[0].upper()}{rule.text[1:]}" + (f" ({allowed})." if allowed else ".")


def _said_below(statements: list[ast.stmt]) -> dict[str, str]:
    """Return the strings that stand below variables, by the names of these."""
    collected: dict[str, str] = {}
    for variable, below in pairwise(statements):
        targets = variable.targets if isinstance(variable, ast.Assign) else [getattr(variable, "target", None)]
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            collected |= {
                each.id: inspect.cleandoc(below.value.value) for each in targets if isinstance(each, ast.Name)
            }
    return collected


def variable_doc(module: str, name: str) -> str:
    """Return the string below the definition of a variable, "" if there is none; imports are followed."""
    loaded = import_module(module)
    try:
        tree = ast.parse(inspect.getsource(loaded))
    except OSError:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("forbear"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return variable_doc(node.module, alias.name)
    return _said_below(tree.body).get(name, "")


def _meaning(member: Enum) -> str:
    said = _attribute_docs(type(member)).get(member.name)
    return " ".join(said.split()) if said else f"`{member.value!r}`"


def _signature(word: str, name: str, value: Callable[..., object]) -> Iterator[str]:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        yield from ("```py", f"{word} {name}", "```", "")
        return
    parts, kinds = list[str](), [parameter.kind for parameter in signature.parameters.values()]
    for position, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.VAR_POSITIONAL not in kinds[:position]:
            parts.extend(["*"] if parameter.KEYWORD_ONLY not in kinds[:position] else [])
        parts.append(_shown(parameter))
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.POSITIONAL_ONLY not in kinds[position + 1 :]:
            parts.append("/")
    result = ""
    if word != "class" and signature.return_annotation is not signature.empty:
        returned = signature.return_annotation
        result = f" -> {_short(returned if isinstance(returned, str) else inspect.formatannotation(returned))}"
    line = f"{word} {name}({', '.join(parts)}){result}"
    if max(map(len, line.splitlines())) > _LONGEST:
        line = "\n".join([f"{word} {name}(", *(f"    {part}," for part in parts), f"){result}"])
    yield from ("```py", *line.splitlines(), "```", "")


def _shown(parameter: inspect.Parameter) -> str:
    """Return a parameter with its type and default; a long default, or one with an address, is three dots."""
    default = parameter.default
    if default is not parameter.empty and (len(repr(default)) > _LONGEST or " at 0x" in repr(default)):
        parameter = parameter.replace(default=Ellipsis)
    return _short(str(parameter)).replace("Ellipsis", "...")


def _short(annotation: str) -> str:
    """Return a type or a parameter without the modules of its names and without quotes around annotations."""
    bare = re.sub(r"\*<class '([^']*)'>", r"Unpack[\1]", annotation)  # as Python 3.11 writes it
    bare = re.sub(r"(?<=[:>] )'([^']*)'", r"\1", re.sub(r"<class '([^']*)'>", r"\1", bare))
    bare = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", re.sub(r"^'([^']*)'$", r"\1", bare))
    bare = re.sub(r"frozenset\(\{(.*?)\}\)", lambda match: f"frozenset({{{_sorted(match[1])}}})", bare)
    bare = re.sub(r"Optional\[((?:[^][]|\[[^][]*\])*)\]", r"\1 | None", bare)  # as Python 3.14 writes it
    bare = re.sub(r"Union\[((?:[^][]|\[[^][]*\])*)\]", lambda match: _CHOICE.sub(" | ", match[1]), bare)  # and this
    return _MODULE_NAME.sub("", bare.replace("~", ""))


def _sorted(listed: str) -> str:
    return ", ".join(sorted(listed.split(", ")))


def _wrapped(line: str) -> list[str]:
    if len(line) <= _LONGEST:
        return [line]
    name, _, rest = line.partition(" = ")
    parts = re.split(r" \| (?![^\[]*\])", rest)
    return [f"{name} = (", f"    {parts[0]}", *(f"    | {part}" for part in parts[1:]), ")"]


def _docstring(doc: str | None) -> Iterator[str]:
    if doc:
        text = re.sub(r"^(>>> .*(?:\n.+)*)", r"```pycon\n\1\n```", inspect.cleandoc(doc), flags=re.MULTILINE)
        yield from (*text.splitlines(), "")


PAGES: dict[str, Callable[[], Iterator[str]]] = {"api/index": index} | {
    f"api/{module}": partial(page, module) for module in MODULES
}
"""The pages of the API by their names."""
