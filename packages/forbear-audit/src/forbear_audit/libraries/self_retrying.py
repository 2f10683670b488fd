"""The clients that retry by themselves, with their defaults and the switches that turn it off."""

import ast
import re
import tomllib
from pathlib import Path
from typing import cast

from forbear_audit.libraries.clients import STORAGE, repeats_commands, uses
from forbear_audit.libraries.http import LIBRARIES
from forbear_audit.libraries.sdks import aws_service, boto_client, maker
from forbear_audit.reading import patterns
from forbear_audit.reading.modules import Module, sets_constant
from forbear_audit.reading.scopes import Function, from_package, keyword
from forbear_audit.reading.syntax import calls_in

_SESSIONS = ("Session", "session", "Client", "AsyncClient")
_STEPS = 6  # from a part to the client
_GOOGLE_WRITES = ("access_", "publish", "load_table_from_")
_DEFAULTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def roots_of(package: str) -> tuple[str, ...]:
    """Return where the errors come from with which a client of a package ends: packages, or builtins."""
    return tuple(_DEFAULTS.get(package, {}).get("errors", (package,)))


def retries_itself(module: Module, call: ast.Call) -> tuple[str, str] | None:
    """Return the package of a client that retries by itself, and what it does; None if it does not retry."""
    dotted = module.name_of(call.func)
    if from_package(dotted, "subprocess") and call.args:
        words = ast.unparse(module.value(call.args[0]) or call.args[0])
        return ("subprocess", "the program retries, too") if patterns.RETRYING_COMMANDS.search(words) else None
    owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    made = maker(module, owner) or dotted
    limit, off = keyword(call, "max_retries", "num_retries", "retries"), keyword(call, "retry")
    count = module.constant(limit) if limit is not None else None
    if isinstance(count, int) and count > 0 and module.resolve_call(call)[1] is None:
        return made.partition(".")[0], f"this call makes up to {count + 1} attempts"
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if patterns.RETRY_WRAPPERS.search(name) and name != "retry" and module.definition(call.func)[1] is None:
        return made.partition(".")[0], f"{name}() retries by its name"
    given = [_client_retries(module, item) for item in call.args[:1]]  # `bulk(client, rows)`
    if given and given[0] is not None and given[0][0] == made.partition(".")[0]:
        return given[0]
    if not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr == "run_with_advanced_retry" and from_package(made, "airflow"):
        return "requests", "run_with_advanced_retry() makes several attempts"
    is_off = off is not None and module.constant(off) is None
    if call.func.attr in STORAGE and uses(module, "google.cloud.storage"):
        return None if is_off else ("google", "google-cloud-storage retries this call for up to 120 s")
    if from_package(dotted, "stripe") and dotted.count(".") > 1:
        never = sets_constant(module, "stripe.max_network_retries", 0)
        return None if never else ("stripe", "stripe makes up to 3 attempts")
    row = _DEFAULTS.get(dotted.partition(".")[0], {})
    if dotted.count(".") >= row.get("dots", 9):  # the client of the module
        return dotted.partition(".")[0], f"its default client {row['does']}"
    if (made.endswith("Stub") or patterns.STUBS.search(ast.unparse(owner))) and module.configs:
        return "grpc", "the service config of its channel retries"
    reads = patterns.READING_FUNCTIONS.search(call.func.attr) or call.func.attr.startswith(_GOOGLE_WRITES)
    if from_package(made, "google.cloud") and (reads or off is not None):  # these have a retry by default
        return None if is_off else ("google", "the client retries this call")
    for _ in range(_STEPS):
        own = _client_retries(module, owner)
        if own is not None:
            return own
        value = module.value(owner)
        value = value.func if isinstance(value, ast.Call) else value
        if not isinstance(value, ast.Attribute):
            break
        owner = value.value
    return None


def _client_retries(module: Module, owner: ast.expr) -> tuple[str, str] | None:
    value = module.value(owner)
    if isinstance(value, (ast.Name, ast.Attribute)):
        if aws_service(module, value) is not None:
            return "botocore", "botocore makes up to 5 attempts"
        is_named = patterns.HTTP_CLIENTS.search(ast.unparse(value))
        is_session = is_named and not module.type_of(value)  # perhaps the one made here
        texts = [_read_adapter(module, call) for call in module.calls_of("mount")] if is_session else []
        return next((("requests", text) for text in texts if text is not None), None)
    if not isinstance(value, ast.Call):
        return None
    dotted = module.name_of(value.func)
    package, name = dotted.partition(".")[0], dotted.rpartition(".")[2]
    known = _DEFAULTS.get(package)
    if known is not None and not re.search(known["names"], name):  # BlobClient.from_blob_url
        name = dotted.rpartition(".")[0].rpartition(".")[2]
    if known is not None and re.search(known["names"], name):
        return _read_default(module, value, package, name)
    client = boto_client(module, owner)
    if client is not None:
        text = _boto_retries(module, client)
        return ("botocore", text) if text is not None else None
    home, owner_class = module.definition(value.func)
    bases = [home.name_of(base) for base in owner_class.bases] if isinstance(owner_class, ast.ClassDef) else []
    sessions = [
        each for each in (dotted, *bases) if each.rpartition(".")[2] in _SESSIONS and each.startswith(LIBRARIES)
    ]
    if sessions:
        package = sessions[0].partition(".")[0]
        text = _find_mounted(module, value, owner_class if isinstance(owner_class, ast.ClassDef) else None)
        return (package, text) if text is not None else None
    if from_package(dotted, "aiohttp_retry", "RetryClient"):
        return "aiohttp", "RetryClient of aiohttp-retry makes several attempts"
    parts = (made for option in value.keywords if isinstance(made := module.value(option.value), ast.Call))
    options = [option for made in (value, *parts) for option in made.keywords]  # also of the transport that it gets
    given = [option for option in options if option.arg and patterns.RETRIES.search(option.arg)]
    if owner_class is None and any(_is_several(module, option.value) for option in given):
        return package, f"{name} is told to retry"
    return None


