"""`at_least_once`: the operations whose vendors document that a message may be delivered more than once.

Its consumers must expect duplicates anyway, so whoever vouches for the set by `safe=forbear.at_least_once` accepts one
duplicate more. What promises order or exactly one message is not in it: FIFO queues and topics, messages with an
ordering key, producers that are idempotent or transactional, and messages to phones.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from forbear.core.check import is_list, is_mapping
from forbear.core.service import OperationSet
from forbear.evidence.sent import AwsCall, NamedCall
from forbear.grpc.call import GrpcCall, field
from forbear.http.patterns import Pattern, covers
from forbear.http.request import Request

_SQS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues.html"
_SNS = "https://aws.amazon.com/sns/faqs/"
_KINESIS = "https://docs.aws.amazon.com/streams/latest/dev/kinesis-record-processor-duplicates.html"
_FIREHOSE = "https://docs.aws.amazon.com/firehose/latest/APIReference/API_PutRecordBatch.html"
_EVENTS = "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-troubleshooting.html"
_PUBSUB = "https://docs.cloud.google.com/pubsub/docs/subscription-overview"
_KAFKA = "https://kafka.apache.org/documentation/#semantics"


class Member(NamedTuple):
    """One operation of the set, the vendor's page, and a test of its parameters, fields or body."""

    operation: str
    source: str
    allows: Callable[[Any], bool]


def _is_standard(name: str) -> Callable[[Any], bool]:
    """Return a test of whether the parameter `name` is the address of a queue or topic that is not FIFO."""

    def allows(parameters: Any) -> bool:
        address: object = parameters.get(name)
        return isinstance(address, str) and bool(address) and ".fifo" not in address

    return allows


def _is_any(_: Any) -> bool:
    return True


def _is_plain_producer(parameters: Any) -> bool:
    return parameters.get("idempotent") is False


def _is_unordered(message: Any) -> bool:
    """Return whether a message of Publish, or its body as JSON, is known, and none of its messages has a key."""
    listed: Any = message.get("messages") if is_mapping(message) else field(message, "messages")
    if not is_list(listed) and type(listed).__name__ not in ("RepeatedComposite", "RepeatedCompositeContainer"):
        return False
    return len(listed) > 0 and all(_has_no_key(each) for each in listed)


def _has_no_key(message: Any) -> bool:
    if is_mapping(message):
        return not message.get("orderingKey") and not message.get("ordering_key")
    return not field(message, "ordering_key")


ROWS = (
    Member("sqs.SendMessage", _SQS, _is_standard("QueueUrl")),
    Member("sqs.SendMessageBatch", _SQS, _is_standard("QueueUrl")),
    Member("sns.Publish", _SNS, _is_standard("TopicArn")),
    Member("sns.PublishBatch", _SNS, _is_standard("TopicArn")),
    Member("kinesis.PutRecord", _KINESIS, _is_any),
    Member("kinesis.PutRecords", _KINESIS, _is_any),
    Member("firehose.PutRecord", _FIREHOSE, _is_any),
    Member("firehose.PutRecordBatch", _FIREHOSE, _is_any),
    Member("events.PutEvents", _EVENTS, _is_any),
    Member("google.pubsub.v1.Publisher/Publish", _PUBSUB, _is_unordered),
    Member("kafka.Produce", _KAFKA, _is_plain_producer),
)
"""The operations: of AWS by the names of botocore, of Google by the names of RPCs, which stand for REST, too."""

_BY_NAME = {row.operation: row for row in ROWS}
_OVER_REST = "/v1/projects/*/topics/*:publish"
_LARGEST_BODY = 64 * 1024


class AtLeastOnce(OperationSet):
    """The set as a value for `safe=`; `origin` is that of the Api that it is bound to, None for the vendor's own.

    >>> forbear.retry(forbear.transient, safe=forbear.at_least_once).safe
    (forbear.at_least_once,)
    """

    origin: str | None = None

    def __call__(self, call: object) -> bool:
        """Return whether the set holds a request, an RPC, a call of AWS, or another call that has a name."""
        if isinstance(call, Request):
            return self._holds_request(call)
        if self.origin is not None:
            return False
        if isinstance(call, GrpcCall):
            return self._holds(call.name, call.message)
        if isinstance(call, AwsCall):
            return self._holds(call.operation, call.parameters)
        return isinstance(call, NamedCall) and self._holds(call.name, call.parameters)

    def bind(self, origin: str) -> "AtLeastOnce":
        """Return the part of the set that is sent to an origin by HTTP: for an emulator, or a proxy."""
        bound = AtLeastOnce(self)
        bound.origin = origin
        return bound

    def __reduce__(self) -> str | tuple[Any, ...]:
        return "at_least_once" if self.origin is None else (_bind, (self.origin,))

    def _holds(self, name: str, parameters: object) -> bool:
        row = _BY_NAME.get(name)
        return row is not None and row.allows(parameters)

    def _holds_request(self, request: Request) -> bool:
        pattern = Pattern(f"POST {self.origin or 'https://pubsub.googleapis.com'}{_OVER_REST}")
        if not request.body or len(request.body) > _LARGEST_BODY or not covers((pattern,), request):
            return False
        try:
            message: object = json.loads(request.body)
        except (ValueError, RecursionError):
            return False
        return is_mapping(message) and _is_unordered(message)


at_least_once = AtLeastOnce("forbear.at_least_once")
"""The operations whose vendors document at-least-once delivery, for `safe=`: of clients, policies, Apis and scopes.

They are SendMessage and SendMessageBatch of SQS, Publish and PublishBatch of SNS to topics, PutRecord and PutRecords of
Kinesis, PutRecord and PutRecordBatch of Firehose, PutEvents of EventBridge, Publish of Pub/Sub, and what Kafka's
producers send. A repeat may deliver a message twice, as the service itself may. FIFO queues and topics, messages with
an ordering key, and producers that are idempotent or transactional are not among them.
"""


def _bind(origin: str) -> AtLeastOnce:
    return at_least_once.bind(origin)


def option_for(call: object, option: str) -> str:
    """Return the option by which to vouch for a call: the set if it holds the call, else the call's own `option`."""
    return f"safe={at_least_once}" if option.startswith("safe=") and at_least_once(call) else option
