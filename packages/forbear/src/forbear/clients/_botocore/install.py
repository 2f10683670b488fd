"""`install` and `uninstall` for both libraries: what they accept, and where the events of it are."""

import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from forbear.clients._botocore import BaseClient
from forbear.clients._botocore.events import Retries, find_installed
from forbear.exchange.call_state import check_word
from forbear.exchange.chosen import choose, refuse_unraised
from forbear.exchange.http.options import check_policy
from forbear.policy import Policy
from forbear.run.budget import HostBudgets
from forbear.services.aws import policy as recommended
from forbear.services.aws.vouch import AwsVouch, SafeCalls

_VOUCH = 'vouch for operations by `safe`, such as safe="sqs.SendMessage"'
_ASYNC = ("aiobotocore.", "aioboto3.")
_TRANSFERS = (
    "S3 transfers through awscrt (upload_file, download_file) repeat requests by themselves, unseen by forbear; "
    'pass Config=TransferConfig(preferred_transfer_client="classic") to them'
)


def choose_policy(policy: Policy | None, options: Mapping[str, Any]) -> Policy:
    """Return the policy that a user chose by `policy` and other keywords; TypeError or ValueError for wrong ones."""
    chosen, changes = choose("install", policy, options, ("safe",))
    check_policy(chosen, _VOUCH)
    policy = cast("Policy", changes.of(recommended) if chosen is None else chosen)
    refuse_unraised(policy, (BotoCoreError, ClientError))
    if policy.attempt_timeout is not None:
        raise ValueError(
            "`policy` must have no attempt_timeout: make the client with Config(read_timeout=...) instead; "
            f"got {policy.attempt_timeout!r}"
        )
    if policy.on_result is not None:
        raise ValueError("`policy` must have no on_result: responses of AWS are judged by their errors; got one")
    return policy


def install_in(target: Any, client_class: type[Any], policy: Policy, safe: SafeCalls, retries: Retries) -> None:
    """Put `retries` into a client of `client_class`, a resource, or a session, under a policy and the user's word."""
    check_word("safe", safe)
    if not retries.awaits:
        _refuse_async(target)
    vouch = AwsVouch(safe)
    client = _find_client(target, client_class)
    events = client.meta.events if client is not None else _find_events(target)
    if find_installed(events) is not None:
        raise ValueError("`client` has forbear's retries already; install them once, or uninstall them first")
    if client is None:
        if isinstance(policy.budget, HostBudgets):
            raise ValueError("`policy` must not have a budget per host for a session: install it in each client")
        retries.register_for_clients(events, policy, vouch)
        return
    model = client.meta.service_model
    vouch.check_names(model.service_name, model.operation_names)
    if isinstance(policy.budget, HostBudgets):
        policy = policy.with_budget(policy.budget.of(client.meta.endpoint_url, "aws"))
    if model.service_name == "s3" and find_spec("awscrt") is not None:
        warnings.warn(_TRANSFERS, stacklevel=3)
    retries.register(events, model.service_id.hyphenize(), policy, vouch)


def uninstall_from(target: Any, client_class: type[Any]) -> None:
    """Take forbear's handlers out of a client, a resource or a session."""
    if client_class is BaseClient:
        _refuse_async(target)
    client = _find_client(target, client_class)
    events = client.meta.events if client is not None else _find_events(target)
    retries = find_installed(events)
    if retries is None:
        raise ValueError("`client` must have forbear's retries, got one without")
    if client is None:
        retries.unregister_for_clients(events)
    elif retries.is_undoable:
        retries.unregister(events, client.meta.service_model.service_id.hyphenize())
    else:
        raise ValueError("`client` got forbear's retries from its session: uninstall them there, and make a new client")


def _refuse_async(target: Any) -> None:
    """Raise TypeError for a client or session of aiobotocore, whose sender needs more."""
    if any(kind.__module__.startswith(_ASYNC) for kind in target.__class__.__mro__):
        raise TypeError(f"`client` must be passed to forbear.clients.aiobotocore, since it is async; got {target!r}")


def _find_client(target: Any, client_class: type[Any]) -> Any:
    """Return the client that `client` is, or has as a resource; None for anything else."""
    if isinstance(target, client_class):
        return target
    client = getattr(getattr(target, "meta", None), "client", None)
    return client if isinstance(client, client_class) else None


def _find_events(target: Any) -> Any:
    """Return the events of a session of boto3 or botocore; TypeError for anything else."""
    events = getattr(target, "events", None)  # of boto3
    if events is None and hasattr(target, "get_component"):
        events = target.get_component("event_emitter")
    if events is None or not hasattr(events, "register_first") or isinstance(target, type):
        rule = "`client` must be a client or a session of the library, or a resource of boto3"
        raise TypeError(f"{rule}, got {target!r}")
    return events
