"""One RPC, over gRPC or REST: its safety, the meaning of its failures, and its attempts.

The table of the RPC's service judges the request message. An RPC that no table knows is judged by its definition
(`forbear.services.rpcs`). What neither allows is repeated only if the user vouches for it, or if its failure proves
that it was not executed. A failure with an HTTP status is judged by the service's statuses, a failure of a gRPC call by
its code.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import cached_property

from forbear.core.report import text_of
from forbear.core.service import Judgement
from forbear.core.verdict import NOT_EXECUTED, Kind, Verdict, settle
from forbear.exchange.call_state import (
    RetriedCall,
    apply_rules,
    check_word,
    describe_rpc,
    is_only_of_user,
    is_small,
    limit_timeout,
    with_proof,
)
from forbear.exchange.chosen import NO_CHANGES, PolicyChanges, refuse_unraised
from forbear.exchange.http.options import check_policy
from forbear.grpc import codes
from forbear.grpc import status as grpc_status
from forbear.grpc.call import GrpcCall, RpcSubject, is_rpc_service, resource_of, to_raw
from forbear.grpc.vouch import ANY_RPC, NO_RPC_VOUCH, RpcVouch, apply_vouch
from forbear.policy import Policy
from forbear.run.answers import Broken
from forbear.run.budget import HostBudgets
from forbear.run.doubt import leave_same_unknown
from forbear.run.harm import is_used
from forbear.run.vouching import is_vouched
from forbear.services import errors, registry, rfc9110
from forbear.services.at_least_once import option_for
from forbear.services.errors import verdict_of_one_request
from forbear.services.rpcs import last_begin, rules
from forbear.waits import add_wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.grpc.call import RpcService
    from forbear.run.grant import Grant
    from forbear.run.key_uses import AutomaticKey

BEGUN = "the responses had begun to arrive, and would arrive again"

ONCE = "the requests can be read only once; pass a list"

_VOUCH = 'name the RPCs that may be executed twice: safe=["package.Service/Method"] of the interceptors'


class Rpc:
    """The RPC with the full name `method`, under a policy; `vouch` is the user's word for it.

    Of a budget per host, the one of the RPC's gRPC service counts: which host a channel calls is not known here.

    `policy` None takes the recommended policy of the RPC's service, or of RFC 9110 for an RPC that no table knows, with
    the `changes`. An unknown RPC counts as one of the policy's service, if that service has RPCs. ValueError for a
    policy of another service with RPCs.

    `option` is the one by which the user may vouch for the RPC, for the note on a call that is not repeated; by
    default `safe="/package.Service/Method"`.
    """

    __slots__ = ("method", "policy", "service", "vouch", "option", "__dict__")

    def __init__(
        self,
        method: str,
        policy: Policy | None = None,
        *,
        vouch: RpcVouch = NO_RPC_VOUCH,
        option: str | None = None,
        changes: PolicyChanges = NO_CHANGES,
    ) -> None:
        check_rpc_policy(policy or changes.sample)
        check_word("safe", vouch.safe)
        service: RpcService | None = registry.find_rpc(method)
        own: object = None if policy is None else policy.service
        if is_rpc_service(own):
            if service is not None and service.name != own.name:
                raise ValueError(
                    f"`policy` must be one for {service.name}, whose RPC {method} is, got one for {own.name}"
                )
            service = own
        if policy is None:
            recommended = None if service is None else registry.policy(service.name)
            policy = changes.of(recommended or rfc9110.policy)
        if isinstance(policy.budget, HostBudgets):  # the channel's target is not known here
            policy = policy.with_budget(policy.budget.of(method.removeprefix("/").partition("/")[0], "grpc"))
        self.method = method
        self.policy = policy
        self.service = service
        self.vouch = vouch
        self.option = f'safe="/{method.removeprefix("/")}"' if option is None else option

    @cached_property
    def changes_nothing(self) -> bool:
        """True if the RPC may be executed twice whatever its message is, and leads to no conflict then."""
        table = self.judge(None, by_table=True)
        return table.repeatable and table.met is None and not table.maybe_done

    def begin(
        self,
        timeout: float | None = None,
        message: object = None,
        *,
        awaits: bool = False,
        key: "AutomaticKey | None" = None,
    ) -> RetriedCall:
        """Return the state of a new call with `message`, whose first attempt the caller makes now.

        `timeout` is the caller's limit for all attempts, in seconds. It replaces the policy's timeout only if it is
        positive and shorter. `awaits` is true if the caller's loop is async. `key` is the one that the adapter has put
        into `message`, None without one. Raises Throttled if the budget refuses.
        """
        policy = self.policy
        if timeout is not None and timeout > 0:
            policy = limit_timeout(policy, timeout)
        call = RetriedCall(policy, awaits=awaits, key=key)
        if policy.budget is not None:
            call.begin(lambda: self.judge(None).operation, RpcSubject(self.method.removeprefix("/"), None))
        if is_used[0] and not self.changes_nothing:
            call.enter(describe_rpc, self, message if not is_once(message) and is_small(message) else None)
        return call

    def failed(
        self,
        call: RetriedCall,
        error: Exception,
        message: object,
        stuck: str | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> "Grant | None":
        """Return the retry of `call` that follows, None to raise `error`.

        `message` is the request (of a stream the first one), None if it is not available. No other attempt is made if
        `message` is an iterator, which can be read only once, or if `stuck` gives a reason against it. `on_error` is
        called first, with an error that is worth a retry.
        """
        if is_once(message):
            message, stuck = None, ONCE
        try:
            judgement = self.judge(message)
            status = errors.status_of(error)
            code = errors.code_of(error) if status is None else status
            if status is not None:
                judgement = judgement.replace(maybe_done=codes.to_http(judgement.maybe_done))
            verdict = self.verdict(error, judgement)
            if on_error is not None and verdict.kind in (Kind.TRANSIENT, Kind.NOT_EXECUTED):
                on_error(error)
            told = verdict.kind is Kind.NOT_EXECUTED and is_only_of_user(
                verdict, self._verdict_of_tables(error, judgement)
            )
            option = option_for(GrpcCall(self.method, message), self.option)
            subject, until, no = self.subject(message), last_begin(judgement), is_refusal(status, code)
            grant = call.failed(
                error, verdict, judgement, code, stuck, option, subject, by_word=told, until=until, refused=no
            )
            if grant is None and call.run is not None and call.run.in_doubt:
                self._leave_unknown(message)
            return grant
        except Exception as broken:  # raised by a function of the user
            judgement = self.judge(message, by_table=True)
            proven = self._verdict_of_tables(error, judgement).kind is Kind.NOT_EXECUTED
            verdict = Broken(broken, Kind.NOT_EXECUTED if proven else Kind.PERMANENT)
            return call.failed(error, verdict, judgement, None, stuck, self.option, self.subject(message))

    def cut_off(self, call: RetriedCall, error: BaseException, message: object) -> None:
        """Attach a report to `error`, a cancellation or interrupt under way, unless repeating the call is harmless."""
        message = None if is_once(message) else message
        try:
            judgement = self.judge(message)
        except Exception:  # raised by a function of the user
            judgement = self.judge(message, by_table=True)
        call.leave_in_doubt(error, judgement, self.subject(message))
        self._leave_unknown(message)

    def _leave_unknown(self, message: object) -> None:
        """Note for the outermost run around a call that its outcome is unknown."""
        if self.vouch.settle is not None:
            leave_same_unknown(self.identify(message))

    def identify(self, message: object) -> object:
        """Return what only equal calls of the same client have, None for a message without an encoding."""
        encode = getattr(to_raw(message), "SerializeToString", None)
        return None if encode is None else (self, encode(deterministic=True))

    def subject(self, message: object) -> RpcSubject:
        return RpcSubject(self.method.removeprefix("/"), None if self.service is None else resource_of(message))

    def judge(self, message: object, *, by_table: bool = False) -> Judgement:
        """Return the judgement on a call with `message`; with `by_table`, the user's word does not count."""
        call = GrpcCall(self.method, message)
        judgement = rules.judge(call, self.service)
        return judgement if by_table else apply_vouch(judgement, call, ANY_RPC if is_vouched(call) else self.vouch)

    def verdict(self, error: Exception, judgement: Judgement) -> Verdict:
        """Return the verdict on a failed attempt, by the RPC's service; a policy that is no service's overrules it.

        If such a policy calls the error transient without a delay, the wait that the server asks for applies. If the
        service proves that nothing was executed, the verdict is then NOT_EXECUTED.
        """
        served = self._verdict_of_service(error, judgement)
        if self.policy.service is not None:
            return served
        ruled = self.policy.verdict_of_error(error)
        if ruled.kind is not Kind.TRANSIENT:
            return with_proof(ruled, served) if served.kind is Kind.NOT_EXECUTED else apply_rules(ruled, judgement)
        return with_proof(add_wait(ruled, errors.wait_of(error)), served)

    def _verdict_of_service(self, error: Exception, judgement: Judgement) -> Verdict:
        """Return the verdict on a failure: NOT_EXECUTED for a code by which the user says that calls are refused."""
        code = errors.code_of(error) if errors.status_of(error) is None else None
        if code is None or not self.vouch.is_refusal(judgement, code, text_of(error)):
            return self._verdict_of_tables(error, judgement)
        refused = settle(grpc_status.verdict(code, (code,), read=True)).replace(kind=Kind.NOT_EXECUTED)
        return add_wait(refused, errors.wait_of(error))

    def _verdict_of_tables(self, error: Exception, judgement: Judgement) -> Verdict:
        """Return the verdict on a failure by its HTTP status, else by its gRPC code, else by the kind of the error.

        The RPC's service judges a status or a code; for an RPC without a service RFC 9110 judges the status, and the
        general rules of gRPC the code. PERMANENT where they have no verdict. An error whose `was_sent` is False proves
        that the call was not executed.
        """
        if getattr(error, "was_sent", None) is False:
            return NOT_EXECUTED
        service, status, code = self.service, errors.status_of(error), errors.code_of(error)
        if status is not None:  # of a REST transport
            known = service or rfc9110.RFC9110
            verdict = known.verdict(judgement, status, errors.headers_of(error), lambda: errors.body_of(error))
        elif code is None:
            return verdict_of_one_request(error)
        elif service is None:
            verdict = grpc_status.verdict(code, read=not judgement.mutation)
        else:
            verdict = service.call_verdict(judgement, code, list(errors.metadata_of(error)))
        return add_wait(settle(verdict), errors.wait_of(error))


