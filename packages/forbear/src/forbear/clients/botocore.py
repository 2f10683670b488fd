"""Retries for boto3 and botocore that know what may be repeated: `install(boto3.client("sqs"))`.

botocore repeats every operation. Here each call is judged, by our corrections and by botocore's own models: an
operation that may have been executed is repeated only if that does no harm. docs/aws.md says more.
"""

from typing import TypeVar

from forbear.clients._botocore import BaseClient
from forbear.clients._botocore.events import Retries
from forbear.clients._botocore.install import choose_policy, install_in, uninstall_from
from forbear.clients._botocore.outcomes import verdict_of_lost
from forbear.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Unpack

    from forbear.run.derive import ClientOptions
    from forbear.services.aws.vouch import SafeCalls

T = TypeVar("T")


def install(
    client: T, policy: Policy | None = None, *, safe: "SafeCalls" = (), **options: "Unpack[ClientOptions]"
) -> T:
    """Put retries into a client, a resource, or all clients that a session makes from now on; return it.

    - `client`: a client of boto3 or botocore, a resource of boto3, or a session of either. Paginators, waiters and
      transfers of S3 send by their client, so each of their requests is retried, too.
    - `policy` is by default `forbear.services.aws.policy`. Another one brings its limits, waits and `on`.
    - `options` are keywords of `forbear.retry` that change it: limits, waits and listeners (`attempts=3`).
    - `safe` vouches for operations that may be executed twice, whatever the tables say: "sqs.SendMessage", "logs.Put*",
      several of them, or a function of the call (`forbear.evidence.sent.AwsCall`) that returns a bool.

    botocore's own retries are off from then on, whatever its mode. Errors stay those of botocore; `forbear.report`
    finds the report on each on which forbear gave up. A response that was cut off is never returned: it is repeated, or
    the call raises `IncompleteReadError`. Raises TypeError or ValueError for another target, for one with retries of
    forbear, and for wrong options.

    >>> from botocore.session import Session
    >>> session = install(Session(), attempts=3)  # for all clients that it makes from now on
    """
    install_in(client, BaseClient, choose_policy(policy, options), safe, Retries(verdict_of_lost))
    return client


def uninstall(client: T) -> T:
    """Take forbear's retries out of a client, a resource or a session, and return it; botocore's own count again.

    Clients that a session made in the meantime keep them. Raises ValueError for a target without them, and for a client
    that got them from its session.

    >>> from botocore.session import Session
    >>> session = uninstall(install(Session()))
    """
    uninstall_from(client, BaseClient)
    return client
