"""What is known of one command: a value. It knows no command."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from forbear.core.record import Record
from forbear.core.verdict import Safety

NAME = "redis"

Promise = Literal["cycle", "drift", "idempotent", "unique"]
"""What only the caller can know of a command; `PROMISES` says what each of them means."""

PROMISES: Mapping[str, str] = MappingProxyType(
    {
        "cycle": "the whole cycle from WATCH on is repeated, and knows what it wrote before",
        "drift": "an expiry may come later by the time between two attempts",
        "idempotent": "the script, function, query or series tolerates the same call twice",
        "unique": "the value is unique and read back, or the reply is ignored",
    }
)
"""The promises that a caller may give, each with what it says."""


class Judgement(Record):
    """What is known of one command.

    `operation` is the name of the command in upper case ("SET", "CLIENT KILL"), None where it is unknown. `conditions`
    lists what would make a conditional command repeatable (any one of them); `met` is the one that holds for this
    command, None without one. `repeatable` is the answer for this very command. `mutation` tells a write from a read.
    `connection` marks what changes only the state of the connection and dies with it: it has to be sent again on the
    new connection before the command that needs it. `reply` is what a later attempt is answered where an earlier one
    had worked: "same", "may differ" or "lost" (the value went with the first reply), "" for what is never repeated;
    `maybe_done` lists texts of error replies (in lower case) that may then mean just that. `depends` says what the
    outcome of a write depends on: "nothing", "existence", "key", "keys" or "server", "" for all else. `refused` says
    why a command must not be repeated together with the others that it was judged with, None otherwise. `scripted`
    marks a command that runs code of its caller's or that is not known: its error response may come after a write, with
    any code, so no such response proves that nothing was executed.
    """

    __slots__ = (
        "service", "operation", "safety", "conditions", "met", "repeatable", "mutation", "connection", "reply",
        "maybe_done", "depends", "refused", "scripted",
    )  # fmt: skip

    service: str
    operation: str | None
    safety: Safety
    conditions: tuple[str, ...]
    met: str | None
    repeatable: bool
    mutation: bool
    connection: bool
    reply: str
    maybe_done: tuple[str, ...]
    depends: str
    refused: str | None
    scripted: bool

    def __init__(
        self,
        service: str,
        operation: str | None,
        safety: Safety,
        conditions: tuple[str, ...] = (),
        met: str | None = None,
        repeatable: bool = False,
        mutation: bool = True,
        connection: bool = False,
        reply: str = "",
        maybe_done: tuple[str, ...] = (),
        depends: str = "",
        refused: str | None = None,
        scripted: bool = False,
    ) -> None:
        self._set(
            service=service, operation=operation, safety=safety, conditions=conditions, met=met, repeatable=repeatable,
            mutation=mutation, connection=connection, reply=reply, maybe_done=maybe_done, depends=depends,
            refused=refused, scripted=scripted,
        )  # fmt: skip

    def is_maybe_done(self, error: str) -> bool:
        """Whether an error reply to a later attempt may mean that an earlier one had worked."""
        text = error.lower()
        return any(part in text for part in self.maybe_done)


UNKNOWN = Judgement(NAME, None, Safety.NEVER, scripted=True)
