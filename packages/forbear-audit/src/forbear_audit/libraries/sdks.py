"""Calls of SDKs, by the names of their methods: the request, RPC or operation of AWS that each stands for.

`forbear.explain` and the table of AWS say whether that may be executed twice, as they do when the code runs.
"""

import ast
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import forbear
from forbear.services.aws import RECOMMENDED, classify
from forbear.verdicts import Safety
from forbear_audit.libraries import keys
from forbear_audit.libraries.http import is_reading
from forbear_audit.reading import patterns
from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import from_package, keyword

_ADDING = {
    "to_sql": ("if_exists", "append"), "to_gbq": ("if_exists", "append"), "write_deltalake": ("mode", "append"),
    "to_parquet": ("mode", "append"), "write_database": ("if_table_exists", "append"), "to_csv": ("mode", "a"),
    "append_row": ("", ""), "append_rows": ("", ""), "insert_rows_json": ("row_ids", None), "insert_rows": ("", ""),
    "load_table_from_dataframe": ("job_id", None), "load_table_from_json": ("job_id", None), "insert_df": ("", ""),
    "load_table_from_uri": ("job_id", None), "load_table_from_file": ("job_id", None), "bulk": ("_id", None),
    "streaming_bulk": ("_id", None), "async_bulk": ("_id", None), "index": ("id", None), "save": ("", ""),
    "write_pandas": ("overwrite", None), "saveAsTable": ("", ""), "insertInto": ("", ""), "jdbc": ("", ""),
    "parquet": ("", ""),
}  # fmt: skip
"""The methods that add rows, with an option: its value by which they do, or None if they do without it."""

_ON_SPARK = ("saveAsTable", "insertInto", "jdbc", "save", "parquet")
_ON_ELASTIC = ("bulk", "streaming_bulk", "async_bulk", "index")
_VERBS = ("create", "insert", "publish", "submit", "send", "enqueue", "book", "dispatch")
_NAMED = ("indices", "collections", "topics", "buckets", "databases", "tables", "indexes", "queues")
_CALLS_BY_NAME = ("execute_kw", "execute")  # of Odoo: database, user, password, model, method
_MODELS = ("openai", "anthropic", "groq", "mistralai", "together")
_QUEUES = ("celery", "kombu", "taskiq")
_BEGINS = ("start", "run", "launch", "submit", "invoke")
_MAKES = ("create", "start", "insert", "enqueue", "submit", "schedule")
_UPLOADS = ("put_object", "upload_fileobj", "upload_file", "copy_object")
_SENDS_MAIL = ("sendmail", "send_message")
_STEPS = 6  # from a part to the object: client.db["x"].table
_TWICE = "it may have been done before the failure, and would be done twice"


