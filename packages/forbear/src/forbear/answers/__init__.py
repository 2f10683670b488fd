"""May this be repeated, and why: answers about requests, RPCs and commands, as values.

`forbear.explain` is the door; the command `forbear explain` prints what is found here. Nothing is sent, no file is
read, and no secret of a request is in an answer.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.answers.answer import Answer, FailureOutcome
else:
    from forbear.core.lazy import exports

    __getattr__, __dir__ = exports(__name__, {"Answer": "answer", "FailureOutcome": "answer"})

__all__ = ["Answer", "FailureOutcome"]
