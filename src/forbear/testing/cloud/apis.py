"""Which API a request is for, and what it asks of it; knows where the APIs lie, but not what they do."""

from dataclasses import dataclass

from forbear.testing.cloud.api import uploads
from forbear.testing.cloud.api.handlers import HANDLERS as STORAGE_HANDLERS
from forbear.testing.cloud.call import Handler
from forbear.testing.cloud.errors import ApiError, ErrorForm, google_error, storage_error
from forbear.testing.cloud.iam.handlers import HANDLERS as IAM_HANDLERS
from forbear.testing.cloud.iam.routes import ROUTES as IAM_ROUTES
from forbear.testing.cloud.memorystore.handlers import HANDLERS as MEMORYSTORE_HANDLERS
from forbear.testing.cloud.memorystore.routes import ROUTES as MEMORYSTORE_ROUTES
from forbear.testing.cloud.operations import INSERT, STORAGE_ROUTES
from forbear.testing.cloud.router import Router
from forbear.testing.cloud.wire import Request


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for: the operation, None where there is none, and who serves it or says why not."""

    operation: str | None
    names: dict[str, str]
    handler: Handler
    error_form: ErrorForm


_STORAGE = Router(STORAGE_ROUTES)
_GOOGLE = Router((*IAM_ROUTES, *MEMORYSTORE_ROUTES))
_GOOGLE_HANDLERS = {**IAM_HANDLERS, **MEMORYSTORE_HANDLERS}


def resolve(request: Request) -> Asked:
    """Find the API, the operation and the names in the path."""
    google = request.path.startswith(("/v1/", "/v3/"))
    error_form = google_error if google else storage_error
    try:
        operation, names = (_GOOGLE if google else _STORAGE).find(request.method, request.path)
    except ApiError as error:
        reply = error_form(error)
        return Asked(None, {}, lambda _: reply, error_form)
    if google:
        return Asked(operation, names, _GOOGLE_HANDLERS[operation], error_form)
    step = uploads.step(request) if operation == INSERT else operation
    return Asked(step, names, STORAGE_HANDLERS[operation], error_form)