def _is_several(module: Module, option: ast.expr) -> bool:
    """Return whether an option is a number of retries, or a policy."""
    value, count = module.value(option), module.constant(option)
    is_number = isinstance(count, int) and not isinstance(count, bool) and count > 0
    return is_number or (isinstance(value, ast.Call) and bool(patterns.RETRIES.search(ast.unparse(value.func))))


def _read_default(module: Module, made: ast.Call, package: str, name: str) -> tuple[str, str] | None:
    """Return what a client does that a call makes, None if an option turns it off."""
    row = _DEFAULTS[package]
    given = keyword(made, row["option"])
    count = module.constant(given) if given is not None else ...
    if package in ("redis", "valkey"):  # since redis-py 6; its pools and URLs have no retry by default
        is_pooled = name == "from_url" or keyword(made, "connection_pool") is not None
        is_on = module.constant(keyword(made, "retry_on_timeout")) is True  # one more attempt
        is_off = (is_pooled and not is_on) if given is None else not repeats_commands(module, made)
    elif package == "kubernetes":
        is_off = any(name.endswith(".retries") for name in module.keep(_list_switched_off))
    else:
        url = module.value(made.args[0] if made.args else keyword(made, "host", "hosts"))
        in_url = url is not None and re.search(rf"(?i)[?&]{row['option']}=(?:false|0)", ast.unparse(url))
        is_off = count in (0, ()) or bool(in_url) or (given is not None and (row["option"] == "http_client"))
        is_off = is_off or (count is None and "none_is_off" in row)
    if is_off:
        return None
    attempts = f"makes up to {count + 1} attempts" if isinstance(count, int) else row["does"]
    return package, f"{name} {attempts}"


def _list_switched_off(module: Module) -> list[str]:
    """Return the attributes to which a module assigns 0 or False."""
    assigns = [node for node in module.parents if isinstance(node, ast.Assign)]
    off = [node.targets[0] for node in assigns if getattr(node.value, "value", None) == 0]  # 0 equals False
    return [ast.unparse(target) for target in off if isinstance(target, ast.Attribute)]


def _boto_retries(module: Module, client: ast.Call) -> str | None:
    config = module.value(keyword(client, "config"))
    retries: object = module.constant(keyword(config, "retries")) if isinstance(config, ast.Call) else {}
    if keyword(client, "config") is not None and not isinstance(config, ast.Call):
        return None
    if isinstance(retries, dict):
        retries = cast("dict[object, object]", retries)
        if retries.get("total_max_attempts") == 1 or retries.get("max_attempts") == 0:
            return None
        return "botocore makes up to 5 attempts" if not retries else "botocore retries this call"
    return None


def _find_mounted(module: Module, made: ast.Call, owner: ast.ClassDef | None) -> str | None:
    """Return the retries of an adapter that is mounted on a session, or of a client's transport."""
    transport = module.value(keyword(made, "transport"))
    kind = module.name_of(transport.func).rpartition(".")[2] if isinstance(transport, ast.Call) else ""
    if kind in ("RetryTransport", "AsyncRetryTransport"):
        return "its transport retries"
    if isinstance(transport, ast.Call) and module.constant(keyword(transport, "retries")) not in (0, ...):
        return "its transport repeats failed connects"
    home = module.home_of(made) if owner is None else module.definition(made.func)[0]
    for call in home.calls_of("mount"):
        place = call.func.value if isinstance(call.func, ast.Attribute) else call
        if home.value(place) is made or (owner is not None and home.class_of(call) is owner):
            return _read_adapter(home, call)
    return None


def _read_adapter(home: Module, mount: ast.Call) -> str | None:
    """Return what the adapter repeats that a call mounts on a session, None if it repeats nothing."""
    adapter = home.value(mount.args[1]) if len(mount.args) > 1 else None
    owner = home.type_of(adapter) if adapter is not None else None
    place, init = owner[0].find_member(owner[1], "__init__") if owner is not None else (home, None)
    for call in calls_in(init.body) if isinstance(init, Function) else ():
        if ast.unparse(call.func) == "super().__init__":  # an adapter of the package
            home, adapter = place, call
    option = keyword(adapter, "max_retries") if isinstance(adapter, ast.Call) else None
    if option is None:
        return None
    retries = home.value(option)
    made = isinstance(retries, ast.Call)
    total = home.constant(
        (keyword(retries, "total") or next(iter(retries.args), None)) if isinstance(retries, ast.Call) else option
    )
    count = f" up to {total + 1}" if isinstance(total, int) else " several"
    return f"its adapter makes{count} attempts" if (made or isinstance(total, int)) and total != 0 else None
