"""`explain`: find out what a text, a list of words or a client's request stands for, and answer about it."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from forbear.answers import aws, curl, grpc, http, redis
from forbear.answers.answer import Answer, reason
from forbear.answers.draft import Draft
from forbear.answers.errors import NoAnswer
from forbear.answers.profile import ProfileChoice
from forbear.core.check import is_mapping, shown
from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.evidence.sent import AwsCall
from forbear.grpc.call import GrpcCall
from forbear.http.request import METHODS, READS, Request, join_headers
from forbear.judges.functions import judge_alone
from forbear.services.policies import RECOMMENDED
from forbear.services.redis.command_words import Command, octets
from forbear.services.redis.service import classify

if TYPE_CHECKING:
    from typing import Protocol

    class ClientRequest(Protocol):
        """A request object of httpx, of requests or of another client: it has a method, a URL and headers."""

        @property
        def method(self) -> Any:
            """The method, such as "GET"."""
            ...

        @property
        def url(self) -> Any:
            """The URL: a text, or an object that becomes one by `str`."""
            ...

        @property
        def headers(self) -> Any:
            """The headers, with `items()`."""
            ...


_Subject = Request | GrpcCall | AwsCall | tuple[str, ...]

_METHODS = READS - {"GET"} | {"POST", "PUT", "PATCH", "DELETE"}  # GET is a command of Redis, too
_NO_KEY = re.compile(r"/|(?:[\w-]+(?:\.[\w-]+)+|localhost)(?::\d+)?/", re.IGNORECASE)  # the begin of a path or URL
_EXAMPLES = (
    'such as "DELETE https://host/path", "curl ...", "/package.Service/Method", "INCR key" or "aws sqs SendMessage"'
)


def explain(
    request: "str | Command | Request | ClientRequest | BaseException",
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | str | None = b"",
    fields: Mapping[str, object] | None = None,
    parameters: Mapping[str, object] | None = None,
    service: str | None = None,
    profile: str = RECOMMENDED,
) -> Answer:
    """Say whether a request, an RPC, a command of Redis or a call of AWS may be repeated, and why. Nothing is sent.

    `request` is one of these:

    - a method and a URL, "POST https://api.example.com/orders", with `headers` and `body`. The body is empty by
      default; None stands for one that is not known, and makes nothing safer;
    - a curl command line, "curl -X DELETE https://...". Files that it names are not read, so they are not known;
    - the full name of an RPC, "/google.iam.admin.v1.IAM/CreateServiceAccount". `fields` are those of its request, by
      the names of the definition: {"policy": {"etag": "BwX"}};
    - a command of Redis or Valkey as a text, "SET key value NX", or as a list of words. A text whose command no table
      has begins with the word redis: "redis MYMODULE.RUN key";
    - a call of AWS, "aws dynamodb UpdateItem", with its `parameters`; the models are those of the installed botocore;
    - a request object: an httpx.Request, a requests.Request or its prepared form, a `forbear.adapters.Request`, or any
      other with `method`, `url` and `headers`. If its body cannot be read twice, it counts as not known;
    - an exception: the answer is about the requests that it shows, of which the least safe one decides.

    `service` names the service that judges it, as for an emulator: "cloud_storage". By default the host or the package
    decides. `profile` names the policy whose retries the outcomes are about; docs/cli.md lists the names. What a client
    or a scope vouches for does not count here. Raises NoAnswer (a ValueError) for what cannot be read or judged, and
    TypeError for values of wrong types.

    >>> forbear.explain("INCR visits").repeatable
    False
    >>> print(forbear.explain("GET https://api.example.com/orders"))
    GET api.example.com/orders: may be repeated ...
    """
    _check_text("service", service, "the name of a service, or None")
    _check_text("profile", profile, "the name of a profile")
    choice = ProfileChoice(profile)
    if isinstance(request, BaseException):
        return _answer_error(request, choice)
    subject = _subject(request, headers, body, fields, parameters)
    if isinstance(subject, Request):
        return http.answer(subject, service, choice)
    if isinstance(subject, GrpcCall):
        return grpc.answer(subject, service, choice)
    if service is not None:
        kind = "a call of AWS" if isinstance(subject, AwsCall) else "a command of Redis"
        raise NoAnswer(f"`service` does not go with {kind}", "leave it out")
    if isinstance(subject, AwsCall):
        return aws.answer(subject, choice)
    return redis.answer(subject, choice)


def _answer_error(error: BaseException, choice: ProfileChoice) -> Answer:
    """Return whether the requests that an error shows may be repeated; one that shows none may be."""
    judgement = judge_alone(error) or _NOTHING
    name = type(error).__qualname__
    title = f"{name}, after {judgement.operation}" if judgement.operation else name
    why = judgement.unknown or reason(judgement)
    return Answer(title, {"error": name}, choice.name, choice.policy("rfc9110"), judgement, why, ())


_NOTHING = Judgement("functions", None, Safety.CONDITIONAL, repeatable=True, unknown="the error shows no request")


def _check_text(parameter: str, value: object, rule: str) -> None:
    if not isinstance(value, str) and (value is not None or parameter != "service"):
        raise TypeError(f"`{parameter}` must be {rule}, got {shown(value)}")


def _subject(
    request: object,
    headers: Mapping[str, str] | None,
    body: bytes | str | None,
    fields: Mapping[str, object] | None,
    parameters: Mapping[str, object] | None,
) -> _Subject:
    """Return what `request` stands for. Raises NoAnswer for other parameters that do not go with it."""
    if isinstance(request, list | tuple):
        pair = [str(word) for word in cast("Command", request)]
        if len(pair) == 2 and pair[0].upper() in _METHODS:  # no command of Redis
            request = " ".join(pair)
    words = request.split() if isinstance(request, str) else []
    is_request = _is_request(words)
    is_call = words[:1] in (["grpc"], ["google"]) or (bool(words) and grpc.is_method(words[0]))
    if not is_request and (headers is not None or body != b""):
        name = "headers" if headers is not None else "body"
        raise NoAnswer(f"`{name}` goes with a method and a URL alone", "leave it out, or write the request as one")
    if not is_call and fields is not None:
        raise NoAnswer("`fields` goes with an RPC alone", "leave it out, or name the RPC: /package.Service/Method")
    if words[:1] == ["aws"]:
        return aws.parse_call(words[1:], parameters)
    if parameters is not None:
        raise NoAnswer(
            "`parameters` goes with a call of AWS alone", "leave it out, or name the call: aws sqs SendMessage"
        )
    if is_request:
        draft = Draft()
        draft.headers = _headers(headers)
        draft.body = _bytes(body)
        return _build(draft, words[0].upper(), words[1].strip("'\""))
    if is_call:
        if fields is not None and not is_mapping(fields):
            raise TypeError(f"`fields` must map names to values, got a {type(fields).__qualname__}")
        return grpc.parse_call(words[words[0] == "grpc" :], fields)
    if isinstance(request, str):
        return _read_text(request)
    if isinstance(request, Request):
        return request
    if isinstance(request, list | tuple):
        words = [
            word if isinstance(word, str) else octets(word).decode(errors="replace")
            for word in cast("Command", request)
        ]
        return curl.parse(words)[0] if curl.is_curl(words) else redis.parse_command(words)
    return _read_client(request)


def _is_request(words: list[str]) -> bool:
    """Return whether `words` are a method and a URL or a path, as also the first line of a message has them.

    A word after GET without a scheme may be a key of Redis, unless it begins as a path or with a host. Raises NoAnswer
    for more words.
    """
    if len(words) < 2 or words[0].upper() not in METHODS:
        return len(words) == 2 and "://" in words[1]
    if len(words) == 2 or (len(words) == 3 and words[2].startswith("HTTP/")):
        return "://" in words[1] or words[0].upper() in _METHODS or _NO_KEY.match(words[1]) is not None
    if "://" in words[1]:
        raise NoAnswer(
            f"a request is a method and a URL, got {len(words)} words", "pass what follows them as `headers` and `body`"
        )
    return False


def _build(draft: Draft, method: str, url: str) -> Request:
    try:
        return draft.build(method, url)
    except NoAnswer as error:
        if method != "GET" or "://" in url:
            raise
        raise NoAnswer(error.message, f"{error.cure}; a key of Redis goes as: redis GET key") from None


def _read_text(text: str) -> _Subject:
    if curl.is_curl([text]):
        return curl.parse([text])[0]
    first, *rest = text.split(maxsplit=1) or [""]
    if first == "redis":
        return redis.parse_command(rest)
    words = redis.parse_command([text.strip()]) if first else ()
    if not words or (classify(words).operation is None and classify(words[:1]).operation is None):
        raise NoAnswer("`request` cannot be told by its text: it is no request, RPC or known command", _EXAMPLES)
    return words


def _read_client(request: object) -> Request:
    """Return a client's request object in the form that services judge; TypeError if it is none."""
    content = getattr(type(request), "content", None)
    prepare = getattr(request, "prepare", None)
    if content is None and not hasattr(request, "body") and callable(prepare):  # of requests, not prepared yet
        request = prepare()
    method, url = getattr(request, "method", None), getattr(request, "url", None)
    headers = getattr(request, "headers", None)
    if not isinstance(method, str) or url is None or not hasattr(headers, "items"):
        raise TypeError(
            "`request` must be a text, a list of words, or a request object with method, url and headers; "
            f"got a {type(request).__qualname__}"
        )
    draft = Draft()
    draft.headers = _headers(headers)
    draft.body = _body_of(request)
    return draft.build(method, str(url), is_typed=False)


def _headers(headers: object) -> dict[str, str]:
    """Return headers with lower-case names, {} for None; TypeError for what is no mapping."""
    if headers is not None and not hasattr(headers, "items"):
        raise TypeError(f"`headers` must map names to values, got a {type(headers).__qualname__}")
    return {} if headers is None else join_headers(cast("Mapping[str, str]", headers))


def _bytes(body: object) -> bytes | None:
    """Return a body as bytes, None if it is not known; TypeError for what is none."""
    if body is not None and not isinstance(body, str | bytes | bytearray):
        raise TypeError(f"`body` must be bytes, a text or None (not known), got a {type(body).__qualname__}")
    return body.encode(errors="replace") if isinstance(body, str) else None if body is None else bytes(body)


def _body_of(request: object) -> bytes | None:
    """Return the body of a client's request object; None if it is not in memory, or if it cannot be told."""
    client: Any = request
    try:
        body: object = client.content if hasattr(type(request), "content") else client.body
    except Exception:  # httpx: a stream that nobody has read yet
        return None
    if body is None:
        return b""
    return _bytes(body) if isinstance(body, str | bytes | bytearray) else None
