"""The verdicts of `forbear.transient`: a row for each kind, with an error as the real library makes it."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear_testkit.lazily import Library

asyncpg: Any = Library("asyncpg")
psycopg: Any = Library("psycopg")
mongo: Any = Library("pymongo.errors")
mysql: Any = Library("pymysql.err")
alchemy: Any = Library("sqlalchemy.exc")
botocore: Any = Library("botocore.exceptions")
kafka: Any = Library("confluent_kafka")

Maker = Callable[[], Exception]

THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)
EXHAUSTED = Verdict(Kind.TRANSIENT, exhausted=True)
CROWDED = Verdict(Kind.NOT_EXECUTED, throttled=True)


class Row(NamedTuple):
    """One error. `kind` is the row of the documentation that describes it, `name` what tells it from others there.

    `around` is the verdict around a function, `within` the one around a transaction (None: the same).
    """

    kind: str
    name: str
    make: Maker
    around: Verdict
    within: Verdict | None = None

    @property
    def in_transaction(self) -> Verdict:
        return self.around if self.within is None else self.within


def _asyncpg(state: str, query: str | None = None) -> Maker:
    """As asyncpg makes it from the fields of the server's message."""

    def make() -> Exception:
        error: Exception = asyncpg.PostgresError.new({"C": state, "M": "x", "S": "ERROR"}, query=query)
        return error

    return make


def _sqlalchemy(driver: Maker, statement: str = "UPDATE t SET n = 1") -> Maker:
    """As SQLAlchemy wraps the error of a driver."""

    def make() -> Exception:
        error = driver()
        try:
            wrapped: Any = alchemy.DBAPIError.instance(statement, None, error, Exception)
            raise wrapped from error
        except Exception as raised:
            return raised

    return make


def _by_state(kind: str, states: Iterable[str], around: Verdict, within: Verdict | None = None) -> list[Row]:
    """The same SQLSTATE from three libraries."""
    rows = list[Row]()
    for state in states:
        driver: Maker = _psycopg(state)
        rows += [
            Row(kind, f"psycopg {state}", driver, around, within),
            Row(kind, f"asyncpg {state}", _asyncpg(state), around, within),
            Row(kind, f"sqlalchemy {state}", _sqlalchemy(driver), around, within),
        ]
    return rows


def _psycopg(state: str) -> Maker:
    return lambda: psycopg.errors.lookup(state)("x")


STATES = [
    *_by_state("SQLSTATE 40001, 40P01, 55P03, 57P03", ["40001", "40P01", "55P03", "57P03"], TRANSIENT, NOT_EXECUTED),
    *_by_state("SQLSTATE 08001, 08004", ["08001", "08004"], TRANSIENT, NOT_EXECUTED),
    *_by_state("SQLSTATE 53300", ["53300"], THROTTLED, CROWDED),
    *_by_state("SQLSTATE 40003, 57P01, 57P02", ["40003", "57P01", "57P02"], TRANSIENT),
    *_by_state("SQLSTATE 08000, 08003, 08006, 08007, 08P01", ["08000", "08003", "08006", "08007", "08P01"], TRANSIENT),
    *_by_state(
        "every other SQLSTATE",
        ["40002", "57P04", "57014", "25P02", "25006", "40000", "53200", "57P05", "23505", "42601"],
        PERMANENT,
    ),
]

