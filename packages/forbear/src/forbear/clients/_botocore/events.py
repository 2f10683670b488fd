"""The events of botocore that put forbear's retries in the place of botocore's own, in a client or in a session.

botocore registers its handler under an id of the service. forbear takes it away by that id, and takes the id: in a
session, whose clients inherit the ids, botocore then registers nothing for a client that is made later.
"""

from collections.abc import Callable
from typing import Any

from forbear.clients._botocore.attempts import AwsAttempts, fill_token
from forbear.clients._botocore.outcomes import find_failure, hide_torn, is_read
from forbear.core.verdict import Verdict
from forbear.policy import Policy
from forbear.run.harm import is_used
from forbear.services.aws.vouch import AwsVouch

_KEY = "forbear"  # of the state of a call in botocore's context
_PRESIGNED = "is_presign_request"
_TOKEN = "forbear-token"  # noqa: S105 - a key of a dict
_INSTALLED = "forbear-installed"
"""The event and the id by which an installation is found."""


class Retries:
    """The handlers of one installation; `verdict_of_lost` judges the exceptions of the library."""

    awaits = False
    _policy: Policy
    _vouch: AwsVouch

    def __init__(self, verdict_of_lost: Callable[[Exception], Verdict]) -> None:
        self._verdict_of_lost = verdict_of_lost
        self._own: dict[tuple[str, str], Any] = {}  # botocore's handlers, by event and id
        self._services = set[str]()

    def register(self, events: Any, service: str, policy: Policy, vouch: AwsVouch) -> None:
        """Register the handlers for one service, by its name in events, and take botocore's away."""
        self._policy, self._vouch = policy, vouch
        self._services.add(service)
        for event, unique_id, handler, is_first in self._list_handlers(service):
            self._own[event, unique_id] = _find_handler(events, unique_id)
            events.unregister(event, unique_id=unique_id)
            register = events.register_first if is_first else events.register_last
            register(event, handler, unique_id=unique_id)
        events.register(_INSTALLED, self._answer, unique_id=_INSTALLED)

    def unregister(self, events: Any, service: str) -> None:
        """Take the handlers of one service away again, and register botocore's own."""
        for event, unique_id, _, _ in self._list_handlers(service):
            events.unregister(event, unique_id=unique_id)
            own = self._own.get((event, unique_id))
            if own is not None:
                events.register(event, own, unique_id=unique_id)
        events.unregister(_INSTALLED, unique_id=_INSTALLED)

    def _list_handlers(self, service: str) -> list[tuple[str, str, Any, bool]]:
        """Return the event of each handler, its id, the handler, and whether it is the first one of the event."""
        build, created = f"before-parameter-build.{service}", f"request-created.{service}"
        listed: list[tuple[str, str, Any, bool]] = [
            (f"needs-retry.{service}", f"retry-config-{service}", self.decide, True),  # in the place of botocore's
            (created, f"seed-max-attempts-{service}", self.prepare, True),  # in the place of botocore's
            (build, f"forbear-tokens-{service}", self.fill, True),
            (build, f"forbear-{build}", self.open, False),
            (created, f"forbear-{created}", self.enter, False),
            (f"before-parse.{service}", f"forbear-parse-{service}", hide_torn, False),
        ]
        if self._policy.budget is not None:
            listed.append((f"before-call.{service}", f"forbear-call-{service}", self.admit, False))
        return listed

    @property
    def is_undoable(self) -> bool:
        """True if a client can get botocore's own handlers back; those of a session never had any."""
        return any(own is not None for own in self._own.values())

    def register_for_clients(self, events: Any, policy: Policy, vouch: AwsVouch) -> None:
        """Register the handlers for all clients that a session makes from now on."""

        def register(event_name: str, **_: Any) -> None:
            service = event_name.partition(".")[2]
            if service not in self._services:
                self.register(events, service, policy, vouch)

        events.register("creating-client-class", register, unique_id=f"{_INSTALLED}-in-clients")
        events.register(_INSTALLED, self._answer, unique_id=_INSTALLED)

    def unregister_for_clients(self, events: Any) -> None:
        """Take away what `register_for_clients` registered; clients that were made meanwhile keep the handlers."""
        events.unregister("creating-client-class", unique_id=f"{_INSTALLED}-in-clients")
        for service in self._services:
            self.unregister(events, service)
        events.unregister(_INSTALLED, unique_id=_INSTALLED)

    def _answer(self, **_: Any) -> "Retries":
        return self

    def fill(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        """Fill the token that botocore would fill, with the same one in all attempts of a run around the call."""
        if is_used[0] and not context.get(_PRESIGNED):
            for name in model.idempotent_members:
                if name not in params:
                    context[_TOKEN] = fill_token(model, params, name, context)

    def open(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        """Put the state of a call into its context; a URL that is signed beforehand sends nothing."""
        if context.get(_PRESIGNED):
            return
        token = context.pop(_TOKEN, None)
        context[_KEY] = AwsAttempts(self._policy, self._vouch, model, params, awaits=self.awaits, token=token)

    def admit(self, context: dict[str, Any], **_: Any) -> None:
        """Count the first attempt in the budget; raise Throttled if it refuses."""
        context[_KEY].begin()

    def prepare(self, request: Any, **_: Any) -> None:
        """Go back to the start of a file that is sent again, and state the limit of attempts for the header."""
        state: AwsAttempts | None = request.context.get(_KEY)
        attempts = request.context.get("retries")
        if state is None or attempts is None:
            return
        if state.policy.limits.attempts is not None:
            attempts["max"] = state.policy.limits.attempts
        if attempts["attempt"] > 1:
            state.rewind()

    def enter(self, request: Any, **_: Any) -> None:
        """Enter a call in the ledger; this handler is the last, after the one that signs the request."""
        state: AwsAttempts | None = request.context.get(_KEY)
        if state is not None:
            state.enter()

    # Generated from that of `AsyncRetries`: change that, then run `make unasync`.
    def decide(self, response: Any, caught_exception: Any, operation: Any, request_dict: Any, **_: Any) -> Any:
        """Return 0 to send the request again, after the wait, None to end the call with what it has."""
        state: AwsAttempts | None = request_dict["context"].get(_KEY)
        if state is None:
            return None
        content = response[0].content if is_read(operation, response) else None
        outcome = find_failure(operation, response, content, caught_exception, self._verdict_of_lost)
        if outcome is None:
            state.succeeded()
            return None
        grant = state.failed(outcome)
        if grant is None or not grant.ask():
            state.give_up(outcome, response)
            return None
        grant.sleep()
        return 0


class AsyncRetries(Retries):
    """The handlers for aiobotocore, which awaits those that are async."""

    awaits = True

    async def decide(self, response: Any, caught_exception: Any, operation: Any, request_dict: Any, **_: Any) -> Any:
        state: AwsAttempts | None = request_dict["context"].get(_KEY)
        if state is None:
            return None
        content = await response[0].content if is_read(operation, response) else None
        outcome = find_failure(operation, response, content, caught_exception, self._verdict_of_lost)
        if outcome is None:
            state.succeeded()
            return None
        grant = state.failed(outcome)
        if grant is None or not await grant.aask():
            state.give_up(outcome, response)
            return None
        await grant.asleep()
        return 0


def find_installed(events: Any) -> Retries | None:
    """Return the handlers that were registered in a client or a session, None without any."""
    found = getattr(_find_handler(events, _INSTALLED), "__self__", None)
    return found if isinstance(found, Retries) else None


def _find_handler(events: Any, unique_id: str) -> Any:
    """Return the handler that is registered under an id; None without one. No public method tells it."""
    emitter = getattr(events, "_emitter", events)
    return getattr(emitter, "_unique_id_handlers", {}).get(unique_id, {}).get("handler")
