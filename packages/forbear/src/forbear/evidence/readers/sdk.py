"""The SDKs of OpenAI and Anthropic: the resource's method says what its request means; a path alone would not."""

from forbear.evidence.look import Look
from forbear.evidence.sent import get_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_DECISIVE = ("background", "container", "conversation", "mcp_servers", "tools")
"""The parameters that decide whether a request has effects."""


def read_operation(look: Look, trace: "TracebackType", names: "dict[str, Any]") -> None:
    """Note the operation, by the module and the function, and the address that the SDK's client sends to."""
    frame = trace.tb_frame
    module = str(frame.f_globals.get("__name__")).replace(".resources", "")
    sdk, _, rest = module.partition(".")
    parts = list(dict.fromkeys(rest.split(".")))
    base = get_own(get_own(names["self"], "_client"), "_base_url")
    parameters = {name: names[name] for name in _DECISIVE if name in names}
    look.operations.append((str(base), ".".join([sdk, *parts, frame.f_code.co_name]), parameters))