POSTGRESQL = [
    Row("40001 from CALL", "asyncpg", _asyncpg("40001", "CALL move(1)"), TRANSIENT),
    Row("40001 from CALL", "DO", _asyncpg("40001", " do $$ BEGIN COMMIT; END $$"), TRANSIENT),
    Row("40001 from CALL", "a comment", _asyncpg("40001", "-- move\nDO $$ BEGIN COMMIT; END $$"), TRANSIENT),
    Row("40001 from CALL", "a long statement", _asyncpg("40001", "SELECT 1;" * 2000 + "CALL move(1)"), TRANSIENT),
    Row("40001 from CALL", "sqlalchemy", _sqlalchemy(_psycopg("40001"), "call move(1)"), TRANSIENT),
    Row(
        "SQLSTATE 40001, 40P01, 55P03, 57P03",
        "an upsert is no block",
        _asyncpg("40001", "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING"),
        TRANSIENT,
        NOT_EXECUTED,
    ),
    Row("psycopg: no connection", "timeout", lambda: psycopg.errors.ConnectionTimeout("x"), TRANSIENT, NOT_EXECUTED),
    Row("psycopg: a lost connection", "lost", lambda: psycopg.OperationalError("server closed it"), TRANSIENT),
    Row(
        "psycopg: a lost connection", "closed", lambda: psycopg.OperationalError("the connection is closed"), TRANSIENT
    ),
    Row(
        "psycopg: refused for good",
        "password",
        lambda: psycopg.OperationalError('connection failed: FATAL:  password authentication failed for user "a"'),
        PERMANENT,
    ),
    Row(
        "psycopg: refused for good",
        "database",
        lambda: psycopg.OperationalError('connection failed: FATAL:  database "a" does not exist'),
        PERMANENT,
    ),
    Row("asyncpg: a closed connection", "asyncpg", lambda: _closed("connection is closed"), TRANSIENT),
    Row("misuse of a driver", "asyncpg", lambda: _closed("cannot perform operation"), PERMANENT),
    Row("misuse of a driver", "psycopg", lambda: psycopg.ProgrammingError("x"), PERMANENT),
    Row("misuse of a driver", "sqlalchemy", lambda: alchemy.ArgumentError("x"), PERMANENT),
    Row("SQLAlchemy: no free connection", "pool", lambda: alchemy.TimeoutError("x"), TRANSIENT, NOT_EXECUTED),
]


def _closed(text: str) -> Exception:
    error: Exception = asyncpg.InterfaceError(text)
    return error


def _mysql(number: int) -> Maker:
    return lambda: mysql.OperationalError(number, "x")


MYSQL = [
    *(Row("MySQL 1213, 3101", str(number), _mysql(number), TRANSIENT, NOT_EXECUTED) for number in (1213, 3101)),
    *(
        Row("MySQL 2002, 2003, 2005", str(number), _mysql(number), TRANSIENT, NOT_EXECUTED)
        for number in (2002, 2003, 2005)
    ),
    *(Row("MySQL 1040, 1203", str(number), _mysql(number), THROTTLED, CROWDED) for number in (1040, 1203)),
    *(
        Row("MySQL 1205, 3572, 1053, 1927, 2006, 2013, 2055, 4031", str(number), _mysql(number), TRANSIENT)
        for number in (1205, 3572, 1053, 1927, 2006, 2013, 2055, 4031)
    ),
    *(Row("every other number of MySQL", str(number), _mysql(number), PERMANENT) for number in (1062, 1317, 1792, 0)),
    Row("every other number of MySQL", "text", lambda: mysql.OperationalError("no number"), PERMANENT),
    Row("MySQL 1213, 3101", "sqlalchemy", _sqlalchemy(_mysql(1213)), TRANSIENT, NOT_EXECUTED),
]


def _labelled(*labels: str, code: int = 0) -> Maker:
    return lambda: mongo.OperationFailure("x", code, {"errorLabels": list(labels)})


MONGODB = [
    Row(
        "MongoDB `TransientTransactionError`, `NoWritesPerformed`",
        "whole",
        _labelled("TransientTransactionError"),
        TRANSIENT,
        NOT_EXECUTED,
    ),
    Row(
        "MongoDB `TransientTransactionError`, `NoWritesPerformed`",
        "nothing written",
        _labelled("NoWritesPerformed", "RetryableWriteError"),
        TRANSIENT,
        NOT_EXECUTED,
    ),
    Row("MongoDB `UnknownTransactionCommitResult`", "commit", _labelled("UnknownTransactionCommitResult"), TRANSIENT),
    Row(
        "MongoDB `UnknownTransactionCommitResult`",
        "with another label",
        _labelled("UnknownTransactionCommitResult", "TransientTransactionError"),
        TRANSIENT,
    ),
    Row("MongoDB, a failover or a lost connection", "label", _labelled("RetryableWriteError"), TRANSIENT),
    Row("MongoDB, a failover or a lost connection", "code", _labelled(code=189), TRANSIENT),
    Row("MongoDB, a failover or a lost connection", "lost", lambda: mongo.AutoReconnect("x"), TRANSIENT),
    Row("MongoDB, a failover or a lost connection", "primary", lambda: mongo.NotPrimaryError("x"), TRANSIENT),
    Row("MongoDB, overloaded", "pool", _labelled("SystemOverloadedError", "RetryableError"), THROTTLED),
    Row("every other error of MongoDB", "time", lambda: mongo.ExecutionTimeout("x", 50), PERMANENT),
    Row("every other error of MongoDB", "twice", lambda: mongo.DuplicateKeyError("x", 11000), PERMANENT),
    Row("every other error of MongoDB", "status", lambda: mongo.OperationFailure("x", 503), PERMANENT),
]


