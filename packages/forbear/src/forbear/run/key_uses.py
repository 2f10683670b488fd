"""The uses of keys: those of a run itself, those that adapters have added, and the requests that went with them."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    Path = tuple[tuple[float, int], ...]
    """Runs, the outermost first: when each began, which is its identity, and the number of its attempt."""


class KeyUse:
    """The use of one key: the times of the `first` and the `last` one, and `until`, when it must not be sent again."""

    __slots__ = ("first", "last", "until")

    def __init__(self, now: float, until: float) -> None:
        self.first = self.last = now
        self.until = until


class AutomaticKey:
    """A key that an adapter makes for one request, so that the next attempt of a function sends the same one.

    An adapter uses it so, for an API that honours keys:

    1. `use = automatic_key(place, request, span)` before the request is sent; `use.key` goes with all its attempts. It
       raises `RepeatRefused` if the request must not be sent.
    2. `use.succeeded()`, or `use.take_back()` if it was certainly not executed, or `use.pass_on()` if the next hop
       is to execute it. After none of them its outcome is unknown: an equal request of a later attempt gets the key
       again.
    3. The entry in the ledger has `Word(automatic=span)`: one that succeeded forbids the next attempt.
    """

    __slots__ = ("_is_in_doubt", "_known", "is_unknown", "key", "path", "place", "request", "until")

    def __init__(
        self, key: str, place: object, request: object, path: "Path", until: float, known: "dict[str, AutomaticKey]"
    ) -> None:
        self.key = key
        self.place = place
        self.request = request
        self.path = path  # of the attempts that have sent it last
        self.until = until
        self.is_unknown = True
        self._is_in_doubt = False
        self._known = known  # those of its run
        known[key] = self

    def send_again(self, path: "Path") -> None:
        """Note that another attempt, or the next hop, sends it: an earlier request may have been executed."""
        self.path = path
        self._is_in_doubt = self.is_unknown
        self.is_unknown = True

    def succeeded(self) -> None:
        """Note that the request was executed: its key is not used again."""
        self.is_unknown = False
        self._known.pop(self.key, None)

    def take_back(self) -> None:
        """Note that the request of this attempt was not executed; that of an earlier one may have been."""
        self.pass_on()
        if not self.is_unknown:
            self._known.pop(self.key, None)

    def pass_on(self) -> None:
        """Note that the request was not executed here, but the next hop may have the same key."""
        self.is_unknown = self._is_in_doubt


class SentKey:
    """The equal requests that an `attempt` has sent with one key of its own, each until it is taken back."""

    __slots__ = ("attempt", "request", "_kept")

    def __init__(self, attempt: int, request: object) -> None:
        self.attempt = attempt
        self.request = request
        self._kept: list[None] = []  # one item for each; a number could not be changed by several threads at once

    def forbids(self, attempt: int, request: object) -> bool:
        """Return whether the server may have executed another request with this key."""
        return self.attempt == attempt and self.request != request and bool(self._kept)

    def send(self) -> None:
        """Note that the request is sent."""
        self._kept.append(None)

    def take_back(self) -> None:
        """Note that one of the requests was certainly not executed: refused, redirected, or never sent."""
        self._kept.pop()
