"""Refuse keywords that forbear does not have, and say how forbear spells them."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_OURS = {
    "base": "multiplier",
    "deadline": "timeout",
    "delay": "seconds",
    "exceptions": "on",
    "exp_base": "multiplier",
    "factor": "multiplier",
    "giveup": "on",
    "max": "maximum",
    "max_attempts": "attempts",
    "max_backoff": "maximum",
    "max_delay": "timeout",
    "max_retries": "attempts",
    "max_time": "timeout",
    "max_tries": "attempts",
    "max_value": "maximum",
    "max_wait": "maximum",
    "min": "initial",
    "on_backoff": "on_event",
    "on_giveup": "on_give_up",
    "reraise": "",
    "retries": "attempts",
    "retry": "on",
    "retry_on_exception": "on",
    "retry_on_result": "on_result",
    "status_forcelist": "on",
    "stop_max_attempt_number": "attempts",
    "total": "attempts",
    "tries": "attempts",
    "wait": "backoff",
    "wait_initial": "backoff",
    "wait_max": "backoff",
}
"""The keywords of other retry libraries, and what they are called here; an empty text: forbear always does so."""


def refuse_unknown(function: str, unknown: "Iterable[str]", known: "Sequence[str]") -> None:
    """Raise TypeError if there are `unknown` keywords; the text names the first one and the `known` one to write.

    `function` is the name of the function or class that got them.
    """
    for name in unknown:
        ours = _OURS.get(name)
        if ours == "":
            cure = "leave it out, because the last error is always raised"
        elif ours in known:
            cure = f"write `{ours}`" + (", which counts the first call, too" if "retries" in name else "")
        else:
            from difflib import get_close_matches  # costs more to import than it is worth before an error

            near = get_close_matches(name, known, 1)
            cure = f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(known)}"
        raise TypeError(f"`{function}` takes no `{name}`: {cure}")
