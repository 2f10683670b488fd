"""The facts about commands of Redis, calls of AWS, RPCs and statements of SQL; `facts.py` says what facts are."""

import re
from functools import lru_cache

from forbear.core.chain import attributes_of, cause_of
from forbear.core.check import is_mapping
from forbear.core.verdict import Kind, Verdict
from forbear.evidence.sent import AwsCall, NamedCall, Sent, Statement, package
from forbear.grpc.call import GrpcCall, field
from forbear.grpc.codes import REFUSED
from forbear.judges.arguments import Arguments
from forbear.judges.databases import database_verdict, is_busy, is_let_through, keeps_connection
from forbear.judges.facts import UNKNOWN_SPAN, VOUCH_FOR_ALL, Facts, is_free, read_condition
from forbear.text.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def redis_facts(sent: Sent, errors: "Sequence[BaseException]", arguments: Arguments) -> Facts:
    """Return the facts about one command, or several that were sent together."""
    from forbear.services.redis.service import CYCLE, NOTHING, classify

    commands, transaction = sent.subject
    if len(commands) > 1:
        from forbear.services.redis.batch import classify_many, classify_transaction

        facts = Facts(sent, f"{sent.method} with {_names(commands)}", VOUCH_FOR_ALL)
        judgements = (classify_transaction(commands),) if transaction else classify_many(commands)
        facts.safe = not sent.watched and all(judgement.repeatable for judgement in judgements)
        facts.claims = any(map(_is_claim, commands))
    else:
        facts = Facts(sent, sent.method)
        watches = sent.method in ("WATCH", "UNWATCH")  # they end with the connection, and the function watches again
        judgement = classify(commands[0], promised=CYCLE if watches else NOTHING)
        facts.safe = not sent.watched and judgement.repeatable
        if facts.safe and not judgement.mutation:
            facts.is_read = True
            return facts
        facts.claims = _is_claim(commands[0])
        _read_refusal(facts, errors[0], scripted=judgement.scripted)
    facts.condition = "version" if sent.watched else None  # the next attempt reads what this one has written
    return facts


def _read_refusal(facts: Facts, error: BaseException, *, scripted: bool) -> None:
    """Note if an error, or one of its causes, says that a command was not executed; a script may have done a part."""
    from forbear.services.redis.errors import response_of, verdict_of_exception

    refusal: BaseException | None = error
    while refusal is not None and not facts.not_sent:
        if package(refusal) in ("redis", "valkey"):
            kind = verdict_of_exception(refusal).kind
            facts.not_sent = kind is Kind.NOT_EXECUTED
            facts.refused = kind is Kind.PERMANENT and not scripted and response_of(refusal) is not None
        refusal = cause_of(refusal)


def _is_claim(words: "tuple[Any, ...]") -> bool:
    from forbear.services.redis.service import CLAIMS

    name = words[0].decode("ascii", "replace") if type(words[0]) is bytes else words[0]
    option = CLAIMS.get(name.upper()) if type(name) is str else None
    if option is None:
        return False
    rest = [word.encode() if type(word) is str else word for word in words[2:50]]
    return not option or any(type(word) is bytes and word.upper() == option for word in rest)


def _names(commands: "tuple[Any, ...]") -> str:
    names = list(dict.fromkeys(str(words[0]) for words in commands if type(words[0]) is str))[:5]
    return ", ".join(redact(name.upper()) for name in names)


def was_read(sent: Sent, reads: "Sequence[Any]") -> bool:
    """Return whether one of the `reads` was of what a write writes: the same resource or a parent of it, the same key.

    A read is the words of a command, a URL in the form of some library, or its `Place`.
    """
    from forbear.http.request import Place, Request

    if sent.protocol == "redis":
        from forbear.services.redis.service import read_commands

        writes = [command for command in sent.subject[0] if command[0] not in read_commands()]
        keys = {_word(command[1]) for command in writes if len(command) > 1}
        commands: list[Any] = [read for read in reads if isinstance(read, tuple)]
        return any(_word(word) in keys for command in commands for word in command[1:])
    if not isinstance(sent.subject, Request):
        return False
    path, origin = f"{sent.subject.target.partition('?')[0].rstrip('/')}/", sent.subject.origin
    places = (read if type(read) is Place else Place.of(str(read)) for read in reads if not isinstance(read, tuple))
    return any(each.folder != "/" and path.startswith(each.folder) and each.origin == origin for each in places)


def _word(word: object) -> object:
    return word.encode("utf-8", "surrogatepass") if type(word) is str else word