def is_refusal(status: int | None, code: int | None) -> bool:
    """Return whether an HTTP status, or without one a gRPC code, says that a call is wrong, so not executed."""
    return code in codes.REFUSED if status is None else status in (400, 401, 403, 404, 405, 412)


def check_rpc_policy(policy: Policy | None) -> None:
    """Raise TypeError as `check_policy` does, and ValueError for `attempt_timeout` and `on_result`, which RPCs lack."""
    check_policy(policy, _VOUCH)
    if policy is not None and policy.attempt_timeout is not None:
        raise ValueError(
            "`policy` must have no attempt_timeout, because gRPC has its own timeout: pass `timeout` to the call; "
            f"got {policy.attempt_timeout!r}"
        )
    if policy is not None and policy.on_result is not None:
        raise ValueError("`policy` must have no on_result: responses of RPCs are not judged; got one")


def is_once(requests: object) -> bool:
    """Return whether requests, or an object passed as a request, can be read only once: an iterator, sync or async."""
    return isinstance(requests, Iterator | AsyncIterator)


class Rpcs(dict[str, Rpc]):
    """The RPCs of a channel under one policy: `rpcs["/package.Service/Method"]` is an `Rpc`.

    `vouch` is the user's word for them. `policy` None takes the recommended policy of each RPC's service, with the
    `changes`. `raised` are the bases of the errors of the channel's calls.
    """

    __slots__ = ("_changes", "_policy", "_vouch")

    def __init__(
        self,
        policy: Policy | None,
        vouch: RpcVouch,
        changes: PolicyChanges = NO_CHANGES,
        raised: tuple[type[Exception], ...] = (),
    ) -> None:
        check_rpc_policy(policy or changes.sample)
        refuse_unraised(policy, raised)
        check_word("safe", vouch.safe)
        self._policy = policy
        self._changes = changes
        self._vouch = vouch

    def show_as(self, adapter: str) -> str:
        """Return the call that makes the adapter with this policy and vouch, without what has its default."""
        shown = [] if self._policy is None else [repr(self._policy)]
        shown += [f"{name}={value!r}" for name, value in self._changes.options.items()]
        return f"{adapter}({', '.join(shown + self._vouch.show())})"

    def __missing__(self, method: str) -> Rpc:
        """Return the `Rpc` with this full name, made once; one of another service gets the policy of that."""
        policy = self._policy
        own: object = None if policy is None else policy.service
        service = registry.find_rpc(method)
        if is_rpc_service(own) and service is not None and own.name != service.name:
            policy = None
        rpc = self[method] = Rpc(method, policy, vouch=self._vouch, changes=self._changes)
        return rpc
