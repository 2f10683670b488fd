"""`check_server`: find out whether a shared budget can use its server, and say what helps if not."""

import time

from forbear.shared_budget.link import LinkFailed
from forbear.shared_budget.process import Link, ProcessShare
from forbear.shared_budget.script import NonsenseResponse, command, parse
from forbear.shared_budget.wire import ErrorResponse

_CURES = (
    (("WRONGPASS", "invalid username-password", "without any password"), "check the user and password in the URL"),
    (("NOAUTH", "Authentication required"), "put the password in the URL: redis://:PASSWORD@host"),
    (
        ("NOPERM", "no permissions"),
        "allow the user eval, hmget, hset, pexpire and time, on the keys {fb:*}",
    ),
    (("unknown command", "unknown or unsupported"), "use a server that runs scripts (the command EVAL)"),
    (("DB index", "out of range"), "use a database that the server has, such as /0"),
    (("READONLY", "read only replica"), "use the address of the primary"),
    (("WRONGTYPE",), "the key of this name holds something else: choose another name"),
    (("OOM",), "the server has no memory left: allow it more, or evict with a policy of its own"),
    (("did not answer",), "check host and port, and that no firewall is between"),
    (("cannot reach", "refused", "closed the connection"), "check host and port, and that the server runs"),
    (("not of the Redis protocol", "SSL", "wrong version number"), "check the port, and whether it expects TLS"),
)


class BudgetUnavailable(Exception):
    """The server of a shared budget cannot be used; the text says why, and what helps."""


def check_server(link: Link, share: ProcessShare, timeout: float, shown: str) -> None:
    """Run the script once over `link`, without deposit or cost, and close it.

    Raise BudgetUnavailable if that fails, or takes longer than `timeout` seconds. `shown` is the server in its text.
    """
    until = time.monotonic() + timeout
    try:
        link.send(command(share.key, share.capacity, 0, 0), time.monotonic())
        while not (responses := link.receive()):
            left = until - time.monotonic()
            if left <= 0:
                raise LinkFailed(f"the server did not answer within {timeout:g} s")
            link.wait(left)
        if isinstance(responses[0], ErrorResponse):
            raise LinkFailed(f"the server refused the script: {responses[0]}")
        parse(responses[0])
    except (LinkFailed, NonsenseResponse) as error:
        text = f"the server sent {error}" if isinstance(error, NonsenseResponse) else str(error)
        cures = [cure for words, cure in _CURES if any(word in text for word in words)]
        hint = cures[0] if cures else "check the URL"
        raise BudgetUnavailable(f"shared budget {share.name} cannot use {shown}: {text}; {hint}") from None
    finally:
        link.close()
