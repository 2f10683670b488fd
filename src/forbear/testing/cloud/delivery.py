"""How a reply goes over the wire: whole, cut short, late, or not at all; data only."""

import enum
from dataclasses import dataclass

from forbear.testing.cloud.wire import Reply


class Ending(enum.Enum):
    """What follows the last byte sent."""

    KEEP = "the connection lives on"
    CLOSE = "FIN"
    RESET = "RST"
    STALL = "silence, until the client goes away or the limit is reached"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A reply (None: not one byte), how many bytes of its body to send (None: all), and the end."""

    reply: Reply | None
    ending: Ending = Ending.KEEP
    cut: int | None = None
    limit: float = 0.0
    delay: float = 0.0
