"""Finds the operation that a method and a path mean; a tree of path segments, and nothing of what they do."""

from dataclasses import dataclass, field
from urllib.parse import unquote

from forbear.testing.cloud.errors import ApiError


@dataclass(slots=True)
class _Node:
    """Where a path can lead; `verbs` has the methods by verb, "" for none."""

    literal: dict[str, "_Node"] = field(default_factory=dict[str, "_Node"])
    variable: "_Node | None" = None
    verbs: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = field(
        default_factory=dict[str, dict[str, tuple[str, tuple[str, ...]]]]
    )


class Router:
    """Routes of the form `/storage/v1/b/{bucket}`; a variable is exactly one segment, percent-encoded.

    The last segment may end with a verb, as in `/v1/projects/{project}:getIamPolicy`.
    """

    def __init__(self, routes: tuple[tuple[str, str, str], ...]) -> None:
        self._root = _Node()
        self._verbs = set[str]()
        for operation, method, template in routes:
            self._add(operation, method, template)

    def _add(self, operation: str, method: str, template: str) -> None:
        template, _, verb = template.partition(":")
        if verb:
            self._verbs.add(verb)
        node, names = self._root, list[str]()
        for segment in template.strip("/").split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.variable = node.variable or _Node()
                node = node.variable
            else:
                node = node.literal.setdefault(segment, _Node())
        node.verbs.setdefault(verb, {})[method] = (operation, tuple(names))

    def find(self, method: str, path: str) -> tuple[str, dict[str, str]]:
        """The operation id and the decoded variables; 404 for an unknown path, 405 for the wrong method."""
        node: _Node | None = self._root
        values = list[str]()
        start, _, verb = path.rpartition(":")
        if verb in self._verbs:
            path = start
        else:
            verb = ""
        for segment in path.removeprefix("/").removesuffix("/").split("/"):
            if node is None:
                break
            if segment in node.literal:
                node = node.literal[segment]
            else:
                node = node.variable
                values.append(segment)
        methods = None if node is None or "" in values else node.verbs.get(verb)
        if not methods:
            raise ApiError(404, "Not Found: no operation of the API has this path.")
        found = methods.get("GET" if method == "HEAD" else method)
        if found is None:
            allowed = ", ".join(sorted(methods))
            raise ApiError(405, f"Method not allowed here; allowed: {allowed}.", headers=(("Allow", allowed),))
        operation, names = found
        # Undecodable bytes become lone surrogates, which no stored name contains and no new one may.
        return operation, {
            name: unquote(value, errors="surrogateescape") for name, value in zip(names, values, strict=True)
        }
