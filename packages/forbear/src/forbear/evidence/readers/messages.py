"""smtplib, kafka-python and pika: their frames show what was done with a message, and how far it got."""

from forbear.core.check import is_mapping
from forbear.evidence.look import Look, find_below
from forbear.evidence.sent import Sent, dict_of, get_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_BEGIN_DATA = 354
_PRODUCER = "kafka.producer.kafka"

_HARMLESS = frozenset({
    "_create_connection", "basic_qos", "channel", "confirm_delivery", "exchange_bind", "exchange_declare",
    "exchange_unbind", "queue_bind", "queue_declare", "queue_unbind", "tx_select",
})  # fmt: skip
"""The methods of pika that leave the same state if they are called twice, or concern a connection that is lost."""
_ENDS = frozenset({"close", "consume", "process_data_events", "start_consuming"})
"""The methods of pika after much else was sent: that the channel is closed now says nothing of that."""


def read_sendmail(look: Look, trace: "TracebackType") -> None:
    """Read a message that is sent. A server takes or refuses it at the end of DATA, not before."""
    look.add_named(trace, "smtplib", "smtp.sendmail", {})
    look.prove(None if find_below(trace, ("data",), "smtplib") else True)


def read_data(look: Look, trace: "TracebackType") -> None:
    """Read how far DATA got: nothing of the message is sent before the server has answered 354.

    It belongs to the `sendmail` around it, or is a message by itself.
    """
    if not look.is_within("smtplib"):
        look.add_named(trace, "smtplib", "smtp.sendmail", {})
    names = look.names(trace)
    code = names.get("code")
    look.prove(type(code) is int and code != _BEGIN_DATA and "q" not in names)


def read_goodbye(look: Look, trace: "TracebackType") -> None:
    """Read the end of a session, which shows nothing of the messages before it."""
    look.add(id(trace.tb_frame), Sent("smtplib", "named", "", unread="the end of a session does not show its messages"))


def read_produced(look: Look, trace: "TracebackType") -> None:
    """Read a message of a producer of kafka-python; nothing of it is sent while the producer looks for its topic.

    The future of a message does not know its producer: that must be a variable of the caller, or kept by its `self`.
    """
    above = look.names_above
    around = (look.names(trace)["self"], *above.values(), *dict_of(above.get("self")).values())
    producers = [each for each in around if any(kind.__module__ == _PRODUCER for kind in type(each).__mro__)]
    is_idempotent = not all(map(_is_plain, producers)) if producers else None
    unsent = bool(find_below(trace, ("_wait_on_metadata",), _PRODUCER))
    look.add_named(trace, "kafka-python", "kafka.Produce", {"idempotent": is_idempotent}, unsent)


def _is_plain(producer: object) -> bool:
    """Return whether a producer is neither idempotent nor transactional, which those of old versions never are."""
    config: Any = get_own(producer, "config")
    return is_mapping(config) and not config.get("enable_idempotence") and config.get("transactional_id") is None


def read_transaction(look: Look, trace: "TracebackType") -> None:
    """Read the end of a producer's transaction, which may have happened."""
    _add_named(look, trace, "kafka-python", "kafka")


def read_consumer(look: Look, trace: "TracebackType") -> None:
    """Read what a consumer does: it reads, or says how far it has read, which is the same twice."""
    _add_named(look, trace, "kafka-python", "kafka", safe=True)


def read_channel(look: Look, trace: "TracebackType") -> None:
    """Read a method of a blocking connection or channel of pika; a channel that is closed sends nothing."""
    method = trace.tb_frame.f_code.co_name
    draws = method == "queue_declare" and look.names(trace).get("queue") == ""  # the server draws the name
    unsent = method not in _ENDS and bool(find_below(trace, ("_raise_if_not_open",), "pika.channel"))
    _add_named(look, trace, "pika", "pika", safe=method in _HARMLESS and not draws, unsent=unsent)


def _add_named(
    look: Look, trace: "TracebackType", client: str, prefix: str, *, safe: bool = False, unsent: bool | None = None
) -> None:
    """Add a call by the name of its method. A safe one within another says nothing new."""
    if not safe or not look.is_within(client):
        look.add_named(trace, client, f"{prefix}.{trace.tb_frame.f_code.co_name}", {"safe": safe}, unsent)
