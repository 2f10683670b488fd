"""Reads that are sent as POST: of search engines, Slack, Kubernetes, OAuth and GraphQL, where an Api names the service.

`Api("https://search.example.com", service="elasticsearch")` makes the paths of Elasticsearch count at that origin. A
path alone names nothing. What none of the lists has is judged by RFC 9110.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from forbear.core.check import is_list, is_mapping
from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.http.request import Request, method_overrides
from forbear.services.rfc9110 import RFC9110, Rfc9110

_LARGEST_BODY = 1024 * 1024

_ELASTIC = "https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-"
SEARCHES: Mapping[str, str] = {
    "_search": f"{_ELASTIC}search",
    "_msearch": f"{_ELASTIC}msearch",
    "_count": f"{_ELASTIC}count",
    "_mget": f"{_ELASTIC}mget",
    "_field_caps": f"{_ELASTIC}field-caps",
    "_query": f"{_ELASTIC}esql-query",
    "_analyze": f"{_ELASTIC}indices-analyze",
    "_msearch/template": f"{_ELASTIC}msearch-template",
    "_mtermvectors": f"{_ELASTIC}mtermvectors",
    "_rank_eval": f"{_ELASTIC}rank-eval",
    "_search/template": f"{_ELASTIC}search-template",
    "_termvectors": f"{_ELASTIC}termvectors",
    "_validate/query": f"{_ELASTIC}indices-validate-query",
}
"""The ends of paths by which Elasticsearch and OpenSearch only read, each with its page."""

_SLACK_READS = """
api.test auth.test bookmarks.list bots.info chat.getPermalink chat.scheduledMessages.list conversations.history
conversations.info conversations.list conversations.members conversations.replies dnd.info dnd.teamInfo emoji.list
files.info files.list pins.list reactions.get reactions.list search.all search.files search.messages team.info
team.profile.get usergroups.list usergroups.users.list users.conversations users.getPresence users.info users.list
users.lookupByEmail users.profile.get
"""
SLACK_READS = frozenset(_SLACK_READS.split())
"""The methods of Slack that only read; their pages are below docs.slack.dev/reference/methods."""

_AUTHORIZATION = "https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/"
_AUTHENTICATION = "https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/"
REVIEWS: Mapping[str, str] = {
    "authorization.k8s.io/selfsubjectaccessreviews": f"{_AUTHORIZATION}self-subject-access-review-v1/",
    "authorization.k8s.io/selfsubjectrulesreviews": f"{_AUTHORIZATION}self-subject-rules-review-v1/",
    "authorization.k8s.io/subjectaccessreviews": f"{_AUTHORIZATION}subject-access-review-v1/",
    "authorization.k8s.io/localsubjectaccessreviews": f"{_AUTHORIZATION}local-subject-access-review-v1/",
    "authentication.k8s.io/tokenreviews": f"{_AUTHENTICATION}token-review-v1/",
    "authentication.k8s.io/selfsubjectreviews": f"{_AUTHENTICATION}self-subject-review-v1/",
}
"""The reviews of Kubernetes, which answer a question and keep nothing, by group and resource, each with its page."""


class ReadsByPost(Rfc9110):
    """The service of an origin at which some POSTs only read: `find` returns the name of the read, None for others."""

    __slots__ = ("name", "find")

    name: str
    find: Callable[[Request], str | None]

    def __init__(self, name: str, find: Callable[[Request], str | None]) -> None:
        self._set(name=name, find=find)

    def classify(self, request: Request) -> Judgement:
        """Return the judgement: a read, or what RFC 9110 says."""
        read = None
        if request.method == "POST" and not method_overrides(request.headers):
            read = self.find(request)
        if self.name == "elasticsearch" and request.method == "PUT":
            return _judge_put(request)
        if read is None:
            return super().classify(request)
        return Judgement(self.name, read, Safety.ALWAYS, repeatable=True, mutation=False)


def _split(request: Request) -> tuple[list[str], str]:
    path, _, query = request.target.partition("?")
    return path.strip("/").split("/"), query


def _find_search(request: Request) -> str | None:
    """Return the read of a search engine; a scroll that is opened or continued is none."""
    segments, query = _split(request)
    first = next((place for place, each in enumerate(segments) if each.startswith("_")), 0)
    name = "/".join(segments[first:])
    if name.startswith("_termvectors/"):  # of one document
        name = "_termvectors"
    if name not in SEARCHES or "scroll" in query or (name == "_query" and first):
        return None
    return name


def _judge_put(request: Request) -> Judgement:
    """Return the judgement on a PUT to a search engine, which takes it for a POST of `_bulk` or `_create`, too."""
    segments, _ = _split(request)
    judgement = RFC9110.classify(request)
    if segments[-1] == "_bulk":
        return judgement.replace(safety=Safety.NEVER, repeatable=False)
    return judgement.replace(maybe_done=(409,)) if segments[-2:-1] == ["_create"] else judgement


def _find_slack(request: Request) -> str | None:
    segments, _ = _split(request)
    return segments[1] if len(segments) == 2 and segments[0] == "api" and segments[1] in SLACK_READS else None


def _find_review(request: Request) -> str | None:
    segments, _ = _split(request)
    if len(segments) not in (4, 6) or segments[0] != "apis" or (len(segments) == 6 and segments[3] != "namespaces"):
        return None
    name = f"{segments[1]}/{segments[-1]}"
    return name if name in REVIEWS else None


def _find_grant(request: Request) -> str | None:
    """Return the grant of client credentials (RFC 6749 §4.4): a new token each time, and the old ones stay valid."""
    if not request.body or len(request.body) > _LARGEST_BODY:
        return None
    try:
        grants = parse_qs(request.body.decode("ascii"), keep_blank_values=True, max_num_fields=100).get("grant_type")
    except ValueError:
        return None
    return "client_credentials" if grants == ["client_credentials"] else None


def _find_queries(request: Request) -> str | None:
    """Return "query" if every operation of a body of GraphQL is one; a stored document by its hash is not known."""
    if not request.body or len(request.body) > _LARGEST_BODY:
        return None
    try:
        content: Any = json.loads(request.body, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None
    operations: Any = content if is_list(content) else [content]
    return "query" if operations and all(map(_has_queries, operations)) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; ValueError if a name stands there twice, since servers differ in which one counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found


_STORED = frozenset({"documentId", "extensions", "id", "queryId"})
"""Fields by which a request may name a document that the server has stored."""


def _has_queries(operation: Any) -> bool:
    text: Any = operation.get("query") if is_mapping(operation) else None
    if not isinstance(text, str) or not _STORED.isdisjoint(operation):
        return False
    kinds = list_definitions(text)
    return bool(kinds) and "query" in kinds and kinds <= {"query", "fragment"}


def list_definitions(document: str) -> set[str]:
    """Return the kinds of definitions at the top of a document of GraphQL, {} if it cannot be read.

    They are "query" (also for the short form), "mutation", "subscription", "fragment" and those of schemas. Texts and
    comments are passed over.
    """
    kinds, depth, at, word = set[str](), 0, 0, ""
    while at < len(document):
        sign = document[at]
        if document.startswith('"""', at):
            end = document.find('"""', at + 3)
            while end > 0 and document[end - 1] == "\\":
                end = document.find('"""', end + 3)
            if end < 0:
                return set()
            at = end + 2
        elif sign == '"':
            at = _find_quote(document, at)
            if at < 0:
                return set()
        elif sign == "#":
            while at + 1 < len(document) and document[at + 1] not in "\r\n":
                at += 1
        elif sign in "{(":
            if depth == 0 and sign == "{":
                kinds.add(word or "query")
                word = ""
            depth += 1
        elif sign in "})":
            depth -= 1
            if depth < 0:
                return set()
        elif depth == 0 and not word and (sign.isalpha() or sign == "_"):
            end = at
            while end < len(document) and (document[end].isalnum() or document[end] == "_"):
                end += 1
            word, at = document[at:end], end - 1
        at += 1
    return set() if depth or word else kinds


def _find_quote(document: str, at: int) -> int:
    """Return the place of the quote that ends the text which begins at `at`, -1 without one in its line."""
    at += 1
    while at < len(document) and document[at] not in '"\r\n':
        at += 2 if document[at] == "\\" else 1
    return at if at < len(document) and document[at] == '"' else -1


SERVICES = {
    "elasticsearch": ReadsByPost("elasticsearch", _find_search),
    "graphql": ReadsByPost("graphql", _find_queries),
    "kubernetes": ReadsByPost("kubernetes", _find_review),
    "oauth": ReadsByPost("oauth", _find_grant),
    "slack": ReadsByPost("slack", _find_slack),
}
"""The services by the names that an Api gives them."""
