"""The files of corrections and refusals, beside the models of the installed botocore."""

from fnmatch import fnmatchcase

import pytest

from forbear.services.aws import table
from forbear.services.aws.conditions import parse
from forbear.services.aws.service import RECOMMENDED, traits_of
from forbear_testkit.services.aws import operation, service_model

ROWS = [row for exact, patterns in table.rows().values() for row in (*exact.values(), *patterns)]


def test_every_row_matches_an_operation() -> None:
    """No row is about operations that the model does not have."""
    for row in ROWS:
        names = service_model(row.service).operation_names
        assert row.pattern in names or any(fnmatchcase(name, row.pattern) for name in names), row


def test_conditions_name_members() -> None:
    """The parameters in the conditions of a row are members of its operation's input."""
    for row in ROWS:
        if row.is_exact and row.conditions:
            members = service_model(row.service).operation_model(row.pattern).input_shape.members
            for each in row.conditions:
                for term in each.text.split(" and "):
                    name = term.removeprefix("no ").partition("=")[0].partition(".")[0]
                    assert name in members or " " in name or name == "systemTool", (row, term)


def test_precedence() -> None:
    """A whole name beats a pattern, and a longer pattern a shorter one."""
    assert (row := table.find("ec2", "ModifyReservedInstances")) is not None
    assert row.is_exact
    assert (row := table.find("sagemaker", "CreateAppImageConfig")) is not None
    assert row.pattern == "CreateApp*"
    assert table.find("sqs", "NoSuchOperation") is None
    assert table.find("nosuchservice", "GetIt") is None
    assert table.find_for_all("sqs") is None


@pytest.mark.parametrize("text", ["nosuchterm:Name", "rule:nosuchrule"])
def test_terms_that_are_none(text: str) -> None:
    """A typing error in the table is found when it is loaded."""
    with pytest.raises(KeyError):
        parse(text)


@pytest.mark.parametrize(
    ("service", "name", "code", "refused"),
    [
        ("dynamodb", "UpdateItem", "ProvisionedThroughputExceededException", True),
        ("dynamodb", "UpdateItem", "InternalServerError", False),
        ("dynamodb", "BatchWriteItem", "ThrottlingException", False),  # N6: a part may have been written
        ("dynamodb", "CreateTable", "ThrottlingException", False),
        ("lambda", "Invoke", "TooManyRequestsException", True),
        ("kms", "CreateKey", "ThrottlingException", True),
        ("sqs", "SendMessage", "RequestThrottled", True),
        ("sqs", "SendMessageBatch", "RequestThrottled", False),
        ("ecs", "RunTask", "ThrottlingException", False),
        ("cloudformation", "UpdateStack", "Throttling", False),
        ("ec2", "RunInstances", "RequestLimitExceeded", False),
        ("ssm", "GetParameters", "ThrottlingException", True),
    ],
)
def test_refusals(service: str, name: str, code: str, *, refused: bool) -> None:
    """A code proves that nothing was executed only for the operations of its row."""
    assert table.refuses(service, name, code) is refused


def test_the_table_of_the_service() -> None:
    """Every correction is an entry with a source and a note, as for the other services."""
    entries = RECOMMENDED.tables()["aws"]
    assert len(entries) == len(ROWS)
    assert all(entry.source and entry.columns["note"] for entry in entries)
    assert next(entry for entry in entries if entry.id == "sqs.SendMessage").columns["span"] == "300"


def test_no_pattern_covers_reads() -> None:
    """A row for writes covers no operation whose name begins with a verb of reading."""
    for row in ROWS:
        if not row.is_exact and row.pattern != "*" and not row.is_read:
            names = [name for name in service_model(row.service).operation_names if fnmatchcase(name, row.pattern)]
            assert not any(traits_of(operation(row.service, name)).looks for name in names), row
