"""The clients whose methods are known: which of them may not be executed twice."""

import ast

from forbear import services
from forbear.adapters import Request
from forbear.services import redis as redis_service
from forbear_audit.libraries import sdks
from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import from_package, keyword
from forbear_audit.reading.syntax import calls_in

STORAGE = {
    **dict.fromkeys(
        ("upload_from_string", "upload_from_filename", "upload_from_file"),
        ("POST", "/upload/storage/v1/b/b/o?uploadType=media&name=x"),
    ),
    "delete_blob": ("DELETE", "/storage/v1/b/b/o/x"),
    "copy_blob": ("POST", "/storage/v1/b/b/o/x/copyTo/b/b/o/y"),
    "compose": ("POST", "/storage/v1/b/b/o/x/compose"),
    "create_hmac_key": ("POST", "/storage/v1/projects/p/hmacKeys"),
    **dict.fromkeys(
        ("download_as_bytes", "download_as_text", "download_as_string", "download_to_filename", "download_to_file"),
        ("GET", "/storage/v1/b/b/o/x?alt=media"),
    ),
}
"""Methods of google-cloud-storage with the request that each sends."""

_CONDITIONS = {"if_generation_match": "ifGenerationMatch", "if_metageneration_match": "ifMetagenerationMatch"}

_MONGO_WRITES = ("update_one", "update_many", "find_one_and_update", "bulk_write")
_MONGO_ADDS = ("$inc", "$mul", "$push", "$bit")
"""The updates of MongoDB that add to what is there."""

_REDIS = ("Redis", "StrictRedis", "Valkey", "RedisCluster", "from_url")


def find_unsafe_call(module: Module, call: ast.Call, region: list[ast.stmt]) -> tuple[str, str] | None:
    """Return the operation of a call and why it may not be executed twice, None if it may or if it is unknown."""
    known = None
    if isinstance(call.func, ast.Attribute):
        known = (
            _storage(module, call, call.func)
            or redis_command(module, call, call.func)
            or _find_pipeline(module, call.func, region)
            or _find_unsafe_update(module, call, call.func)
        )
    return known or sdks.find_unsafe_call(module, call, region)


def _storage(module: Module, call: ast.Call, function: ast.Attribute) -> tuple[str, str] | None:
    name = function.attr
    if name not in STORAGE or not uses(module, "google.cloud.storage"):
        return None
    method, target = STORAGE[name]
    for option, parameter in _CONDITIONS.items():
        if keyword(call, option) is not None:
            target += f"{'&' if '?' in target else '?'}{parameter}=1"
    host = "storage.googleapis.com"
    service = services.find(host, target)
    judged = service.classify(Request(method, host, target, {})) if service is not None else None
    if judged is None or judged.repeatable or any(item.arg is None for item in call.keywords):
        return None
    return f"{judged.operation or name} without a condition", "it may replace what another client wrote in between"


def redis_command(module: Module, call: ast.Call, function: ast.Attribute) -> tuple[str, str] | None:
    """Return the command of a call of a Redis client and why it may not be executed twice, None if it may."""
    if not _is_redis(module, function.value):
        return None
    name = function.attr.upper().replace("_", " ")
    words: list[bytes] = []
    for item in call.args:
        value = module.constant(item)
        words.append(str(value).encode() if isinstance(value, (str, int)) and not isinstance(value, bool) else b"x")
    for option in call.keywords:
        value = module.constant(option.value)
        if option.arg and value is not False and value is not None:
            words += [option.arg.encode()] if value is True else [option.arg.encode(), b"1"]
    for command in (name, name.replace(" ", "")):
        judged = redis_service.classify((command.encode(), *words))
        if judged.operation is not None:
            drifts = any('"drift"' in condition for condition in judged.conditions)  # it may only expire later
            if judged.repeatable or drifts or not judged.mutation or judged.connection or judged.scripted:
                return None
            return f"Redis {judged.operation}", "the table of redis says that it may not be executed twice"
    return None


def repeats_commands(module: Module, made: ast.Call) -> bool:
    """Return whether a call makes a Redis client with a policy that repeats commands."""
    retry = module.value(keyword(made, "retry"))
    count = next(iter(retry.args[1:2]), None) if isinstance(retry, ast.Call) else None
    return isinstance(retry, ast.Call) and (count is None or module.constant(count) != 0)


def _is_redis(module: Module, owner: ast.expr) -> bool:
    value = module.value(owner)
    if isinstance(value, ast.Call) and _names_redis(module.name_of(value.func)):
        return True
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "pipeline":
        return _is_redis(module, value.func.value)
    return value is not None and _names_redis(module.type_name(value))


def _find_pipeline(module: Module, function: ast.Attribute, region: list[ast.stmt]) -> tuple[str, str] | None:
    """Return the first command of a pipeline that may not be executed twice, where the pipeline is executed."""
    if function.attr != "execute" or not _is_redis(module, function.value):
        return None
    owner = ast.unparse(function.value)
    for call in calls_in(region):
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == owner:
            known = redis_command(module, call, call.func)
            if known is not None:
                return known
    return None


def _names_redis(dotted: str) -> bool:
    return any(from_package(dotted, package, *_REDIS) for package in ("redis", "valkey"))


def _find_unsafe_update(module: Module, call: ast.Call, function: ast.Attribute) -> tuple[str, str] | None:
    package = sdks.maker(module, function.value).partition(".")[0]
    if function.attr in _MONGO_WRITES and package in ("pymongo", "motor", "") and uses(module, "pymongo", "motor"):
        update = module.value(call.args[1] if len(call.args) > 1 else keyword(call, "update"))
        written = [module.constant(key) for key in update.keys if key] if isinstance(update, ast.Dict) else []
        adds = [word for word in _MONGO_ADDS if word in written]
        if adds:
            return f"an update with {adds[0]}", "it may have been done before the failure, and adds again"
    return None


def uses(module: Module, *packages: str) -> bool:
    """Return whether a module imports one of these packages."""
    return any(from_package(name, package) for name in module.imports.values() for package in packages)
