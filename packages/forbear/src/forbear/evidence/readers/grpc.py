"""grpc: the state of a call knows its method, the multicallable its request."""

from forbear.evidence.look import Look
from forbear.evidence.sent import Sent, get_own
from forbear.grpc.call import GrpcCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


def read_call(look: Look, trace: "TracebackType") -> None:
    """Read the call of a multicallable."""
    names = look.names(trace)
    method = get_own(names["self"], "_method")
    _add(look, id(trace.tb_frame), method, names.get("request"))


def read_ended(look: Look, error: BaseException, state: object) -> None:
    """Read the state of a call that ended: that of a stream knows the method, but not the request."""
    if get_own(state, "method") is not None:
        _add(look, id(state), get_own(state, "method"), None)


def read_stream(look: Look, trace: "TracebackType") -> None:
    """Read a stream of responses that broke."""
    names = look.names(trace)
    state = get_own(names["self"], "_state")
    _add(look, id(state), get_own(state, "method"), None)


def read_awaited(look: Look, trace: "TracebackType") -> None:
    """Read the call that is awaited: its request is known, and often tells the method."""
    names = look.names(trace)
    here = names["self"]
    message = get_own(here, "_request")
    _add(look, id(here), _method_for(message), message)


def _method_for(message: object) -> str | None:
    """Return the RPC whose request has the type of `message`, None unless there is exactly one in its file."""
    descriptor = type.__dict__["__dict__"].__get__(type(message)).get("DESCRIPTOR")
    if descriptor is None:
        return None
    services = descriptor.file.services_by_name.values()
    methods = [method for service in services for method in service.methods if method.input_type is descriptor]
    return f"{methods[0].containing_service.full_name}/{methods[0].name}" if len(methods) == 1 else None


def _add(look: Look, key: int, method: object, request: object) -> None:
    if type(method) is bytes:
        method = method.decode("ascii", "replace")
    if type(method) is str and method:
        name = method.removeprefix("/")
        look.add(key, Sent("grpc", "grpc", name, GrpcCall(name, request)))
    elif look.current is None:
        look.add(key, Sent("grpc", "grpc", "", unread="grpc does not keep the name of the RPC"))
