"""Calls of SDKs, by the names of their methods: the request, RPC or operation of AWS that each stands for.

`forbear.explain` and the table of AWS say whether that may be executed twice, as they do when the code runs.
"""

import ast
import re
from fnmatch import fnmatchcase
from functools import cache
from types import SimpleNamespace
from typing import Any

import forbear
from forbear.services.aws import RECOMMENDED, classify
from forbear.verdicts import Safety
from forbear_audit.libraries import keys
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import ACTING_METHODS, HARMLESS_RPCS, NAMED_THINGS
from forbear_audit.reading.scopes import from_package, keyword

_ORIGINS = {
    "stripe": "https://api.stripe.com/v1", "twilio": "https://api.twilio.com", "slack_sdk": "https://slack.com/api",
    "sendgrid": "https://api.sendgrid.com/v3", "github": "https://api.github.com", "square": "https://connect.squareup.com/v2",
    "kubernetes": "https://kubernetes.default.svc", "braintree": "https://api.braintreegateway.com",
    "paypalrestsdk": "https://api.paypal.com/v1", "mailchimp_transactional": "https://mandrillapp.com/api",
    "postmarker": "https://api.postmarkapp.com", "notion_client": "https://api.notion.com/v1", "gitlab": "https://gitlab.com/api",
    "jira": "https://api.atlassian.com", "azure": "https://management.azure.com", "discord": "https://discord.com/api",
    "telegram": "https://api.telegram.org", "pika": "amqp://", "kafka": "kafka://", "aiokafka": "kafka://",
    "confluent_kafka": "kafka://", "pymongo": "mongodb://", "motor": "mongodb://", "smtplib": "smtp://",
    "aiosmtplib": "smtp://", "mlflow": "https://mlflow.invalid", "gspread": "https://sheets.googleapis.com",
    "hubspot": "https://api.hubapi.com", "simple_salesforce": "https://salesforce.invalid", "pulsar": "pulsar://",
    "nats": "nats://", "paho": "mqtt://", "aio_pika": "amqp://", "aiomqtt": "mqtt://", "wandb": "https://api.wandb.ai",
    "atlassian": "https://api.atlassian.com", "zenpy": "https://zendesk.invalid", "plaid": "https://plaid.invalid",
    "mailjet_rest": "https://api.mailjet.com", "pagerduty": "https://api.pagerduty.com", "firebase_admin": "https://fcm.invalid",
    "telebot": "https://api.telegram.org", "tweepy": "https://api.twitter.com", "databricks": "https://databricks.invalid",
    "kombu": "amqp://", "stomp": "stomp://", "boxsdk": "https://api.box.com", "asana": "https://asana.invalid",
    "prefect": "https://prefect.invalid", "ccxt": "https://ccxt.invalid", "alpaca": "https://alpaca.invalid",
}  # fmt: skip
"""The origins to which SDKs send their calls, by the package."""

_ADDING = {
    "to_sql": ("if_exists", "append"), "to_gbq": ("if_exists", "append"), "write_deltalake": ("mode", "append"),
    "to_parquet": ("mode", "append"), "to_csv": ("mode", "a"), "append_row": ("", ""), "append_rows": ("", ""),
    "insert_rows_json": ("row_ids", None), "insert_rows": ("", ""), "load_table_from_dataframe": ("job_id", None),
    "load_table_from_json": ("job_id", None), "load_table_from_uri": ("job_id", None), "insert_df": ("", ""),
    "load_table_from_file": ("job_id", None), "bulk": ("_id", None), "streaming_bulk": ("_id", None),
    "async_bulk": ("_id", None), "index": ("id", None), "write_pandas": ("overwrite", None), "saveAsTable": ("", ""),
    "insertInto": ("", ""), "jdbc": ("", ""), "save": ("", ""), "parquet": ("", ""),
}  # fmt: skip
"""The methods that add rows, with an option: its value by which they do, or None if they do without it."""

_ON_SPARK = ("saveAsTable", "insertInto", "jdbc", "save", "parquet")
_ON_ELASTIC = ("bulk", "streaming_bulk", "async_bulk", "index")
_SENDS_MAIL = ("sendmail", "send_message")
_STEPS = 6  # from a part to the object: client.db["x"].table
_TWICE = "it may have been done before the failure, and would be done twice"


