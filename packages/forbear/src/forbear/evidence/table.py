"""The tables of readers: by the function and the module of a frame, and by the attribute of an error.

A reader is named "module:what": it is the function `read_what` of a module in `readers`. That of a frame takes
the look and the traceback entry; that of an attribute the look and the value, as does "module:what.self", which reads
the `self` of a frame.

`was_opening` asks the functions that raised an error, not its name: urllib3 calls a response that was lost behind a
proxy a `ProxyError`, because a closed connection no longer knows that it was open. Only a function that opens the
connection proves that nothing was sent: urllib3 opens it before it sends the first byte of a request.
"""

from functools import cache

from forbear.core.chain import entries_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

_OPENING = frozenset({"_get_conn", "_prepare_proxy", "_validate_conn"})
"""The functions of urllib3's pool that run before a request: take a connection, open the tunnel, shake hands."""

_SENDING = frozenset({"request", "request_chunked"})
"""The methods of urllib3's connection that send a request; http.client may open the connection within them."""

POOLS, CONNECTIONS, RESPONSES, MANAGERS = (
    tuple(
        f"{package}{name}" for package in ("urllib3.", "urllib3._async.", "urllib3_future.", "urllib3_future._async.")
    )
    for name in ("connectionpool", "connection", "response", "poolmanager")
)
"""The modules of urllib3. urllib3-future, which niquests needs, takes its place, or stands beside it."""

_PHASES = {**dict.fromkeys(_OPENING, POOLS), **dict.fromkeys((*_SENDING, "getresponse"), CONNECTIONS)}

_SENDERS = frozenset({*CONNECTIONS, "http.client", "botocore.awsrequest"})
"""The modules of connections; botocore's overrides methods of http.client's."""


_HTTPX = ("httpx._client", "httpx2._client")
_HTTPX_MODELS = ("httpx._models", "httpx2._models")
_SESSIONS = ("requests.sessions", "niquests.sessions", "niquests.async_session")
_REDIS = ("redis.client", "redis.asyncio.client", "valkey.client", "valkey.asyncio.client")
_CLUSTERS = ("redis.cluster", "redis.asyncio.cluster", "valkey.cluster", "valkey.asyncio.cluster")
_PSYCOPG = ("psycopg.cursor", "psycopg.cursor_async")
_PSYCOPG_CONNECTIONS = ("psycopg.connection", "psycopg.connection_async")

_MONGO = ("pymongo.synchronous.", "pymongo.asynchronous.", "pymongo.")
_COLLECTIONS = tuple(f"{package}collection" for package in _MONGO)
_CURSORS = tuple(f"{package}{module}" for package in _MONGO for module in ("cursor", "command_cursor"))

_SDK_MODULES = (
    "openai.resources.chat.completions.completions",
    "openai.resources.completions",
    "openai.resources.embeddings",
    "openai.resources.moderations",
    "openai.resources.responses.responses",
    "openai.resources.images",
    "openai.resources.audio.transcriptions",
    "openai.resources.audio.translations",
    "openai.resources.audio.speech",
    "openai.resources.chat.completions",
    "anthropic.resources.messages.messages",
    "anthropic.resources.messages",
    "anthropic.resources.beta.messages.messages",
)

_READ_METHODS = (
    "_error_catcher", "_fp_read", "json", "_decode", "_flush_decoder", "read", "read1", "stream", "read_chunked",
)  # fmt: skip
_COLLECTION_METHODS = (
    "find_one", "count_documents", "estimated_document_count", "distinct", "list_indexes", "index_information",
    "insert_one", "insert_many", "update_one", "update_many", "replace_one", "delete_one", "delete_many", "bulk_write",
    "find_one_and_update", "find_one_and_replace", "find_one_and_delete", "drop", "rename", "create_index",
    "create_indexes", "drop_index", "drop_indexes", "aggregate",
)  # fmt: skip
_CONSUMER_METHODS = (
    "poll", "__next__", "commit", "committed", "position", "topics", "partitions_for_topic", "beginning_offsets",
    "end_offsets", "offsets_for_times",
)  # fmt: skip
_CHANNEL_METHODS = (
    "_create_connection", "basic_ack", "basic_cancel", "basic_consume", "basic_get", "basic_nack", "basic_publish",
    "basic_qos", "basic_recover", "basic_reject", "channel", "close", "confirm_delivery", "consume", "exchange_bind",
    "exchange_declare", "exchange_delete", "exchange_unbind", "process_data_events", "queue_bind", "queue_declare",
    "queue_delete", "queue_purge", "queue_unbind", "start_consuming", "tx_commit", "tx_rollback", "tx_select",
)  # fmt: skip

