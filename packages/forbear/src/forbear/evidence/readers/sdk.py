"""Botocore, grpc, googleapiclient and other SDKs: their frames and errors say what a request means."""

from forbear.core.chain import entries_of, innermost_of
from forbear.core.check import is_mapping
from forbear.evidence.look import Look, client_of, find_below
from forbear.evidence.sent import (
    AwsCall,
    Sent,
    body_of,
    get_own,
    headers_of,
    list_streams,
    package,
    request_of,
)
from forbear.grpc.call import GrpcCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_DECISIVE = ("background", "container", "conversation", "extra_body", "mcp_servers", "tools")
"""The parameters that decide whether a request has effects."""
_MOST_WRAPPERS = 10
_BOTOCORE = ("botocore.client", "botocore.endpoint", "aiobotocore.client", "aiobotocore.endpoint")
_BUILDERS = ("_emit_api_params", "_resolve_endpoint_ruleset", "_convert_to_request_dict")
"""The functions of botocore that build a request, before it is signed and sent."""


def read_operation(look: Look, trace: "TracebackType") -> None:
    """Note the operation, by the module and the function, and the address that the SDK's client sends to."""
    frame = trace.tb_frame
    module = str(frame.f_globals.get("__name__")).replace(".resources", "")
    sdk, _, rest = module.partition(".")
    parts = list(dict.fromkeys(rest.split(".")))
    names = look.names(trace)
    base = get_own(get_own(names["self"], "_client"), "_base_url")
    parameters = {name: names[name] for name in _DECISIVE if name in names}
    look.operations.append((str(base), ".".join([sdk, *parts, frame.f_code.co_name]), parameters))


def read_posted(look: Look, trace: "TracebackType") -> None:
    """Note that the SDK posts to a language model, and nothing above says which operation: a stream, or a raw call."""
    if not look.operations:
        look.operations.append((str(get_own(look.names(trace)["self"], "_base_url")), "", {}))


_SERVICES = {
    "elastic_transport": "elasticsearch", "elasticsearch": "elasticsearch", "opensearchpy": "elasticsearch",
    "kubernetes": "kubernetes", "slack_sdk": "slack",
}  # fmt: skip
"""The services whose clients name them, so that their reads by POST count."""


_ANSWERS = ("meta", "resp", "response", "r", "response_data")
"""The variables that may have the response."""


def read_exchange(look: Look, trace: "TracebackType") -> None:
    """Note the service, and read the request if it was answered: by an error status, or by what cannot be read."""
    client = client_of(trace.tb_frame)
    look.service = _SERVICES.get(client)
    names = look.names(trace)
    answer: Any = next((names[name] for name in _ANSWERS if name in names), None)
    if type(answer).__name__ == "NodeApiResponse":
        answer = answer[0]  # its data, beside the body
    status = names.get("rcode", names.get("status")) or get_own(answer, "status") or get_own(answer, "status_code")
    if client == "slack_sdk" and is_mapping(answer):
        status = answer.get("status", status)
    if type(status) is not int:
        return  # there is no response yet: what is below shows the request
    method, url = names.get("method"), names.get("full_url") or names.get("url") or names.get("target")
    if client in ("google", "slack_sdk"):
        method = method or "POST"  # a batch; Slack's client without asyncio sends nothing else
    elif client == "twilio":
        url = f"{get_own(get_own(names['self'], 'domain'), 'base_url')}{names['uri']}"
    headers: Any = names.get("headers")
    if "request" in names:  # a tuple, in new versions of kubernetes
        method, url = names["request"][:2]
    if client == "stripe":
        bases: Any = get_own(get_own(names.get("requestor"), "_options"), "base_addresses") or {}
        url = f"{get_own(names['self'], 'api_base') or bases.get(names.get('base_address'))}{url}"
        options: Any = names.get("options") or {}
        headers = headers or {"Idempotency-Key": str(options.get("idempotency_key", "new"))}
    elif client == "opensearchpy" and type(url) is str and url.startswith("/"):
        url = f"{get_own(names.get('connection'), 'host')}{url}"
    elif client in ("elasticsearch", "elastic_transport"):
        node = get_own(answer, "node")
        scheme, host, port, prefix = (get_own(node, name) for name in ("scheme", "host", "port", "path_prefix"))
        url = f"{scheme}://{host}:{port}{prefix or ''}{url}"
    _add_answered(look, id(trace.tb_frame), client, method, url, status, headers)


