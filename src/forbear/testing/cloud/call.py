"""One request on its way through a handler: the request, the state and the journal together; knows no operation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from forbear.testing.cloud.http.errors import ErrorForm
from forbear.testing.cloud.http.messages import HttpRequest, HttpResponse, JsonObject
from forbear.testing.cloud.journal import Effects, LoggedEffect
from forbear.testing.cloud.storage.conditions import Conditions, read_conditions
from forbear.testing.cloud.storage.fields import json_object, query_integer
from forbear.testing.cloud.storage.model import Bucket, StoredObject
from forbear.testing.cloud.storage.store import Store


@dataclass(frozen=True, slots=True)
class ApiCall:
    """What a handler gets; `names` are the decoded parts of the path."""

    request: HttpRequest
    store: Store
    effects: Effects
    operation: str
    names: Mapping[str, str]
    number: int
    error_form: ErrorForm

    @property
    def base(self) -> str:
        """The start of the URLs in responses: the way the client found us."""
        return f"http://{self.request.host}"

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters."""
        return self.request.query

    @property
    def full(self) -> bool:
        """Whether access controls were asked for."""
        return self.query.get("projection") == "full"

    def body(self) -> JsonObject:
        """The request's JSON."""
        return json_object(self.request.body)

    def conditions(self) -> Conditions:
        """The preconditions on the target."""
        return read_conditions(self.query)

    def bucket(self) -> Bucket:
        """The bucket of the path."""
        return self.store.bucket(self.names["bucket"])

    def item(self) -> StoredObject:
        """The object of the path, in the generation of the query."""
        return self.store.object(self.names["bucket"], self.names["object"], query_integer(self.query, "generation"))

    def committed(self, resource: str, generation: int | None = None, operation: str | None = None) -> None:
        """Enter the change that has just been made in the journal."""
        token = self.request.headers.get("x-goog-gcs-idempotency-token")
        effect = LoggedEffect(
            self.effects.total + 1, operation or self.operation, resource, generation, token, self.number
        )
        self.effects.add(effect)


Handler: TypeAlias = Callable[[ApiCall], HttpResponse]

Call = ApiCall
