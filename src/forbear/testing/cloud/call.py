"""The argument of every handler: a request, what its path names, and the state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from forbear.testing.cloud.http.messages import (
    NO_CONTENT,
    ErrorForm,
    HttpRequest,
    HttpResponse,
    JsonObject,
    json_response,
)
from forbear.testing.cloud.journal import Effects, LoggedEffect
from forbear.testing.cloud.storage.conditions import Conditions, Tagged, check_etag, check_match, read_conditions
from forbear.testing.cloud.storage.fields import json_object, query_integer
from forbear.testing.cloud.storage.model import Bucket, StoredObject
from forbear.testing.cloud.storage.store import Store


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One call of an API.

    `names` are the decoded variables of the path, and `number` is the request's number in the log.
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
        """Return the start of the URLs in responses, with the host that the client used."""
        return f"http://{self.request.host}"

    @property
    def query(self) -> Mapping[str, str]:
        """Return the query parameters."""
        return self.request.query

    @property
    def full(self) -> bool:
        """Return whether the request wants access controls in the response."""
        return self.query.get("projection") == "full"

    def body(self) -> JsonObject:
        """Return the JSON object in the body."""
        return json_object(self.request.body)

    def conditions(self) -> Conditions:
        """Return the preconditions in the query."""
        return read_conditions(self.query)

    def check_read(self, resource: Tagged) -> None:
        """Check the preconditions and the entity tag of a read: raise 412, or 304 if the client has this version."""
        self.conditions().check_read(resource)
        check_etag(self.request.headers, resource.etag)

    def check_write(self, resource: Tagged) -> None:
        """Check the preconditions and the entity tag of a write: raise 412 unless the resource meets them."""
        self.conditions().check_write(resource)
        check_match(self.request.headers, resource.etag)

    def bucket(self) -> Bucket:
        """Return the bucket of the path; ApiError 404 if it does not exist."""
        return self.store.bucket(self.names["bucket"])

    def item(self) -> StoredObject:
        """Return the object of the path, in the generation of the query; ApiError 404 if it does not exist."""
        return self.store.object(self.names["bucket"], self.names["object"], query_integer(self.query, "generation"))

    def committed(self, resource: str, generation: int | None = None, operation: str | None = None) -> None:
        """Record in the journal that the call changed `resource`; `operation` is by default the call's."""
        token = self.request.headers.get("x-goog-gcs-idempotency-token")
        effect = LoggedEffect(
            self.effects.total + 1, operation or self.operation, resource, generation, token, self.number
        )
        self.effects.add(effect)

    def deleted(self, resource: str, generation: int | None = None) -> HttpResponse:
        """Record in the journal that the call deleted `resource`, and respond 204."""
        self.committed(resource, generation)
        return NO_CONTENT

    def done(self, resource: str) -> HttpResponse:
        """Record in the journal that the call changed `resource`, and respond with an empty object."""
        self.committed(resource)
        return json_response({})


Handler: TypeAlias = Callable[[ApiCall], HttpResponse]
Handlers: TypeAlias = Mapping[str, Handler]
"""The handlers of a kind of resource by method name, such as "list"."""

Routes: TypeAlias = "tuple[tuple[str, str, str, Handler], ...]"
"""Operation ids, each with an HTTP method and a path that reaches it, and its handler."""

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
    """Return the routes of a kind of resource, whose operation ids begin with the prefix.

    `collection` is the path of all resources, and `variable` the name of the path segment that selects one. A method
    that is not a usual one is a verb after the path of a resource: POST /v1/projects/{project}:getIamPolicy.
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