_BY_READER: "dict[str, dict[tuple[str, ...], tuple[str, ...]]]" = {
    "httpx:request": {("_send_single_request",): _HTTPX},
    "httpx:redirects": {("_send_handling_redirects",): _HTTPX},
    "httpx:answered.self": {
        ("iter_raw", "aiter_raw", "iter_bytes", "aiter_bytes", "json", "text", "content"): _HTTPX_MODELS,
    },
    "requests:request": {("send",): ("requests.adapters", "niquests.adapters", *_SESSIONS)},
    "requests:redirects": {("resolve_redirects",): _SESSIONS},
    "requests:answered.self": {
        ("generate", "json", "content", "text", "iter_content", "iter_lines"): ("requests.models", "niquests.models"),
    },
    "urllib3:redirected": {("urlopen",): MANAGERS},
    "urllib3:request": {("urlopen",): POOLS},
    "urllib3:body": {_READ_METHODS: RESPONSES},
    "urllib3:streamed": {("read", "readinto", "_verify_content_length"): ("botocore.response",)},
    "urllib:opened": {("open",): ("urllib.request",)},
    "urllib:request": {("do_open",): ("urllib.request",)},
    "urllib:connection": {("request", "getresponse"): ("http.client",)},
    "urllib:retrieved": {("urlretrieve",): ("urllib.request",)},
    "urllib:body": {("read", "readinto", "read1", "peek", "readline"): ("http.client",)},
    "urllib:procedure": {("single_request",): ("xmlrpc.client",)},
    "aiohttp:request": {("_request",): ("aiohttp.client",)},
    "aiohttp:response.self": {("read", "json", "text"): ("aiohttp.client_reqrep",)},
    "aiohttp:stream": {("read", "readany", "readchunk", "readline", "readexactly"): ("aiohttp.streams",)},
    "sdk:call": {("_make_api_call",): ("botocore.client", "aiobotocore.client")},
    "sdk:loop": {("_send_request",): ("botocore.endpoint", "aiobotocore.endpoint")},
    "sdk:link": {("send",): ("botocore.httpsession", "aiobotocore.httpsession")},
    "sdk:throttled": {("_throttled",): ("forbear.run.spending",)},
    "redis:command": {
        ("execute_command", "immediate_execute_command", "_execute_command"): (*_REDIS, *_CLUSTERS),
    },
    "redis:pipeline": {("_execute_transaction", "_execute_pipeline"): _REDIS},
    "redis:queued": {("execute",): (*_REDIS, *_CLUSTERS)},
    "databases:commit": {
        ("_commit_impl", "_commit_twophase_impl"): ("sqlalchemy.engine.base",),
        ("commit", "_commit_gen"): (*_PSYCOPG_CONNECTIONS, "pymysql.connections"),
    },
    "databases:statement": {("execute", "executemany"): (*_PSYCOPG, *_PSYCOPG_CONNECTIONS, "pymysql.cursors")},
    "databases:method": {_COLLECTION_METHODS: _COLLECTIONS},
    "databases:cursor": {("next", "__next__", "_refresh"): _CURSORS},
    "databases:mongo_commit": {("commit_transaction",): tuple(f"{package}client_session" for package in _MONGO)},
    "databases:mongo_command": {
        ("command", "bulk_write"): tuple(f"{p}{module}" for p in _MONGO for module in ("database", "mongo_client")),
    },
    "messages:sendmail": {("sendmail",): ("smtplib",)},
    "messages:data": {("data",): ("smtplib",)},
    "messages:goodbye": {("quit", "__exit__"): ("smtplib",)},
    "messages:produced": {
        ("get",): ("kafka.producer.future",),
        ("send", "flush", "send_offsets_to_transaction"): ("kafka.producer.kafka",),
    },
    "messages:transaction": {("commit_transaction", "abort_transaction"): ("kafka.producer.kafka",)},
    "messages:consumer": {_CONSUMER_METHODS: ("kafka.consumer.group",)},
    "messages:channel": {_CHANNEL_METHODS: ("pika.adapters.blocking_connection",)},
    "sdk:operation": {
        ("create", "parse", "generate", "edit", "create_variation", "count_tokens"): _SDK_MODULES,
    },
    "sdk:posted": {("post",): ("openai._base_client", "anthropic._base_client")},
    "sdk:exchange": {
        ("perform_request", "_perform_request"): (
            "elasticsearch._sync.client._base",
            "elasticsearch._async.client._base",
            *(f"elastic_transport._node._http_{each}" for each in ("urllib3", "requests", "aiohttp", "httpx")),
            *(f"opensearchpy.connection.http_{each}" for each in ("urllib3", "requests", "async")),
            "opensearchpy._async.http_aiohttp",
            *("elastic_transport._transport", "elastic_transport._async_transport"),
            *("opensearchpy.transport", "opensearchpy._async.transport"),
        ),
        ("_parse_create", "_parse_update", "_parse_fetch"): ("twilio.base.version",),
        ("finish",): ("google.cloud.storage.batch",),
        ("api_call", "_urllib_api_call", "_request_for_pagination"): (
            "slack_sdk.web.base_client",
            "slack_sdk.web.async_base_client",
        ),
        ("call_api", "call"): ("kubernetes.client.api_client",),
        ("request",): ("kubernetes.client.rest",),
        ("request", "request_async"): ("stripe._api_requestor", "stripe.api_requestor"),
    },
    "sdk:bulk": {
        ("_process_bulk_chunk",): (
            "elasticsearch.helpers.actions",
            "elasticsearch._async.helpers",
            "opensearchpy.helpers.actions",
            "opensearchpy._async.helpers.actions",
        ),
    },
    "sdk:storage": {
        ("api_request",): ("google.cloud.storage._http",),
        ("_do_upload",): ("google.cloud.storage.blob",),
    },
    "sdk:discovery": {("execute",): ("googleapiclient.http",)},
    "sdk:rpc": {("__call__", "with_call"): ("grpc._channel",), ("_with_call",): ("grpc._interceptor",)},
    "sdk:rpc_over_rest": {("__call__",): ("google.api_core.gapic_v1.method",)},
    "sdk:rpc_wrapped": {("__await__",): ("google.api_core.grpc_helpers_async",)},
    "sdk:rpc_stream": {("__next__", "result", "_next"): ("grpc._channel",)},
    "sdk:rpc_awaited": {("__await__", "_fetch_stream_responses", "read"): ("grpc.aio._call",)},
}

