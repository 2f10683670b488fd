"""`NoAnswer`, the error of `forbear.explain`."""


class NoAnswer(ValueError):
    """There is no answer: `message` says what cannot be read or judged, and `cure` what to write instead.

    Names in backticks are those of parameters. No text that may be secret is repeated.

    >>> forbear.explain("POST api.example.com/orders")
    Traceback (most recent call last):
    ...
    forbear.answers.errors.NoAnswer: ...
    """

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(message, cure)
        self.message = message
        self.cure = cure

    def __str__(self) -> str:
        """Return the message and the cure in one line."""
        return f"{self.message}; {self.cure}"
