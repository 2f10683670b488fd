"""The argument of every handler: a request, what its path names, and the state."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from forbear_cloud.http.messages import (
    NO_CONTENT,
    ErrorForm,
    HttpRequest,
    HttpResponse,
    JsonObject,
    json_response,
)
from forbear_cloud.journal import Effects, LoggedEffect
from forbear_cloud.storage.conditions import Conditions, Tagged, check_etag, check_match, read_conditions
from forbear_cloud.storage.fields import json_object, query_integer
from forbear_cloud.storage.model import Bucket, StoredObject
from forbear_cloud.storage.store import Store


class ApiCall(NamedTuple):
    """One call of an API: a request, with the state and the operation that its handler needs.

    `names` are the decoded variables of the path, such as "bucket". `number` is the request's number in the log.
    `error_form` writes an ApiError as a response.
    """

    request: HttpRequest
    store: Store
    effects: Effects
    operation: str
    names: Mapping[str, str]
    number: int
    error_form: ErrorForm

    @property
    def base(self) -> str:
        """Return "http://HOST" with the host that the client used: the start of the URLs in responses."""
        return f"http://{self.request.host}"

    @property
    def query(self) -> Mapping[str, str]:
        """Return the query parameters."""
        return self.request.query

    @property
    def full(self) -> bool:
        """Return whether the query has projection=full: the response is to contain access control lists."""
        return self.query.get("projection") == "full"

    def body(self) -> JsonObject:
        """Return the JSON object in the body, empty for an empty body or null; ApiError 400 if it is anything else."""
        return json_object(self.request.body)

    def conditions(self) -> Conditions:
        """Return the preconditions in the query (ifGenerationMatch and the like).

        ApiError 400 if one is not an integer.
        """
        return read_conditions(self.query)

    def check_read(self, resource: Tagged) -> None:
        """Check the preconditions in the query, If-Match and If-None-Match against the resource to read.

        Raise 412 if a Match fails. Raise 304 if a NotMatch or If-None-Match fails, because the client has this version.
        """
        self.conditions().check_read(resource)
        check_etag(self.request.headers, resource.etag)

    def check_write(self, resource: Tagged) -> None:
        """Raise 412 unless the resource to write meets the preconditions in the query and the If-Match header."""
        self.conditions().check_write(resource)
        check_match(self.request.headers, resource.etag)

    def bucket(self) -> Bucket:
        """Return the bucket that the path names; ApiError 404 if it does not exist."""
        return self.store.bucket(self.names["bucket"])

    def item(self) -> StoredObject:
        """Return the object that the path names: the generation in the query, or without one the live version.

        ApiError 404 if the bucket or that version does not exist.
        """
        return self.store.object(self.names["bucket"], self.names["object"], query_integer(self.query, "generation"))

    def commit(self, resource: str, generation: int | None = None, operation: str | None = None) -> None:
        """Record in the journal that the call changed `resource`, with the request's number and idempotency token.

        `generation` is that of the bucket or object concerned, None without one. `operation` is by default the call's
        own.
        """
        token = self.request.headers.get("x-goog-gcs-idempotency-token")
        effect = LoggedEffect(
            self.effects.total + 1, operation or self.operation, resource, generation, token, self.number
        )
        self.effects.add(effect)

    def commit_deletion(self, resource: str, generation: int | None = None) -> HttpResponse:
        """Record in the journal that the call deleted `resource`, and return the response: 204, without a body."""
        self.commit(resource, generation)
        return NO_CONTENT

    def finish(self, resource: str) -> HttpResponse:
        """Record in the journal that the call changed `resource`, and respond 200 with an empty JSON object."""
        self.commit(resource)
        return json_response({})


Handler: TypeAlias = Callable[[ApiCall], HttpResponse]
Handlers: TypeAlias = Mapping[str, Handler]
"""The handlers of a kind of resource by method name, such as "list"."""

Routes: TypeAlias = "tuple[tuple[str, str, str, Handler], ...]"
"""Routes to handlers: each is an operation id, an HTTP method, a path, and the handler of the requests for them."""

_METHODS = {
    "list": "GET",
    "insert": "POST",
    "create": "POST",
    "get": "GET",
    "patch": "PATCH",
    "update": "PUT",
    "delete": "DELETE",
}
_ON_COLLECTION = frozenset({"list", "insert", "create"})


def resource_routes(prefix: str, collection: str, variable: str, handlers: Handlers) -> Routes:
    """Return a route for each handler; its operation id is the prefix, a dot and the handler's method name.

    The methods list, insert and create use the path `collection`; get, patch, update and delete that path and one more
    segment, which the handler gets as `variable`. Any other method is a POST to the second path with its name as a
    verb, as in POST /v1/projects/{project}:getIamPolicy.
    """
    member = f"{collection}/{{{variable}}}"
    return tuple(
        (
            f"{prefix}.{name}",
            _METHODS.get(name, "POST"),
            collection if name in _ON_COLLECTION else member if name in _METHODS else f"{member}:{name}",
            handler,
        )
        for name, handler in handlers.items()
    )