def find_unsafe_call(module: Module, call: ast.Call, region: list[ast.stmt]) -> tuple[str, str] | None:
    """Return what a call of an SDK does and why it may not be executed twice, None if it may or if it is unknown."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    service = aws_service(module, owner) if owner is not None else None
    if service is not None:
        return _judge_aws(module, call, service, region)
    made = maker(module, owner) if owner is not None else ""
    dotted = made or module.name_of(call.func)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else dotted.rpartition(".")[2]
    if owner is not None and made.endswith("Stub"):
        return None if _is_harmless_rpc(method) else (f"the RPC {method}()", _TWICE)
    is_soap = isinstance(owner, ast.Attribute) and owner.attr == "service" and (not made or from_package(made, "zeep"))
    if owner is not None and (is_soap or from_package(made, "suds") or made.endswith(".ServerProxy")):
        asked = next((name for name in map(module.constant, call.args[4:5]) if isinstance(name, str)), method)
        method = asked if method in _CALLS_BY_NAME else method
        words = patterns.WORD_STARTS.sub("_", method).lower()
        acts = any(says.search(words) for says in (patterns.ACTING_METHODS, patterns.ACTING_NAMES))
        acts = not _is_harmless_rpc(method) if method[:1].isupper() else acts
        return (f"the call {method}()", _TWICE) if acts else None
    package = dotted.partition(".")[0] if not from_package(dotted, "django.core.mail") else "smtplib"
    first = module.value(call.args[0]) if call.args else None
    text = module.constant(first.args[0] if isinstance(first, ast.Call) and first.args else first)
    if method in ("storbinary", "storlines") and call.args and "APPE " in ast.unparse(call.args[0]):
        return "APPE of FTP", "what a failed attempt wrote stays in the file"
    if isinstance(text, str) and package == "gql" and patterns.MUTATIONS.search(text):
        return "a mutation of GraphQL", _TWICE
    known = bool(patterns.CLIENT_PACKAGES.search(f"{package}.")) and (
        package == "google" or not patterns.OTHER_READERS.search(f"{package}.")
    )
    if package == "google" and method in ("update", "set") and "Increment(" in ast.unparse(call):
        return "an update that adds", _TWICE
    if package == "google" and method == "add" and from_package(dotted, "google.cloud.firestore"):
        return "firestore: add()", _TWICE
    if (
        not known
        or package in (module.path or Path()).parts  # the package itself
        or not (patterns.ACTING_METHODS.search(method) or method in _SENDS_MAIL)
        or (_is_named(module, call, package) and keys.find_fresh_key(module, call, region) is None)
        or (method in _BEGINS and not (call.args or call.keywords))  # an application, a loop, a client
    ):
        return None
    if package == "google":
        service = dotted.rpartition(".")[2].removesuffix("Client")
        is_client = from_package(dotted, "google.cloud") and service and dotted.endswith("Client")
        if not is_client or forbear.explain(f"/google.cloud.{service}/{method}").repeatable:
            return None
    return _judge_key(module, call, region, f"{package}: {method}()")


def _is_harmless_rpc(method: str) -> bool:
    """Return whether the name of an RPC, or of an operation of SOAP, says that it only reads or sets something."""
    words = (part.capitalize() if part.isupper() else part[:1].upper() + part[1:] for part in method.split("_"))
    return bool(patterns.HARMLESS_RPCS.search("".join(words)))


def find_unknown_call(module: Module, call: ast.Call, region: list[ast.stmt]) -> tuple[str, str] | None:
    """Return what a call of an object that no table knows does by its name, None if it does not say that it acts."""
    around = module.function_of(call)
    if around is not None and (is_reading(around.name) or patterns.NO_CLIENTS.search(around.name)):
        return None
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    made = maker(module, owner) if owner is not None else ""
    dotted = made or module.name_of(call.func)
    package, _, method = dotted.partition(".")
    method = call.func.attr if isinstance(call.func, ast.Attribute) else method.rpartition(".")[2]
    if owner is not None and package in _MODELS:
        works = method in _VERBS and patterns.MODEL_JOBS.search(ast.unparse(owner))
        return _judge_key(module, call, region, f"{package}: {method}()") if works else None
    if patterns.ENQUEUES.search(ast.unparse(call.func)) and not module.packages.isdisjoint(_QUEUES):
        return f"{method}()", _TWICE
    key = keys.find_named_key(module, call)
    if key is not None:
        return (f"{method}()", keys.WHY) if keys.find_fresh(module, key, region) is not None else None
    if (
        package in sys.stdlib_module_names
        or package in (module.path or Path()).parts
        or patterns.OTHER_READERS.search(f"{package}.")
    ):
        return None
    if owner is not None and (patterns.NO_CLIENTS.search(ast.unparse(owner)) or aws_service(module, owner)):
        return None
    text = "" if owner is None else ast.unparse(owner)
    is_part = isinstance(owner, ast.Attribute) and ast.unparse(owner.value) not in ("self", "cls")  # a.orders.create
    is_model = isinstance(owner, ast.Name) and text[:1].isupper() and _is_from_package(module, owner)  # Event.create()
    is_known = is_part or is_model or patterns.ACTING_OWNERS.search(text) or (made and not made.startswith("."))
    says = patterns.ACTING_METHODS if patterns.STUBS.search(text) else patterns.ACTING_NAMES
    is_named = patterns.NAMED_THINGS.search(patterns.WORD_STARTS.sub("_", method).lower()) or _is_named(
        module, call, package
    )
    acts = not is_named and (says.search(method) or (method in _VERBS and is_known))
    if not acts or not (call.args or call.keywords):
        return None
    if any(patterns.SENT_KEYS.search(ast.unparse(item).rpartition(".")[2]) for item in call.args):
        return None  # the server knows what it has seen
    return _judge_key(module, call, region, f"{method}()")


def _is_from_package(module: Module, owner: ast.Name) -> bool:
    """Return whether a class is imported, or stands below one that is, such as `class Event(peewee.Model)`."""
    node = module.top.get(owner.id)
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    return owner.id in module.imports or any("." in module.name_of(base)[1:] for base in bases)


def _judge_key(module: Module, call: ast.Call, region: list[ast.stmt], what: str) -> tuple[str, str] | None:
    """Return what a call does, None if it has a key that is made outside of `region`."""
    key = keys.find_key(module, call)
    if key is None:
        return what, _TWICE
    return (what, keys.WHY) if keys.find_fresh(module, key, region) is not None else None


def find_adding(module: Module, call: ast.Call, region: list[ast.stmt]) -> tuple[str, str] | None:
    """Return which method of a data library adds rows, and why it may not be executed twice; None for others."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in _ADDING:
        return None
    option, value = _ADDING[name]
    text = ast.unparse(call)
    if name in _ON_SPARK and not (name == "insertInto" or "mode('append')" in text):
        return None
    if name in _ON_ELASTIC:
        known = module.name_of(call.func) if name != "index" else maker(module, getattr(call.func, "value", call.func))
        passed = " ".join(map(ast.unparse, _list_behind(module, call)))
        is_likely = not known and keyword(call, "document", "body") is not None  # a client that is passed in
        packages = module.packages if is_likely else {known.partition(".")[0]}
        if packages.isdisjoint(("elasticsearch", "opensearchpy")) or "'_id'" in passed:
            return None
    given = keyword(call, option) if option else None
    if value is not None and option and (given is None or module.constant(given) != value):
        return None
    if value is None and given is not None and module.constant(given) is not None:
        return (f"{name}()", keys.WHY) if keys.find_fresh(module, given, region) is not None else None
    config, function = module.value(keyword(call, "job_config")), module.function_of(call)
    if config is not None and patterns.REPLACES_TABLE.search(ast.unparse(function or config)):
        return None
    return f"{name}()", "the rows may have been added before the failure, and would be added twice"


