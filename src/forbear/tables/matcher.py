"""Find an operation by HTTP method and raw path, in microseconds.

Segments are compared as they are sent: `o/a%2Fb` is one object, `o/a/b` another route. A literal segment must match
exactly. `{name}` matches any segment that is neither empty nor a dot segment, which servers may remove. Where a
template ends in `{name}:verb`, the text after the last colon of the last segment is a verb for all its siblings.
"""

from typing import Generic, TypeVar

T = TypeVar("T")

_DOT_SEGMENTS = frozenset(
    spelling for dot in (".", "%2e", "%2E") for spelling in (dot, *(dot + other for other in (".", "%2e", "%2E")))
)


class _PathNode(Generic[T]):
    __slots__ = ("any", "literals", "operations", "verbs")

    def __init__(self) -> None:
        self.literals: dict[str, _PathNode[T]] = {}
        self.any: _PathNode[T] | None = None
        self.operations: dict[str, T] = {}
        self.verbs: dict[str, _PathNode[T]] = {}


class Matcher(Generic[T]):
    """A set of path templates such as `/storage/v1/b/{bucket}`, each with an operation for each HTTP method."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: _PathNode[T] = _PathNode()

    def add(self, method: str, template: str, operation: T) -> None:
        """Add one operation. Raises ValueError if the method and template are there already."""
        node = self._root
        for segment in template.split("/"):
            if segment[:1] == "{":
                node.any = node = node.any or _PathNode()
                verb = segment.partition("}:")[2]
                if verb:
                    node = node.verbs.setdefault(verb, _PathNode())
            else:
                node = node.literals.setdefault(segment, _PathNode())
        if method in node.operations:
            raise ValueError(f"two operations must not share a method and a path, got {method} {template} twice")
        node.operations[method] = operation

    def find(self, method: str, path: str) -> T | None:
        """Return the operation of a request, None if there is none; a literal segment is preferred to a placeholder."""
        return _find(self._root, method, path.split("/"), 0)


def _find(node: _PathNode[T], method: str, segments: list[str], index: int) -> T | None:
    if index == len(segments):
        return node.operations.get(method)
    segment = segments[index]
    literal = node.literals.get(segment)
    if literal is not None:
        match = _find(literal, method, segments, index + 1)
        if match is not None:
            return match
    if node.any is None or not segment or segment in _DOT_SEGMENTS:
        return None
    if ":" in segment and node.any.verbs and index + 1 == len(segments):
        name, _, verb = segment.rpartition(":")
        known = node.any.verbs.get(verb)
        return None if known is None or not name or name in _DOT_SEGMENTS else known.operations.get(method)
    return _find(node.any, method, segments, index + 1)