def aws_facts(sent: Sent, errors: "Sequence[BaseException]", arguments: Arguments) -> Facts:
    """Return the facts about a call of AWS. Of keys only arguments count: botocore fills in others (K11)."""
    from forbear.services.aws.conditions import value_at
    from forbear.services.aws.errors import aws_verdict, code_of
    from forbear.services.aws.service import classify
    from forbear.services.aws.table import refuses
    from forbear.services.errors import names_of

    call: AwsCall = sent.subject
    parameters = call.parameters
    facts = Facts(sent, call.operation)
    parsed: Any = attributes_of(errors[0]).get("response")
    status: object = None
    if is_mapping(parsed):
        service_name, _, operation = call.operation.partition(".")
        facts.not_sent = refuses(service_name, operation, code_of(parsed))
        facts.refused = not aws_verdict(errors[0], names_of(errors[0]))
        metadata: Any = parsed.get("ResponseMetadata")
        status = metadata.get("HTTPStatusCode") if is_mapping(metadata) else None
    judgement = classify(call.model, parameters)
    value = value_at(parameters, (judgement.met or "").partition(" and ")[0])
    expression: object = parameters.get("ConditionExpression")
    version: object = parameters.get("Expected", parameters.get("IfMatch", expression))
    facts.billed = judgement.may_cost(status)
    if not judgement.repeatable:
        return facts
    if parameters.get("IfNoneMatch") == "*" or (type(expression) is str and _ABSENT.fullmatch(expression)):
        facts.condition = "absent"
        facts.drawn = arguments.lack_drawn(str(parameters.get("Key", parameters.get("Item"))))
    elif version is not None and judgement.mutation:
        facts.condition = "version"  # the values that it compares are in other parameters
    elif type(value) is str:
        facts.condition, facts.kept = "key", arguments.keep(value)
        facts.span = UNKNOWN_SPAN if judgement.span is None else 0.9 * judgement.span
    else:
        facts.safe, facts.is_read = True, is_free(judgement)
    return facts


_ABSENT = re.compile(r"\s*attribute_not_exists\s*\(\s*[#\w.]+\s*\)\s*", re.IGNORECASE)


def grpc_facts(sent: Sent, errors: "Sequence[BaseException]", arguments: Arguments) -> Facts:
    """Return the facts about an RPC."""
    from forbear.services.registry import find_rpc
    from forbear.services.rpcs import RpcJudgement, last_begin
    from forbear.services.rpcs.rules import judge

    call: GrpcCall = sent.subject
    facts = Facts(sent, call.name)
    judgement = judge(call, find_rpc(call.name))
    if is_free(judgement):
        facts.is_read = True
        return facts
    value = None if judgement.met is None or " " in judgement.met else field(call.message, judgement.met)
    if isinstance(judgement, RpcJudgement) and judgement.proof is not None:
        facts.condition, facts.kept = judgement.proof, arguments.keep(value)
        facts.span = last_begin(judgement) or UNKNOWN_SPAN
    elif judgement.repeatable:
        read_condition(facts, judgement, value, arguments)
    if facts.condition == "absent":
        facts.drawn = arguments.lack_drawn(str(call.message))
    facts.refused = is_refused(errors[0])
    return facts


def is_refused(error: BaseException) -> bool:
    """Return whether the code of an RPC, in the error or its causes, says that the call is wrong."""
    from forbear.services.errors import code_of

    link: BaseException | None = error
    for _ in range(20):
        if link is None:
            return False
        code = code_of(link)
        if code is not None:
            return code in REFUSED
        link = cause_of(link)
    return False


_READ = re.compile(
    r"\s*(?:--[^\n]*\n\s*)*(SELECT|SHOW|EXPLAIN|VALUES|TABLE|DESCRIBE|DESC)\b|\s*PRAGMA\s+\w+\s*;?\s*$", re.IGNORECASE
)
_WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE|INTO|CALL|DO|SETVAL|NEXTVAL|LOCK|ANALYZE)\b", re.IGNORECASE)
_CALLS = re.compile(r"\b([a-z_][\w.]*)\s*\(", re.IGNORECASE)
_PURE_WORDS = """
abs all and any array array_agg as avg bool_and bool_or cast ceil char_length coalesce concat count cume_dist
current_timestamp date date_part date_trunc dense_rank distinct exists extract filter first_value floor from
greatest group_concat if ifnull in int json_agg json_build_object jsonb_agg lag last_value lead least left
length like limit lower ltrim max min mod not now nullif numeric on or order over partition position rank
replace right round row_number rtrim select strftime string_agg substr substring sum then to_char trim union
upper using values varchar when where with
"""
_PURE = frozenset(_PURE_WORDS.split())
"""Words before a parenthesis that call nothing, or only what changes nothing."""


