"""The list of the RPCs of Google's APIs that may be executed twice, by the rules of docs/google.md.

`tools/google_rules.py` has the rules, over the protos with their comments; readers looked at all writes they allow.
What no rule allows was labelled by two readers, and is listed if both call it safe (docs/google_labels.csv). The list,
google.txt, is written from one commit of the protos, which its first line names. An RPC that came later is not in it.

A line with packages is followed by their services, each with its RPCs. An RPC has its rules after colons; one without
is a read by GET. A rule is the first letter of its kind, and `=` before the fields that must be set, which are left out
if they are usual:

- `key`: the server does not execute a second request with this request_id. `~60` is the span in minutes.
- `create`: the caller chose the id in the field.
- `delete`: one resource, that of the field. With `etag` or `uid`, only if that is set.
- `update`, and `etag`: the mask, and for the latter the etag, too.
- `read`: a read by POST.
- `view`, `set` and `gone`: what two readers call safe: it reads, it sets what the request has, or it removes that.

Fields after `!` must not be true or hold anything: `force` would delete children, too.
"""

import csv
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from forbear.core.check import is_mapping
from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.grpc import codes
from forbear.grpc.call import field
from forbear.services.rpcs import NAME, RpcJudgement, allow_read, allow_write, forbid

FILE = Path(__file__).with_name("google.txt")
_ROWS = Path(__file__).with_name("rows.csv")

USUAL: Mapping[str, tuple[str, ...]] = {"key": ("request_id",), "delete": ("name",), "update": ("update_mask",)}
"""The fields that the list leaves out, by the kind of the rule."""

GUARDS = ("etag", "uid")
"""The fields that keep a delete from another resource of the same name."""
_UNKNOWN_SPAN = 300.0
_PROOFS = {"key": "key", "create": "absent", "delete": "version", "etag": "version"}
_KINDS = {kind[0]: kind for kind in ("key", "create", "delete", "update", "etag", "read", "view", "set", "gone")}
"""The kinds by their letters in the list; rows have the whole word."""
_REASONS = {
    "get": "its HTTP binding is GET",
    "read": "a verb of reading, and its request holds no statement, session or transaction",
    "key": "by the comment of {0} a second request with it is not executed (AIP-155)",
    "create": "a second one finds that the {0} exists (AIP-133)",
    "delete": "a second one does not find the resource (AIP-135)",
    "update": "it sets the fields of the mask to the values in the request (AIP-134)",
    "etag": "it changes the resource whose version is {0}, which does not fit any more after that (AIP-154)",
    "view": "it changes nothing, by two readers of its comment",
    "set": "a second one sets what is set already, by two readers of its comment",
    "gone": "a second one finds nothing to remove, by two readers of its comment",
}
_NOT_FOUND, _ALREADY_EXISTS, _UNMET = codes.NOT_FOUND, codes.NUMBERS["ALREADY_EXISTS"], codes.FAILED_PRECONDITION
_DONE = {
    "key": (_NOT_FOUND, _ALREADY_EXISTS),
    "create": (_ALREADY_EXISTS,),
    "delete": (_NOT_FOUND,),
    "etag": (codes.ABORTED, _UNMET),
    "set": (_ALREADY_EXISTS, _UNMET),
    "gone": (_NOT_FOUND, _UNMET),
}


