"""Commands and pipelines on a cluster: only the commands that failed are sent again, each by itself.

The libraries send every lost or redirected command of a pipeline again, even INCR. Here the table decides which
commands may be sent again, and each of them is then sent through the cluster by itself. Only if sending the pipeline
raises, or if `on_result` refuses the responses, is it sent again as a whole, where all of it is repeatable.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from forbear.core.dataclass import replace
from forbear.core.report import attach, report
from forbear.core.verdict import Kind, Verdict
from forbear.exchange.redis.command_run import CommandRun
from forbear.exchange.redis.descriptions import SentCommands, describe_pipeline, judge_together
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import verdict_of
from forbear.run.grant import Grant
from forbear.services.redis.vouch import Safe
from forbear.services.redis.words import Command

_ALONE = SentCommands("", repeatable=False, unsafe="", redirected=True)
_TOGETHER = replace(_ALONE, atomic=False)
_WORTH_RETRYING = (Kind.TRANSIENT, Kind.NOT_EXECUTED)


class Nodes(list[object]):
    """The nodes to which the current attempt has sent `command`; entering its `with` block, one attempt, empties it."""

    def __init__(self, command: Command) -> None:
        super().__init__()
        self.command = command

    def __enter__(self) -> None:
        self.clear()
        self._token = _nodes.set(self)

    def __exit__(self, *raised: object) -> None:
        _nodes.reset(self._token)


_nodes: ContextVar[Nodes | None] = ContextVar("forbear_nodes", default=None)


def record_node(node: object) -> None:
    """Record that the current attempt sends to `node`: one node may execute a command that another node refused."""
    nodes = _nodes.get()
    if nodes is not None:
        nodes.append(node)


def current_command() -> Command | None:
    """Return the command that the current attempt of `loops.send_to_nodes` sends; None outside of one."""
    nodes = _nodes.get()
    return None if nodes is None else nodes.command


class QueuedCommand(Protocol):
    """A command in a pipeline of either library, its `position` (from 0), and its response or error as `result`."""

    args: tuple[Any, ...]
    position: int
    result: Any


class _Failure(NamedTuple):
    """A failed command of a pipeline and the verdict on it.

    `harmful` is true if the command may have been executed and must not be executed twice. `vouched` is true if it may
    have been executed, and only the user's word allows that it is executed twice.
    """

    queued: QueuedCommand
    verdict: Verdict
    harmful: bool
    vouched: bool


def plan_repair(
    settings: RedisSettings, stack: Sequence[QueuedCommand], *, awaits: bool = False
) -> tuple[CommandRun, Grant | None, list[QueuedCommand]] | None:
    """Return the run, the grant of its retry and the commands to send again then.

    Return None without a policy, and if no command failed in a way worth repeating. The grant is None if the run
    gives up; one harmful command is enough for that.
    """
    if settings.policy is None or not any(isinstance(queued.result, Exception) for queued in stack):
        return None
    work = describe_pipeline([queued.args for queued in stack], settings.safe)
    run = CommandRun(settings, settings.policy, work, awaits=awaits)
    failures = [
        failure for failure in _list_failures(run, stack, settings.safe) if failure.verdict.kind in _WORTH_RETRYING
    ]
    harmful = next((failure for failure in failures if failure.harmful), None)
    if not failures:
        return None
    decisive = harmful or failures[0]
    vouched = any(failure.vouched for failure in failures)
    work = replace(work, repeatable=harmful is None, vouched=vouched)
    grant = run.fail_as(decisive.verdict, decisive.queued.result, work)
    return run, grant, [failure.queued for failure in failures]


def annotate(stack: Sequence[QueuedCommand], run: CommandRun) -> None:
    """Attach the run's report, if it has one, to every error of `stack` that has none: the first error is raised."""
    for queued in stack:
        error = queued.result
        if run.report is not None and isinstance(error, Exception) and report(error) is None:
            attach(error, run.report)


def _list_failures(run: CommandRun, stack: Sequence[QueuedCommand], safe: Safe) -> Iterator[_Failure]:
    judgements = judge_together([queued.args for queued in stack], safe)
    errors = Counter(id(queued.result) for queued in stack if isinstance(queued.result, Exception))
    for queued, judgement in zip(stack, judgements, strict=True):
        error = queued.result
        if isinstance(error, Exception):
            # redis-py gives one error to all commands of a node, even to those that were answered before it.
            work = replace(_TOGETHER if errors[id(error)] > 1 else _ALONE, scripted=judgement.scripted)
            verdict = run.policy_verdict(error, verdict_of(error, work))
            doubt = verdict.kind is Kind.TRANSIENT
            yield _Failure(queued, verdict, doubt and not judgement.repeatable, doubt and judgement.vouched)


def raise_first(stack: Sequence[QueuedCommand]) -> None:
    """Raise the first error among the results, with its command's name and number (from 1) in the text."""
    for queued in stack:
        error = queued.result
        if isinstance(error, Exception):
            text = error.args[0] if error.args else ""
            command = queued.args[0]
            error.args = (f"Command # {queued.position + 1} ({command}) of pipeline caused error: {text}",)
            raise error