def find_unsafe_call(module: Module, call: ast.Call, region: list[ast.stmt]) -> tuple[str, str] | None:
    """Return what a call of an SDK does and why it may not be executed twice, None if it may or if it is unknown."""
    if not isinstance(call.func, ast.Attribute):
        return None
    service = aws_service(module, call.func.value)
    if service is not None:
        return _judge_aws(module, call, service, region)
    method = call.func.attr
    stub = maker(module, call.func.value).rpartition(".")[2]
    if stub.endswith("Stub") and method[:1].isupper():
        return None if HARMLESS_RPCS.search(method) else (f"the RPC {method}()", _TWICE)
    if not (ACTING_METHODS.search(method) or method in _SENDS_MAIL):
        return None
    dotted = maker(module, call.func.value) or module.name_of(call.func)
    package = dotted.partition(".")[0]
    known = _ORIGINS.get(package)
    if from_package(dotted, "google.cloud") and not from_package(dotted, "google.cloud.storage"):
        service = dotted.rpartition(".")[2].removesuffix("Client")
        known = f"/google.cloud.{service}/{method}" if service and dotted.endswith("Client") else None
    key = keys.find_key(module, call) if known is not None else None
    if known is None or (key is not None and keys.find_fresh(module, key, region) is None) or _is_named(call, package):
        return None
    return None if _may_be_repeated(known, method) else (f"{package}: {method}()", _TWICE if key is None else keys.WHY)


def find_adding(module: Module, call: ast.Call) -> tuple[str, str] | None:
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
        passed = " ".join(ast.unparse(v) for item in call.args if (v := module.value(item)) is not None)
        if known.partition(".")[0] not in ("elasticsearch", "opensearchpy") or "'_id'" in passed:
            return None
    given = keyword(call, option) if option else None
    if value is not None and option and (given is None or module.constant(given) != value):
        return None
    if value is None and given is not None and module.constant(given) is not None:
        return None
    config = module.value(keyword(call, "job_config"))
    if config is not None and re.search("WRITE_TRUNCATE|WRITE_EMPTY", ast.unparse(config)):
        return None
    return f"{name}()", "the rows may have been added before the failure, and would be added twice"


def _is_named(call: ast.Call, package: str) -> bool:
    """Return whether a call names what it creates, so that a second one finds that it is there."""
    if package == "kubernetes":
        return "generate" not in ast.unparse(call)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    passed = next(iter(call.args), None)  # pymongo writes the `_id` that it makes into the caller's document
    return bool(NAMED_THINGS.search(method)) or (package in ("pymongo", "motor") and isinstance(passed, ast.Name))


@cache
def _may_be_repeated(place: str, method: str) -> bool:
    """Return what `forbear.explain` says of the request or RPC that a method sends."""
    if place.startswith("/"):
        return forbear.explain(place).repeatable
    return place.startswith("http") and forbear.explain(f"POST {place}/{method}", body=None).repeatable


def maker(module: Module, owner: ast.expr) -> str:
    """Return the name of the function whose call made what an expression is or is a part of; "" if it is unknown."""
    for _ in range(_STEPS):
        value = module.value(owner)
        note = module.type_name(value) if isinstance(value, (ast.Name, ast.Attribute)) else ""
        if note or isinstance(value, ast.Name):
            return note
        if isinstance(value, ast.Call):
            made = module.name_of(value.func)
            if made and not made.startswith(".") and not module.is_given(value.func):
                return made
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


def _judge_aws(module: Module, call: ast.Call, service: str, region: list[ast.stmt]) -> tuple[str, str] | None:
    assert isinstance(call.func, ast.Attribute)  # noqa: S101 - for type checkers
    method = call.func.attr
    operation = _operation(service, method)
    if operation is None or any(option.arg is None for option in call.keywords):
        return None
    values = {option.arg: module.constant(option.value) for option in call.keywords if option.arg}
    parameters = {name: "x" if value is ... else value for name, value in values.items()}
    judged = classify(_as_model(service, operation, [*parameters]), parameters)
    fresh = keys.find_fresh_key(module, call, region)
    token = next((name for name in parameters if name.endswith(("Token", "DeduplicationId"))), None)
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
    return name if service and ACTING_METHODS.search(method) else None
