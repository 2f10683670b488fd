"""The verdict on each error response, by its raw text and by the exception that the client libraries make of it."""

from typing import Any

import pytest
import redis._parsers.base as redis_parsers
import valkey._parsers.base as valkey_parsers

from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.services.redis import needs_reconnect, response_of, verdict_of_exception, verdict_of_response

_AT_ONCE = Verdict(Kind.NOT_EXECUTED, delay=0)
_CROWDED = Verdict(Kind.NOT_EXECUTED, throttled=True)

ERROR_RESPONSES = {
    "ASK 3999 127.0.0.1:6381": _AT_ONCE,
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.": NOT_EXECUTED,
    "BUSYGROUP Consumer Group name already exists": PERMANENT,
    "BUSYKEY Target key name already exists.": PERMANENT,
    "CLUSTERDOWN Hash slot not served": NOT_EXECUTED,
    "CLUSTERDOWN The cluster is down": NOT_EXECUTED,
    "CROSSSLOT Keys in request don't hash to the same slot": PERMANENT,
    "DENIED Running in protected mode": PERMANENT,
    "ERR max number of clients reached": _CROWDED,
    "ERR max number of clients + cluster connections reached": _CROWDED,
    "ERR unknown command 'FOO', with args beginning with: ": PERMANENT,
    "ERR LOADING is no code here": PERMANENT,
    "EXECABORT Transaction discarded because of previous errors.": PERMANENT,
    "EXECABORT Transaction discarded because of: LOADING the dataset is being loaded": NOT_EXECUTED,
    "EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.": PERMANENT,
    "INPROG Failover already in progress": PERMANENT,
    "IOERR error or timeout writing to target instance": TRANSIENT,
    "LOADING Redis is loading the dataset in memory": NOT_EXECUTED,
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.": NOT_EXECUTED,
    "MISCONF Errors writing to the AOF file: No space left on device": PERMANENT,
    "MOVED 3999 127.0.0.1:6381": _AT_ONCE,
    "NOAUTH Authentication required.": PERMANENT,
    "NOGROUP No such consumer group 'g' for key name 'x'": PERMANENT,
    "NOPERM User app has no permissions to run the 'get' command": PERMANENT,
    "NOPROTO unsupported protocol version": PERMANENT,
    "NOREPLICAS Not enough good replicas to write.": NOT_EXECUTED,
    "NOSCRIPT No matching script.": NOT_EXECUTED,
    "NOTBUSY No scripts in execution right now.": PERMANENT,
    "OOM command not allowed when used memory > 'maxmemory'.": PERMANENT,
    "READONLY You can't write against a read only replica.": NOT_EXECUTED,
    "REDIRECT 127.0.0.1:6381": _AT_ONCE,
    "TRYAGAIN Multiple keys request during rehashing of slot": NOT_EXECUTED,
    "UNBLOCKED client unblocked via CLIENT UNBLOCK": PERMANENT,
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)": NOT_EXECUTED,
    "UNHEARD of": PERMANENT,
    "UNKILLABLE Sorry the script already executed write commands": PERMANENT,
    "WRONGPASS invalid username-password pair or user is disabled.": PERMANENT,
    "WRONGTYPE Operation against a key holding the wrong kind of value": PERMANENT,
    "LOADING": NOT_EXECUTED,
    "LOADINGS are no code": PERMANENT,
    "loading is no code": PERMANENT,
    "": PERMANENT,
}
_RECONNECT = ("READONLY", "UNBLOCKED force")

parsers = pytest.mark.parametrize(
    "parser", [redis_parsers.BaseParser, valkey_parsers.BaseParser], ids=["redis", "valkey"]
)


@pytest.mark.parametrize(("text", "verdict"), ERROR_RESPONSES.items(), ids=repr)
def test_what_a_response_means(text: str, verdict: Verdict) -> None:
    """By its code, with or without the dash of the protocol."""
    assert verdict_of_response(text) == verdict
    assert verdict_of_response(f"-{text}") == verdict
    assert needs_reconnect(text) is text.startswith(_RECONNECT)
    assert needs_reconnect(f"-{text}") is text.startswith(_RECONNECT)


@parsers
@pytest.mark.parametrize(("text", "verdict"), ERROR_RESPONSES.items(), ids=repr)
def test_what_its_exception_means(parser: Any, text: str, verdict: Verdict) -> None:
    """The libraries cut off the code and say it by a class; the verdict is the same."""
    if parser is valkey_parsers.BaseParser:
        text = text.replace("ERR LOADING", "ERR loading")  # it cuts off ERR without a trace
    assert verdict_of_exception(parser.parse_error(text)) == verdict


@parsers
@pytest.mark.parametrize("text", ERROR_RESPONSES, ids=repr)
def test_in_a_pipeline_it_says_nothing_of_the_others(parser: Any, text: str) -> None:
    """One command was not executed, others of the pipeline may have been."""
    error = parser.parse_error(text)
    alone = verdict_of_exception(error)
    error.args = (f"Command # 2 (SET pipeline caused error: x) of pipeline caused error: {error.args[0]}",)
    expected = TRANSIENT if alone.kind is Kind.NOT_EXECUTED else alone
    assert verdict_of_exception(error) == expected


@parsers
def test_the_response_of_an_exception_has_its_code_again(parser: Any) -> None:
    """So that an adapter can ask whether to reconnect."""
    for text in (
        "READONLY You can't write",
        "WRONGTYPE Operation",
        "TRYAGAIN Multiple keys",
        "OOM command not allowed",
    ):
        error = parser.parse_error(text)
        assert response_of(error) == text
        assert needs_reconnect(response_of(error) or "") is text.startswith("READONLY")
        error.args = (f"Command # 1 (X) of pipeline caused error: {error.args[0]}",)
        assert response_of(error) == text
    assert response_of(ValueError("READONLY")) is None
    assert response_of(parser.parse_error("NOAUTH Authentication required.")) is None


def test_a_transaction_aborted_on_a_replica_needs_a_reconnect() -> None:
    """The cause counts, not that it was a transaction."""
    text = "EXECABORT Transaction discarded because of: READONLY You can't write against a read only replica."
    assert verdict_of_response(text) == NOT_EXECUTED
    assert needs_reconnect(text)