class RpcRule(NamedTuple):
    """A rule that allows an RPC if `fields` are set, and none of `unset` is true; `span` in seconds, 0 for unknown."""

    kind: str
    fields: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    span: int = 0

    @property
    def is_read(self) -> bool:
        """True for a rule that calls an RPC a read, whatever its request has."""
        return self.kind in ("get", "read", "view")

    @property
    def condition(self) -> str | None:
        """The field whose value makes a second execution harmless: a key, an id or a version; None without one."""
        if self.kind == "delete":
            return next((name for name in self.fields if name in GUARDS), None)
        return self.fields[-1] if self.kind in ("key", "create", "etag") else None

    @property
    def proof(self) -> str | None:
        """The kind of that value: "key", "absent" for an id that the caller chose, or "version"."""
        return None if self.condition is None else _PROOFS[self.kind]

    @property
    def known_for(self) -> float | None:
        """The seconds for which the server knows the key or the name, at least; None for other rules."""
        return self.span or (_UNKNOWN_SPAN if self.kind == "key" else None)

    @property
    def text(self) -> str:
        """The condition in words."""
        words = [f"{name} of one resource" if self.kind == "delete" else name for name in self.fields[:1]]
        return " and ".join((*words, *self.fields[1:], *(f"no {name}" for name in self.unset)))

    @property
    def why(self) -> str:
        """The reason why it may be executed twice."""
        return _REASONS[self.kind].format(self.condition)

    @property
    def maybe_done(self) -> tuple[int, ...]:
        """The codes that on a later attempt may mean that an earlier one worked."""
        return _DONE.get(self.kind, ())

    def allows(self, message: object) -> bool:
        """Return whether a request may be executed twice, by this rule."""
        if not self.fields and not self.unset:
            return True
        is_met = is_one if self.kind == "delete" else _is_set
        try:
            for name in self.unset:
                if field(message, name):
                    return False
            for name in self.fields:
                if not is_met(field(message, name)):
                    return False
        except Exception:  # attributes of an unknown object may raise anything
            return False
        return True


def is_one(name: object) -> bool:
    """Return whether a name is that of one resource: no segment is empty, a wildcard, `-` or `latest`."""
    return type(name) is str and _NOT_ONE.isdisjoint(name.split("/"))


_NOT_ONE = frozenset({"", "-", "*", "**", "latest"})


def _is_set(value: Any) -> bool:
    """Return whether a text is not empty, or a mask names fields, and not all by `*`; in JSON, a mask is a text."""
    if isinstance(value, str | bytes):
        return len(value) > 0 and (isinstance(value, bytes) or "*" not in value.split(","))
    paths: Any = value.get("paths") if is_mapping(value) else getattr(value, "paths", value)
    return bool(paths) and "*" not in paths


_RULE = re.compile(r"(\w+)(?:=([^!~]*))?(?:!([^~]*))?(?:~(\d+))?")
_GET = (RpcRule("get"),)


@lru_cache(maxsize=1024)
def find(name: str) -> tuple[RpcRule, ...]:
    """Return the rules that allow the RPC "package.Service/Method", () if it is not listed."""
    service, _, method = name.partition("/")
    listed = f" {_services().get(service, '')} "
    start = -1
    while method and (start := listed.find(f" {method}", start + 1)) >= 0:
        end = start + len(method) + 1
        if listed[end] in " :":  # not the beginning of a longer name
            return read(listed[end + 1 : listed.index(" ", end)]) if listed[end] == ":" else _GET
    return ()


def read(text: str) -> tuple[RpcRule, ...]:
    """Return the rules in an entry, each after a colon, () for "never"; ValueError for a text that is no rule."""
    return () if text == "never" else tuple(map(_read_rule, text.split(":")))


def _read_rule(text: str) -> RpcRule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"google.txt: {text!r} is no rule")
    letter, fields, unset, span = match.groups()
    kind = _KINDS.get(letter, letter)
    named = USUAL.get(kind, ()) if fields is None else tuple(fields.split(","))
    return RpcRule(kind, named, tuple(unset.split(",")) if unset else (), 60 * int(span or 0))


def source() -> str:
    """Return the name of the protos that the list was written from, with their commit."""
    return f"googleapis at {_lines()[0].rpartition(' ')[2][:12]}"


@cache
def _services() -> Mapping[str, str]:
    services, packages = dict[str, str](), list[str]()
    for line in _lines()[1:]:
        if line[0] == " ":
            service, _, listed = line[1:].partition(" ")
            services.update((f"{package}.{service}", listed) for package in packages)
        else:
            packages = line.split(" ")
    return services


@cache
def _lines() -> tuple[str, ...]:
    return tuple(FILE.read_text(encoding="utf-8").splitlines())


@cache
def rows() -> Mapping[str, tuple[str, tuple[RpcRule, ...]]]:
    """Return the rows of rows.csv by RPC: the reason with its source, and the rules that allow it, () for "never"."""
    with _ROWS.open(encoding="utf-8", newline="") as file:
        return {row["rpc"]: (f"{row['why']}; {row['source']}", read(row["rules"])) for row in csv.DictReader(file)}


