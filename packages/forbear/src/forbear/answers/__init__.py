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


class NoAnswer(ValueError):
    """There is no answer: `message` says what cannot be read or judged, and `cure` what to write instead.

    Names in backticks are those of parameters. No text that may be secret is repeated.

    >>> forbear.explain("POST api.example.com/orders")
    Traceback (most recent call last):
    ...
    forbear.answers.NoAnswer: ...
    """

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(message, cure)
        self.message = message
        self.cure = cure

    def __str__(self) -> str:
        """Return the message and the cure in one line."""
        return f"{self.message}; {self.cure}"
