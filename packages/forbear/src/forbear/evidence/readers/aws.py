"""botocore: a response names the operation; without one, the variables of the call have it with its parameters."""

from forbear.evidence.look import Look
from forbear.evidence.sent import AwsCall, Sent, get_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any


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
    look.add(id(trace.tb_frame), Sent("botocore", "aws", name, subject, unread=unread))


def read_loop(look: Look, trace: "TracebackType") -> None:
    """Read how often botocore itself has tried; only a first try can be proven not to be sent."""
    names = look.names(trace)
    if names.get("attempts") != 1:
        look.prove(False)


def read_link(look: Look, trace: "TracebackType") -> None:
    """Read nothing more: what is below serves the call that the traceback of another error shows."""
    names = look.names(trace)
    if look.current is None:
        sent = names["request"]
        method = get_own(sent, "method")
        text = method if type(method) is str else ""
        look.add(id(sent), Sent("botocore", "aws", text, unread="the frames do not show its operation"))


def read_answered(look: Look, error: BaseException, operation: object) -> None:
    """Read the name of the operation that was answered by an error."""
    if type(operation) is str and type(error).__module__.startswith(("botocore", "aiobotocore")):
        unread = "the frames do not show its service"
        look.add(id(operation), Sent("botocore", "aws", operation, unread=unread, unsent=False), enter=False)