def read_bulk(look: Look, trace: "TracebackType") -> None:
    """Read a bulk request that a helper of Elasticsearch or OpenSearch has sent, of which some items failed."""
    if type(look.error).__name__ == "BulkIndexError":
        look.add(id(trace.tb_frame), Sent(client_of(trace.tb_frame), "http", "POST", unsent=False))


def read_response(look: Look, response: object) -> None:
    """Read the request of a response that azure-core or slack_sdk keeps in its error."""
    request = get_own(response, "_request") or get_own(response, "request")
    client = type(response).__module__.partition(".")[0]
    method = get_own(request, "method") or get_own(response, "http_verb")
    if type(response).__name__ == "WebhookResponse":
        method = "POST"
    status = get_own(response, "_status_code") or get_own(response, "status_code")
    url = get_own(request, "url") or get_own(response, "api_url") or get_own(response, "url")
    headers = get_own(request, "headers")
    look.service = _SERVICES.get(client)
    _add_answered(look, id(response), client, method, url, status, headers)
    look.service = None


def read_uri(look: Look, uri: object) -> None:
    """Read the request of an error of Twilio; the host is known to what raised it."""
    error = look.error
    if error is None or package(error) != "twilio" or type(uri) is not str:
        return
    trace = innermost_of(error)
    domain = None if trace is None else get_own(look.names(trace).get("self"), "domain")
    url = uri if "://" in uri else f"{get_own(domain, 'base_url')}{uri}"
    _add_answered(look, id(error), "twilio", get_own(error, "method"), url, get_own(error, "status"))


def _add_answered(
    look: Look, key: int, client: str, method: object, url: object, status: object, headers: object = None
) -> None:
    text = method.upper() if type(method) is str else ""
    subject = request_of(text, url, headers_of(headers)) if text else None
    known = status if type(status) is int else None
    look.add(key, Sent(client, "http", text, subject, unsent=False, status=known))


def read_storage(look: Look, trace: "TracebackType") -> None:
    """Note that what is below is a request to Cloud Storage, whatever its host: an emulator has another one."""
    look.service = "cloud_storage"
    for name in ("_response", "response"):
        answered = look.sent.get(id(get_own(get_own(look.error, name), "request")))
        if answered is not None:
            answered.service = look.service


def read_discovery(look: Look, trace: "TracebackType") -> None:
    """Read the request that googleapiclient executes; a batch of requests has its own URL, and is a POST.

    httplib2 below it repeats in secret, so that even a refused connection proves nothing.
    """
    names = look.names(trace)
    request = names["self"]
    method, url = get_own(request, "method") or "POST", get_own(request, "uri") or get_own(request, "_batch_uri")
    subject = request_of(method, url, headers_of(get_own(request, "headers")), body_of(get_own(request, "body")))
    status = get_own(names.get("resp"), "status")
    sent = Sent("googleapiclient", "http", str(method), subject, unsent=False, status=status)
    look.add(id(request), sent)


def read_call(look: Look, trace: "TracebackType") -> None:
    """Read a call of an operation, whatever the error."""
    names = look.names(trace)
    service, operation = names["service_name"], names["operation_name"]
    parameters: Any = names.get("api_params")
    look.sent.pop(id(operation), None)  # the error named the operation, but not its service
    if type(parameters) is not dict:
        parameters = {}
    name = f"{service}.{operation}"
    subject = AwsCall(name, names.get("operation_model"), parameters)  # pyright: ignore[reportUnknownArgumentType]
    unread = "the frames do not show its model" if subject.model is None else None
    below = find_below(trace, (*_BUILDERS, "_make_request", "_make_api_call"), *_BOTOCORE)
    unsent = True if below in _BUILDERS else None
    streams = list_streams(*(each for each in subject.parameters.values() if type(each) not in (dict, list)))
    look.add(id(trace.tb_frame), Sent("botocore", "aws", name, subject, unread, unsent, streams=streams))


def read_loop(look: Look, trace: "TracebackType") -> None:
    """Read how often botocore itself has tried; only a first try can be proven not to be sent, as if unsigned."""
    if look.names(trace).get("attempts") != 1:
        look.prove(False)
    elif find_below(trace, ("create_request", "_get_response", "_needs_retry"), *_BOTOCORE) == "create_request":
        look.prove(True)


