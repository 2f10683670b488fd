"""Read the refusals of SOCKS proxies (RFC 1928): those that pass, and those that last.

The clients put the proxy's code into words, most of them those of RFC 1928. A proxy says all this before it gets any
byte of the request, so the request was not executed.
"""

from forbear.core.verdict import NOT_EXECUTED, PERMANENT, Verdict

_LASTING = ("ruleset", "not supported", "authentication", "username", "identd")
"""Words of the refusals that no other attempt changes: a rule, a command or address type, credentials."""


def verdict_of_refusal(text: str) -> Verdict:
    """Return the verdict on a failure of the proxy by its text: PERMANENT for a refusal that lasts, else NOT_EXECUTED.

    The text must not have the name of a host. The target that is unreachable or refuses, an expired TTL, a general
    failure and a proxy that hangs up all pass.
    """
    lower = text.lower()
    return PERMANENT if any(words in lower for words in _LASTING) else NOT_EXECUTED