FRAMES: "dict[str, dict[str, str]]" = {}
"""The readers of frames, by function and module."""

for _reader, _places in _BY_READER.items():
    for _functions, _modules in _places.items():
        for _function in _functions:
            FRAMES.setdefault(_function, {}).update(dict.fromkeys(_modules, _reader))

CLIENTS = frozenset(
    {module.partition(".")[0] for modules in FRAMES.values() for module in modules} | {"boto3", "s3transfer"}
)
"""The top packages of all clients that have a reader."""

SENDERS = {"httpx:request": True, "requests:request": True, "urllib:request": False}
"""The readers of frames that send a request object, which others may send again. True if one look at a frame is enough.

The tracebacks of other errors may go further below the frame, and say more.
"""

_OF_REQUESTS = {"httpx": "httpx:kept", "httpx2": "httpx:kept", "requests": "requests:kept", "niquests": "requests:kept"}

ATTRIBUTES: "dict[str, dict[str, str]]" = {
    "request": _OF_REQUESTS,
    "_request": _OF_REQUESTS,
    "response": {
        "httpx": "httpx:answered",
        "httpx2": "httpx:answered",
        "requests": "requests:answered",
        "niquests": "requests:answered",
        "azure": "sdk:response",
        "slack_sdk": "sdk:response",
    },
    "uri": {"*": "sdk:uri"},
    "_response": {"requests": "requests:answered", "niquests": "requests:answered"},
    "request_info": {"aiohttp": "aiohttp:answered"},
    "operation_name": {"*": "sdk:answered"},
    "statement": {"*": "databases:failed"},
    "sqlite_errorcode": {"*": "databases:code"},
    "_state": {"grpc": "sdk:rpc_ended"},
}
"""The readers of attributes, by name and by the package of the value; "*" for any."""

HELD = {
    "httpx": "httpx:answered",
    "httpx2": "httpx:answered",
    "requests": "requests:answered",
    "niquests": "requests:answered",
    "aiohttp": "aiohttp:response",
    "urllib3": "urllib3:answered",
    "urllib3_future": "urllib3:answered",
    "http": "urllib:answered",
    "azure": "sdk:response",
    "slack_sdk": "sdk:response",
}
"""The readers of responses that variables and errors hold, by the package of the response."""


@cache
def reader(name: str) -> "Callable[..., Any]":
    """Return the reader called "module:what" or "module:what.self", and load its module."""
    from importlib import import_module

    module, _, what = name.partition(":")
    what, _, of_self = what.partition(".")
    found: Callable[..., Any] = getattr(import_module(f"forbear.evidence.readers.{module}"), f"read_{what}")

    def read_self(look: "Any", trace: "TracebackType") -> None:
        found(look, look.names(trace)["self"])

    return read_self if of_self else found


def was_opening(trace: "TracebackType | None") -> bool | None:
    """Return True if a traceback shows the connection being opened, False if a request was sent, None for neither.

    An error of the caller's own body stream counts as sending, even if it comes from opening another connection.
    """
    for entry in entries_of(trace):
        name = entry.tb_frame.f_code.co_name
        if name in _PHASES and entry.tb_frame.f_globals.get("__name__") in _PHASES[name]:
            return name in _OPENING or (name in _SENDING and _was_connecting(entry))
    return None


def _was_connecting(trace: "TracebackType") -> bool:
    """Return whether a method that sends a request has called http.client, which was opening the connection."""
    caller = ""
    for entry in entries_of(trace.tb_next):
        name = entry.tb_frame.f_code.co_name
        if caller == "send" and name == "connect":
            return True
        if entry.tb_frame.f_globals.get("__name__") not in _SENDERS:
            return False
        caller = name
    return False
