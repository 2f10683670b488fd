"""Find the API, the operation and the handler of a request; list all operations that the cloud serves."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from forbear_cloud import xml
from forbear_cloud.api import STORAGE_ROUTES, uploads
from forbear_cloud.api.batch import perform_batch
from forbear_cloud.api.objects import wants_media
from forbear_cloud.api.partial import read_fields, select
from forbear_cloud.call import ApiCall, Handler, Routes
from forbear_cloud.http.messages import (
    ApiError,
    ErrorForm,
    HttpRequest,
    HttpResponse,
    google_error,
    storage_error,
)
from forbear_cloud.iam import IAM_ROUTES
from forbear_cloud.memorystore import MEMORYSTORE_ROUTES
from forbear_cloud.operations import BATCH, GET, INSERT, STEPS
from forbear_cloud.xml.document import xml_error

_log = logging.getLogger(__name__)
_VERSIONS = ("/v1/", "/v2/", "/v3/")
"""The starts of the paths of all APIs but Cloud Storage; no bucket has so short a name."""


@dataclass(slots=True)
class _Node:
    """A place in a path: the places after its next segment, None for a variable, and the routes that end here.

    `methods` has these by verb ("" for none) and HTTP method: operation id, handler and the names of the variables.
    """

    next: dict[str | None, "_Node"] = field(default_factory=dict[str | None, "_Node"])
    methods: dict[str, dict[str, tuple[str, Handler, list[str]]]] = field(default_factory=dict)


_NOWHERE = _Node()


class Router:
    """Find operations by method and path.

    Each route is an operation id, a method, a path such as "/storage/v1/b/{bucket}", and a handler. A variable is
    exactly one segment of the path, percent-encoded. The last segment may end with a verb, as in
    `/v1/projects/{project}:getIamPolicy`.
    """

    def __init__(self, routes: Routes) -> None:
        self._verbs = {template.partition(":")[2] for _, _, template, _ in routes} - {""}
        self._start = _Node()
        for operation, method, template, handler in routes:
            path, _, verb = template.partition(":")
            segments = path.strip("/").split("/")
            names = [segment[1:-1] for segment in segments if segment.startswith("{")]
            node = self._start
            for segment in segments:
                node = node.next.setdefault(None if segment.startswith("{") else segment, _Node())
            node.methods.setdefault(verb, {})[method] = (operation, handler, names)

    def find(self, method: str, path: str) -> tuple[str, Handler, dict[str, str]]:
        """Return the operation id, its handler and the decoded variables by name; HEAD counts as GET.

        ApiError 404 if no route has the path or a variable is empty, and 405 if none of those with the path has the
        method.
        """
        start, _, verb = path.rpartition(":")
        path, verb = (start, verb) if verb in self._verbs else (path, "")
        node, values = self._start, list[str]()
        for segment in path.removeprefix("/").removesuffix("/").split("/"):
            if segment in node.next:
                node = node.next[segment]
            else:
                node = node.next.get(None, _NOWHERE)
                values.append(segment)
        methods = node.methods.get(verb)
        if not methods or "" in values:
            raise ApiError(404, "Not Found: no operation of the API has this path.")
        method = "GET" if method == "HEAD" else method
        if method not in methods:
            allowed = ", ".join(sorted(methods))
            raise ApiError(405, f"Method not allowed here; allowed: {allowed}.", headers=(("Allow", allowed),))
        operation, handler, names = methods[method]
        # Undecodable bytes become lone surrogates, which no stored name contains and no new one may contain.
        decoded = (unquote(value, errors="surrogateescape") for value in values)
        return operation, handler, dict(zip(names, decoded, strict=True))


class Route(NamedTuple):
    """The operation id of a request (None if there is none), and the handler that serves or refuses it.

    `names` are the decoded variables of the path, and `error_form` writes an ApiError as the request's API does.
    """

    operation: str | None
    names: dict[str, str]
    handler: Handler
    error_form: ErrorForm


def resolve(request: HttpRequest) -> Route:
    """Return the route of a request: its operation, the names in its path, its handler and the form of its errors.

    It does not raise: a request that no operation serves gets a handler that responds with the error.
    """
    if xml.is_in_host(request):
        return _xml(request)
    if request.path.startswith(_VERSIONS):
        return _json(request, google_error)
    return _xml(request) if xml.is_in_path(request) else _json(request, storage_error)


def _json(request: HttpRequest, error_form: ErrorForm) -> Route:
    storage = error_form is storage_error
    try:
        operation, handler, names = (_STORAGE if storage else _GOOGLE).find(request.method, request.path)
    except ApiError as error:
        return _refuse(error_form(error), error_form)
    if not storage:
        return Route(operation, names, handler, error_form)
    step = uploads.step(request) if operation == INSERT else operation
    return Route(step, names, _partial(handler) if "fields" in request.query else handler, error_form)


def _batch(call: ApiCall) -> HttpResponse:
    """Perform each request of a batch, and respond with all responses.

    A part gets 400 if it belongs to an upload, is a download, is a batch itself, or is for another API than the JSON
    API of Cloud Storage.
    """

    def perform(request: HttpRequest) -> HttpResponse:
        route = resolve(request)
        if route.operation is None or route.error_form is not storage_error or _moves_bytes(request, route.operation):
            error = ApiError(400, "A part of a batch is one request of the JSON API, without bytes of objects.")
            return route.handler(call) if route.operation is None else storage_error(error)
        inner = call._replace(request=request, operation=route.operation, names=route.names)
        return respond_to_errors(lambda: route.handler(inner), route.error_form)

    return perform_batch(call.request, perform)


def _moves_bytes(request: HttpRequest, operation: str) -> bool:
    return operation == BATCH or operation.startswith(INSERT) or (operation == GET and wants_media(request))


def _partial(handler: Handler) -> Handler:
    """Return a handler that removes from `handler`'s JSON response all but the fields in the query parameter `fields`.

    If the parameter is malformed, it raises 400 before it calls `handler`. A download of an object stays whole.
    """

    def handle(call: ApiCall) -> HttpResponse:
        wanted = read_fields(call.query["fields"])
        response = handler(call)
        return response if wants_media(call.request) else select(response, wanted)

    return handle


def _xml(request: HttpRequest) -> Route:
    operation, names = xml.operation_of(request)
    handler = xml.XML_HANDLERS.get(operation)
    if handler is None:
        error = ApiError(501, f"The embedded cloud does not serve {request.method} of this kind in the XML API.")
        return _refuse(xml_error(error), xml_error)
    return Route(operation, names, handler, xml_error)


def respond_to_errors(act: Callable[[], HttpResponse], error_form: ErrorForm) -> HttpResponse:
    """Return the response of `act`; write an ApiError that it raises as a response with `error_form`.

    Any other exception is logged with its traceback, and becomes a 500 that does not show it.
    """
    try:
        return act()
    except ApiError as error:
        return error_form(error)
    except Exception:
        _log.exception("the embedded cloud failed to answer")
        return error_form(ApiError(500, "Backend Error"))


def _refuse(response: HttpResponse, error_form: ErrorForm) -> Route:
    def handle(_: ApiCall) -> HttpResponse:
        return response

    return Route(None, {}, handle, error_form)


_STORAGE = Router((
    *STORAGE_ROUTES,
    (BATCH, "POST", "/batch", _batch),
    (BATCH, "POST", "/batch/storage/v1", _batch),
))  # fmt: skip
_GOOGLE = Router((*IAM_ROUTES, *MEMORYSTORE_ROUTES))

OPERATIONS = frozenset(
    (*(route[0] for route in (*STORAGE_ROUTES, *IAM_ROUTES, *MEMORYSTORE_ROUTES)), BATCH, *STEPS, *xml.XML_HANDLERS)
)
"""The ids of all operations of all APIs, of batches, and of the steps of a resumable upload."""

ON_OBJECTS = tuple(
    sorted(
        name
        for name in OPERATIONS
        if name.startswith(("storage.objects.", "xml.object.")) and name != "storage.objects.list"
    )
)
"""The ids that begin with "storage.objects." or "xml.object.", sorted, except "storage.objects.list"."""

JOBS = tuple(
    name
    for name, *_ in MEMORYSTORE_ROUTES
    if name.endswith((".create", ".patch", "instances.delete", "clusters.delete", ".failover", ".upgrade"))
)
"""The operations of Memorystore that start a long-running operation."""