def _list_behind(module: Module, call: ast.Call) -> Iterator[ast.AST]:
    """Yield what a call passes, and the functions that make it."""
    for value in map(module.value, call.args):
        if value is not None:
            yield value
            made = [node for node in ast.walk(value) if isinstance(node, ast.Call)]  # also of a list comprehension
            yield from (function for one in made if (function := module.resolve_call(one)[1]) is not None)


def _is_named(module: Module, call: ast.Call, package: str) -> bool:
    """Return whether a call names what it creates, so that a second one finds that it is there."""
    if isinstance(kept := keyword(call, "retain"), ast.Constant) and kept.value is True:
        return True  # a message that is kept sets a state
    if package == "kubernetes":
        return not any("generate" in ast.unparse(each) for each in (call, *_list_behind(module, call)))
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    passed = next(iter(call.args), None)  # pymongo writes the `_id` that it makes into the caller's document
    holder = getattr(getattr(call.func, "value", None), "attr", "")  # client.indices.create(...)
    has_id = method.startswith(_MAKES) and keyword(call, "id", "_id", "job_id", "_job_id") is not None
    is_named = has_id or holder in _NAMED or bool(patterns.NAMED_THINGS.search(method))
    return is_named or (package in ("pymongo", "motor") and isinstance(passed, ast.Name))


def maker(module: Module, owner: ast.expr) -> str:
    """Return the name of the function whose call made what an expression is or is a part of; "" if it is unknown."""
    for _ in range(_STEPS):
        value = module.value(owner)
        note = module.type_name(value) if isinstance(value, (ast.Name, ast.Attribute)) else ""
        if note or isinstance(value, ast.Name):
            return note
        if isinstance(value, ast.Call):
            made = module.name_of(value.func)
            if made and (made[0] != "." or made.endswith("Stub")) and not module.is_given(value.func):
                return made
            factory = module.value(value.func)  # Session = sessionmaker(...)
            if isinstance(factory, ast.Call):
                return module.name_of(factory.func)
            value = value.func
        if not isinstance(value, (ast.Attribute, ast.Subscript)):
            break
        owner = value.value
    return ""