def generalize(name: str) -> str:
    """Return the name of an RPC with `*` in place of the version of its API, as rows have it."""
    return VERSION.sub(".*", name)


VERSION = re.compile(r"\.v\d+[a-z\d]*(?=\.)")


@lru_cache(maxsize=1024)
def has_api(api: str) -> bool:
    """Return whether services of an API are listed, by the word in its host: "pubsub", "cloudtasks", "compute"."""
    packages = (_parts(service)[:-2] for service in _services())
    return api not in OTHERS and any(api in ("".join(words), "".join(words[1:])) for words in packages)


OTHERS = ("admin", "tasks")
"""The hosts of the Admin SDK and of Google Tasks, which have no RPCs; packages of these names have other hosts."""


def has_service(name: str) -> bool:
    """Return whether RPCs of a service, in just this version of its API, are listed."""
    return name in _services()


def _parts(name: str) -> tuple[str, ...]:
    """Return the words of the package and service in a name, and those of the package as one word."""
    parts = [part for part in re.split("[./]", generalize(name)) if part not in ("google", "*")]
    return (*parts, "".join(parts[:-1]))


@lru_cache(maxsize=1024)
def search(path: tuple[str, ...], method: str) -> tuple[str, ...]:
    """Return the full names of the listed RPCs that are called `method`, each in its newest version.

    `path` has parts of their packages and services, such as ("pubsub",), ("cloudtasks",) or ("pubsub", "Publisher").
    """
    found: dict[str, str] = {}
    services = {f"{service}/{method}" for service in _services() if find(f"{service}/{method}")}
    known = {generalize(f"{service}/{method}"): f"{service}/{method}" for service in sorted(_services(), key=_age)}
    rows_of_method = (name for name in rows() if name.endswith(f"/{method}"))
    for name in sorted(services | {known.get(name, name) for name in rows_of_method}, key=_age):
        if set(path) <= set(_parts(name.partition("/")[0])):
            found[generalize(name)] = name
    return tuple(sorted(found.values()))


def _age(name: str) -> tuple[bool, str]:
    """Return a key by which the newest stable version of an RPC comes last."""
    version = VERSION.search(name)
    return version is None or version[0].removeprefix(".v").isdecimal(), name


class Allowed(NamedTuple):
    """The rules that allow an RPC, each with the judgement on the calls that it allows, and that on all others.

    Those of a row count before anything else in a request.
    """

    rules: tuple[tuple[RpcRule, Judgement], ...]
    others: Judgement
    is_row: bool

    def judge(self, message: object) -> Judgement:
        """Return the judgement on a call; the first rule that allows its request counts."""
        for rule, judgement in self.rules:
            if rule.allows(message):
                return judgement
        return self.others


@lru_cache(maxsize=1024)
def find_rules(name: str) -> Allowed | None:
    """Return the rules of an RPC in a row or else in the list; None without any."""
    row = rows().get(name) or rows().get(generalize(name))
    if row is not None:
        return _compile(name, row[1], row[0])
    listed = find(name)
    return _compile(name, listed) if listed else None


def _compile(name: str, listed: tuple[RpcRule, ...], why: str | None = None) -> Allowed:
    """Return the rules of an RPC with their judgements; `why` is the reason in a row, else each rule has its own."""
    is_row = why is not None
    if not listed:
        return Allowed((), forbid(name, why or ""), is_row)
    conditions = tuple(rule.text for rule in listed)
    reasons = [why or f"{rule.why}; {source()}" for rule in listed]
    others = RpcJudgement(NAME, name, Safety.CONDITIONAL, why=reasons[0], conditions=conditions)
    allowed = [
        allow_read(name, reason)
        if rule.is_read
        else allow_write(name, reason, rule.maybe_done)
        if rule.kind in ("set", "gone")
        else others.replace(
            why=reason,
            proof=rule.proof,
            span=rule.known_for,
            met=rule.condition,
            repeatable=True,
            maybe_done=rule.maybe_done,
        )
        for rule, reason in zip(listed, reasons, strict=True)
    ]
    return Allowed(tuple(zip(listed, allowed, strict=True)), others, is_row)