def read_throttled(look: Look, trace: "TracebackType") -> None:
    """Read that the budget of an adapter of ours refused the call before it was sent."""
    look.prove(True)


def read_link(look: Look, trace: "TracebackType") -> None:
    """Read nothing more: what is below serves the call, which the traceback of another error may show."""
    if look.current is None:
        sent = look.names(trace)["request"]
        method = get_own(sent, "method")
        text = method if type(method) is str else ""
        look.add(id(sent), Sent("botocore", "aws", text, unread="the frames do not show its operation"))
    look.serves = True


def read_answered(look: Look, operation: object) -> None:
    """Read the name of the operation that was answered by an error."""
    if type(operation) is str and type(look.error).__module__.startswith(("botocore", "aiobotocore")):
        unread = "the frames do not show its service"
        look.add(id(operation), Sent("botocore", "aws", operation, unread=unread, unsent=False), enter=False)


def read_rpc(look: Look, trace: "TracebackType") -> None:
    """Read the call of a multicallable, or of one with interceptors, within which the real one is called."""
    names = look.names(trace)
    method = get_own(names["self"], "_method")
    _add_rpc(look, id(trace.tb_frame), method, names.get("request"))


def read_rpc_over_rest(look: Look, trace: "TracebackType") -> None:
    """Read the call of a generated client whose response, over REST, is no JSON; what fails below is read there."""
    modules = ((entry, str(entry.tb_frame.f_globals.get("__name__"))) for entry in entries_of(trace))
    call = next((entry for entry, module in modules if module.endswith(".transports.rest")), None)
    if call is not None and find_below(call, ("Parse",), "google.protobuf.json_format"):
        names = look.names(call)
        form: Any = names.get("transcoded_request")
        status = get_own(names.get("response"), "status_code")
        url = f"{get_own(names['self'], '_host')}{form['uri']}"
        _add_answered(look, id(trace.tb_frame), "google", form["method"], url, status)


def read_rpc_wrapped(look: Look, trace: "TracebackType") -> None:
    """Read the call of a generated client for asyncio: what its caller has wrapped leads to the multicallable."""
    names = look.names_above
    function: Any = names.get("wrapped_func", names.get("rpc"))  # the client itself calls in older versions
    args: tuple[Any, ...] = names.get("args", ())
    for _ in range(_MOST_WRAPPERS):
        method = get_own(function, "_method")
        if method is not None:
            _add_rpc(look, id(trace.tb_frame), method, args[0] if args else names.get("request"))
            return
        function = get_own(function, "__wrapped__")


def read_rpc_ended(look: Look, state: object) -> None:
    """Read the state of a call that ended: that of a stream knows the method, but not the request."""
    if get_own(state, "method") is not None:
        _add_rpc(look, id(state), get_own(state, "method"), None)


def read_rpc_stream(look: Look, trace: "TracebackType") -> None:
    """Read a stream of responses that broke."""
    state = get_own(look.names(trace)["self"], "_state")
    _add_rpc(look, id(state), get_own(state, "method"), None)


def read_rpc_awaited(look: Look, trace: "TracebackType") -> None:
    """Read the call that is awaited: its request is known, and often tells the method."""
    here = look.names(trace)["self"]
    message = get_own(here, "_request")
    _add_rpc(look, id(here), _method_for(message), message)


def _method_for(message: object) -> str | None:
    """Return the RPC whose request has the type of `message`, None unless there is exactly one in its file."""
    descriptor = type.__dict__["__dict__"].__get__(type(message)).get("DESCRIPTOR")
    if descriptor is None:
        return None
    services = descriptor.file.services_by_name.values()
    methods = [method for service in services for method in service.methods if method.input_type is descriptor]
    return f"{methods[0].containing_service.full_name}/{methods[0].name}" if len(methods) == 1 else None


def _add_rpc(look: Look, key: int, method: object, request: object) -> None:
    if type(method) is bytes:
        method = method.decode("ascii", "replace")
    if type(method) is str and method:
        name = method.removeprefix("/")
        around = look.sent[look.current].subject if look.current is not None else None
        if not (isinstance(around, GrpcCall) and around.method == name and around.message is request):
            look.add(key, Sent("grpc", "grpc", name, GrpcCall(name, request)))
    elif not look.is_within("grpc"):
        look.add(key, Sent("grpc", "grpc", "", unread="grpc does not keep the name of the RPC"))