def aws_service(module: Module, owner: ast.expr) -> str | None:
    """Return the service of AWS whose client or resource an expression is, None if it is none; "" if it is unknown."""
    client = boto_client(module, owner)
    if client is not None:
        name = module.constant(client.args[0]) if client.args else None
        return name if isinstance(name, str) else ""
    value = module.value(owner)
    note = module.type_name(value) if value is not None else ""
    package = note.partition(".")[0]
    return (
        package.partition("boto3_")[2].replace("_", "-") or None if package.startswith(("mypy_b", "types_b")) else None
    )


def boto_client(module: Module, owner: ast.expr) -> ast.Call | None:
    """Return the call that made a client or a resource of boto3, None if `owner` is none."""
    for _ in range(_STEPS):
        value = module.value(owner)
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            return None
        if value.func.attr in ("client", "resource", "create_client"):
            maker = module.value(value.func.value)
            made = module.name_of(maker.func if isinstance(maker, ast.Call) else value.func)
            return value if "boto" in made or "session" in ast.unparse(value.func).lower() else None
        if not value.func.attr[:1].isupper():
            return None
        owner = value.func.value  # boto3.resource("dynamodb").Table("x")
    return None


def _as_model(service: str, name: str, options: list[str]) -> Any:
    """Return an operation as `forbear.services.aws.classify` reads one of botocore: with what code shows of it."""
    model = SimpleNamespace(documentation="", service_name=service, name=name, required_members=options, metadata={})
    model.service_model = model.input_shape = model
    model.members = dict.fromkeys(options, model)
    return model


def _as_typed(name: object, value: object) -> dict[object, object]:
    """Return a value for an expression of DynamoDB as botocore sends it; a value that is unknown is its own name."""
    kinds = [*cast("dict[object, object]", value)] if isinstance(value, dict) else []
    kind = kinds[0] if len(kinds) == 1 else "S"
    return {kind: [name] if kind in ("SS", "NS", "BS") else name}


def _judge_aws(module: Module, call: ast.Call, service: str, region: list[ast.stmt]) -> tuple[str, str] | None:
    assert isinstance(call.func, ast.Attribute)  # noqa: S101 - for type checkers
    method = call.func.attr
    fresh = keys.find_fresh_key(module, call, region)
    makes = fresh is not None and (method in _UPLOADS or patterns.ACTING_METHODS.search(method))  # under a new name
    operation = _operation(service, method) or ("PutObject" if makes else None)
    if operation is None or any(option.arg is None for option in call.keywords):
        return None
    values = {option.arg: module.constant(option.value) for option in call.keywords if option.arg}
    parameters = {name: "x" if value is ... else value for name, value in values.items()}
    given = parameters.get("ExpressionAttributeValues")
    if isinstance(given, dict):
        pairs = cast("dict[object, object]", given).items()
        parameters["ExpressionAttributeValues"] = {name: _as_typed(name, value) for name, value in pairs}
    judged = classify(_as_model(service, operation, [*parameters]), parameters)
    token = next((name for name in parameters if name.endswith(("Token", "DeduplicationId")) or name == "name"), None)
    if fresh is None and (judged.repeatable or token is not None):
        return None
    return f"{service}.{method}()", keys.WHY if fresh is not None else judged.why


@cache
def _operation(service: str, method: str) -> str | None:
    """Return the operation of a method if the table of AWS has it, or if it acts by its verb; None for others."""
    name = "".join(part.capitalize() for part in method.split("_"))
    if name.startswith("Receive"):  # what it takes comes back
        return None
    for entry in RECOMMENDED.tables()["aws"]:
        own, _, pattern = entry.id.partition(".")
        if own == service and pattern != "*" and fnmatchcase(name.lower(), pattern.lower()):
            known = pattern if "*" not in pattern else name
            return None if entry.is_read or entry.safety is Safety.ALWAYS else known
    return name if service and patterns.ACTING_METHODS.search(method) else None