@lru_cache(maxsize=256)
def _is_read(text: str) -> bool:
    """Return whether a statement only reads: it begins so, and calls no function that may do anything."""
    return (
        _READ.match(text) is not None
        and ";" not in text.rstrip("; \n")
        and _WRITES.search(text) is None
        and all(name.lower() in _PURE for name in _CALLS.findall(text))
    )


_LISTED = (
    "ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT CLOSE CLUSTER COMMENT COMMIT COPY CREATE DEALLOCATE "
    "DECLARE DELETE DISCARD DO DROP END EXEC EXECUTE EXPLAIN FETCH GRANT IMPORT INSERT LISTEN LOAD LOCK "
    "MERGE MOVE NOTIFY OPTIMIZE PRAGMA PREPARE REFRESH REINDEX RELEASE RENAME REPLACE RESET REVOKE "
    "ROLLBACK SAVEPOINT SELECT SET SHOW START TRUNCATE UNLISTEN UPDATE UPSERT USE VACUUM VALUES WITH"
)
STATEMENTS = frozenset(_LISTED.split())
"""The first words of statements of SQL, by which a user may vouch for them."""


def check_name(name: str) -> None:
    """Raise ValueError for a name in `safe` that is nearly one of Redis, or that a loaded definition does not have.

    Those are the definitions of RPCs, and the models of botocore.
    """
    if "/" in name:
        from forbear.grpc.vouch import rpc_patterns

        rpc_patterns(name)
    elif "." in name:
        from forbear.services.aws.vouch import check_loaded

        check_loaded(name)
    elif name.upper() not in STATEMENTS:
        from forbear.services.redis.vouch import safe_commands

        safe_commands(name)


def sql_facts(sent: Sent, errors: "Sequence[BaseException]", arguments: Arguments) -> Facts:
    """Return the facts about a statement.

    A repeat makes up for a transaction that was rolled back only if the function began it. What proves that is what
    the function leaves behind when it has failed, after all its `with` and `finally`:

    - a transaction that is still open began outside, or the repeat would go on with it;
    - one that was ended is the function's own, unless its session or connection is reached from outside.

    After most errors of MySQL and SQLite the transaction goes on. So if the function caught such an error, it may have
    committed what came before.
    """
    statement: Statement = sent.subject
    facts = Facts(sent, f"the statement {sent.method or 'of a transaction'}", _WHOLE_TRANSACTION)
    state = _database_verdict(errors)
    ended = state is not None and state.kind is Kind.NOT_EXECUTED
    proven = ended or is_busy(errors)
    goes_on = any(map(keeps_connection, errors))
    single = statement.autocommit is not False
    facts.safe = _is_read(statement.text)
    is_commit = sent.method == "COMMIT"
    if statement.unchanged:
        facts.rolled_back = True
    elif is_commit and not proven:
        facts.commits = True
    elif statement.still_open and (goes_on or not facts.safe):
        facts.still_open = True
    elif proven and single and not is_commit:
        facts.commits_alone = True
    elif (single and not proven) or (goes_on and not ended and not is_let_through(errors)):
        facts.commits = not facts.safe
    else:
        facts.rolled_back = not arguments.reach_object(statement.connection, errors)
        facts.safe = facts.safe and (facts.rolled_back or not ended)
    return facts


def find_facts_by_name(sent: Sent, errors: "Sequence[BaseException]", arguments: Arguments) -> Facts:
    """Return the facts about a call that is known by its name only."""
    call: NamedCall = sent.subject
    facts = Facts(sent, call.name)
    facts.safe = call.parameters.get("safe") is True
    state = _database_verdict(errors)
    session: int | None = call.parameters.get("session")
    if state is not None and state.kind is Kind.NOT_EXECUTED:  # by pymongo's labels, which are about one command
        facts.still_open = call.parameters.get("open") is True
        if session is not None:
            facts.rolled_back = not facts.still_open and not arguments.reach_object((session,), errors)
        elif not call.parameters.get("several"):
            facts.rolled_back = True
    return facts


_WHOLE_TRANSACTION = "decorate the function that begins the transaction, or say so: repeatable=True"


def _database_verdict(errors: "Sequence[BaseException]") -> Verdict | None:
    """Return the verdict on the first error of a database, None without one."""
    from forbear.services.errors import names_of

    verdicts = (database_verdict(each, names_of(each), errors) for each in errors)
    return next((verdict for verdict in verdicts if verdict), None)


BY_PROTOCOL = {
    "redis": redis_facts,
    "aws": aws_facts,
    "grpc": grpc_facts,
    "sql": sql_facts,
    "named": find_facts_by_name,
}
"""The functions that find the facts, by the protocol of a request."""
