"""Commands and pipelines on a cluster: only the commands that failed are sent again, each by itself.

The libraries send every lost or redirected command of a pipeline again, even INCR. Here the table decides which
commands may be sent again, and each of them is then sent through the cluster by itself. Only if sending the pipeline
raises, or if `on_result` refuses the responses, is it sent again as a whole, where all of it is repeatable.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from forbear.core.dataclass import replace
from forbear.core.report import attach, report
from forbear.core.verdict import Kind
from forbear.exchange.call_state import Start
from forbear.exchange.redis.call import RedisCall
from forbear.exchange.redis.descriptions import SentCommands, describe_command, describe_together, judge_together
from forbear.exchange.redis.settings import RedisSettings
from forbear.exchange.redis.verdicts import verdict_of
from forbear.run.grant import Grant
from forbear.services.redis.command_words import Command
from forbear.services.redis.vouch import Safe

T = TypeVar("T")

_ALONE = SentCommands("", repeatable=False, redirected=True)
_TOGETHER = replace(_ALONE, atomic=False)


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

    def send(self, send: Callable[..., T], *args: Any, **options: Any) -> T:
        with self:
            return send(*args, **options)

    def describe(self, command: Command, safe: Safe) -> SentCommands:
        """Return the description of the command: one node may execute it that another node refused."""
        return describe_command(command, safe, nodes=self)


_nodes: ContextVar[Nodes | None] = ContextVar("forbear_nodes", default=None)

current_nodes = _nodes.get
"""Return the nodes of the current attempt to send a command; None outside of one."""


class QueuedCommand(Protocol):
    """A command in a pipeline of either library, its `position` (from 0), and its response or error as `result`."""

    args: tuple[Any, ...]
    position: int
    result: Any


class Repair(RedisCall):
    """The state of a pipeline, the stack `sent`, of which commands failed; `again` lists those that are sent again."""

    __slots__ = ("again",)

    def __init__(self, settings: RedisSettings, stack: Sequence[QueuedCommand], start: Start) -> None:
        super().__init__(settings, lambda stack, safe: describe_together(list_commands(stack), safe), stack, start)
        self.again: list[QueuedCommand] = []

    def plan(self) -> Grant | None:
        """Return the grant of sending the commands in `again`, None if no failure is worth it, or the run gives up.

        One command that may have been executed and must not be executed twice is enough to give up.
        """
        stack, commands = self.sent, self.commands
        harmful = decisive = None
        vouched = False
        errors = Counter(id(queued.result) for queued in stack if isinstance(queued.result, Exception))
        for queued, judgement in zip(stack, judge_together(list_commands(stack), self.settings.safe), strict=True):
            error = queued.result
            if not isinstance(error, Exception):
                continue
            # redis-py gives one error to all commands of a node, even to those that were answered before it.
            one = replace(_TOGETHER if errors[id(error)] > 1 else _ALONE, scripted=judgement.scripted)
            verdict = self.find_verdict(error, verdict_of(error, one))
            in_doubt = verdict.kind is Kind.TRANSIENT
            if in_doubt or verdict.kind is Kind.NOT_EXECUTED:
                self.again.append(queued)
                decisive = decisive or (verdict, error)
                harmful = harmful or ((verdict, error) if in_doubt and not judgement.repeatable else None)
                vouched = vouched or (in_doubt and judgement.vouched)
        decisive = harmful or decisive
        if decisive is None:
            return None
        return self.follow(*decisive, replace(commands, repeatable=harmful is None, vouched=vouched))

    def annotate(self) -> None:
        """Attach the run's report, if it has one, to every error that has none: the first error is raised."""
        for queued in self.sent:
            error = queued.result
            if self.report is not None and isinstance(error, Exception) and report(error) is None:
                attach(error, self.report)


def list_commands(stack: Sequence[QueuedCommand]) -> list[Command]:
    """Return the commands of a pipeline, in order."""
    return [queued.args for queued in stack]


def list_results(stack: Sequence[QueuedCommand]) -> list[Any]:
    """Return the responses and errors of a pipeline, in order."""
    return [queued.result for queued in stack]