def aws(code: str, status: int = 400, **details: Any) -> Exception:
    """As botocore makes it from a response."""
    metadata = {"HTTPStatusCode": status, "RetryAttempts": 0, "HTTPHeaders": {}} | details.pop("metadata", {})
    response: Any = {"Error": {"Code": code, "Message": "x"}, "ResponseMetadata": metadata} | details
    error: Exception = botocore.ClientError(response, "Operation")
    return error


def _cancelled(*codes: str) -> Maker:
    return lambda: aws("TransactionCanceledException", CancellationReasons=[{"Code": code} for code in codes])


SPENT = {"MaxAttemptsReached": True, "RetryAttempts": 4}
AWS = [
    *(
        Row("AWS, a throttled request", code, partial(aws, code), THROTTLED)
        for code in (
            "ThrottlingException",
            "SlowDown",
            "ProvisionedThroughputExceededException",
            "RequestLimitExceeded",
        )
    ),
    Row("AWS, a throttled request", "429", lambda: aws("Whatever", 429), THROTTLED),
    *(
        Row("AWS 500, 502, 503, 504, `RequestTimeout`", f"{status}", partial(aws, "x", status), TRANSIENT)
        for status in (500, 502, 503, 504)
    ),
    Row("AWS 500, 502, 503, 504, `RequestTimeout`", "code", lambda: aws("RequestTimeout"), TRANSIENT),
    Row(
        "AWS, throttled, attempts of botocore used up",
        "throttled",
        lambda: aws("SlowDown", 503, metadata=SPENT),
        THROTTLED.replace(exhausted=True),
    ),
    Row("AWS, attempts of botocore used up", "500", lambda: aws("x", 500, metadata=SPENT), EXHAUSTED),
    Row(
        "AWS, attempts of botocore used up",
        "quota",
        lambda: aws("x", 500, metadata={"RetryQuotaReached": True, "RetryAttempts": 1}),
        EXHAUSTED,
    ),
    Row(
        "AWS 500, 502, 503, 504, `RequestTimeout`",
        "retries of botocore turned off",
        lambda: aws("x", 500, metadata={"MaxAttemptsReached": True}),
        TRANSIENT,
    ),
    Row("DynamoDB, cancelled by others", "conflict", _cancelled("None", "TransactionConflict"), TRANSIENT),
    Row("DynamoDB, cancelled by others", "alone", lambda: aws("TransactionConflictException"), TRANSIENT),
    *(
        Row("every other error of AWS", code, partial(aws, code, metadata=SPENT), PERMANENT)
        for code in ("AccessDenied", "ExpiredToken", "NoSuchKey", "ValidationException")
    ),
    Row(
        "every other error of AWS", "condition", _cancelled("TransactionConflict", "ConditionalCheckFailed"), PERMANENT
    ),
    Row("every other error of AWS", "no reasons", _cancelled(), PERMANENT),
    Row("every other error of AWS", "shape", lambda: botocore.ClientError({}, "Operation"), PERMANENT),
]


def _kafka(code: int, *, fatal: bool = False, retriable: bool = False) -> Maker:
    return lambda: kafka.KafkaException(kafka.KafkaError(code, "x", fatal, retriable))


KAFKA = [
    Row("Kafka, a retriable error", "flag", _kafka(-150, retriable=True), TRANSIENT),
    Row("Kafka, a retriable error", "transport", _kafka(-195), TRANSIENT),
    Row("Kafka, a retriable error", "timed out", _kafka(7), TRANSIENT),
    Row("Kafka, a message that timed out", "timed out", _kafka(-192), EXHAUSTED),
    Row("every other error of Kafka", "fatal", _kafka(-150, fatal=True, retriable=True), PERMANENT),
    Row("every other error of Kafka", "size", _kafka(10), PERMANENT),
    Row("every other error of Kafka", "no details", lambda: kafka.KafkaException("x"), PERMANENT),
]

DATABASES = [*STATES, *POSTGRESQL, *MYSQL, *MONGODB]
CLOUDS = [*AWS, *KAFKA]
__all__ = ["CLOUDS", "CONFLICT", "DATABASES", "Row", "aws"]
