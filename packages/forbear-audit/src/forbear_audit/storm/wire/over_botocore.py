"""The operations of AWS that botocore sends: their model says what may be executed twice, the HTTP request does not."""

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

from forbear.services.aws import classify
from forbear_audit.storm.patching import replace
from forbear_audit.storm.run_record import is_safe_operation


def install(undo: ExitStack) -> None:
    """Judge the operations of botocore, where it is loaded."""
    endpoint: Any = sys.modules.get("botocore.endpoint")
    if endpoint is not None:
        replace(undo, endpoint.Endpoint, "make_request", _judge(endpoint.Endpoint.make_request))


def _judge(original: Callable[..., Any]) -> Callable[..., Any]:
    def make_request(self: Any, operation_model: Any, request_dict: Any) -> Any:
        parameters: dict[str, Any] = {}
        with suppress(TypeError, ValueError):  # another protocol than JSON
            parameters.update(json.loads(request_dict["body"]))
        token = is_safe_operation.set(classify(operation_model, parameters).repeatable)
        try:
            return original(self, operation_model, request_dict)
        finally:
            is_safe_operation.reset(token)

    return make_request
