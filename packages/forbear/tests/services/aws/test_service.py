"""Judgements by traits, tokens, verbs and texts of the models, where no row speaks."""

from types import SimpleNamespace
from typing import Any

import pytest

from forbear.core.verdict import Safety
from forbear.services.aws.service import classify
from forbear_testkit.services.aws import made_up, operation

TEXT = {"shape": "Text"}
TOKEN = {"shape": "Text", "idempotencyToken": True}


def test_readonly() -> None:
    """An operation with the trait `readonly` is a read, whatever its name."""
    judgement = classify(made_up("Peek", readonly=True, documentation="<p>Returns it.</p>"), {})
    assert judgement.repeatable
    assert not judgement.mutation
    assert not judgement.is_maybe_done(404, "NotFoundException")


def test_readonly_that_lies() -> None:
    """The trait on an operation whose text begins with an action counts for nothing (StartQueryWorkload…)."""
    assert not classify(made_up("StartIt", readonly=True, documentation="<p>Creates a query.</p>"), {}).repeatable
    liar = operation("networkflowmonitor", "StartQueryWorkloadInsightsTopContributors")
    assert not classify(liar, {}).repeatable


@pytest.mark.parametrize(
    ("name", "documentation", "reads"),
    [
        ("GetThing", "Returns a thing.", True),
        ("GetThing", "", True),  # somebody has stripped the texts
        ("GetThing", "Sends a code to the thing.", False),
        ("GetThing", "<p>Given a name, <b>sends</b> a code.</p>", False),
        ("GetThing", "This operation returns the thing that it creates.", True),
        ("ListThings", "Lists what was created. Creates nothing.", True),
        ("DescribeThing", "The thing. It starts something.", True),
        ("Getaway", "Returns.", False),
        ("Listen", "Returns.", False),
        ("PollForThing", "Returns.", False),
    ],
)
def test_verbs_of_reading(name: str, documentation: str, *, reads: bool) -> None:
    """A verb of reading counts unless the text begins with an action (counterexample N4)."""
    judgement = classify(made_up(name, documentation=documentation), {})
    assert (judgement.repeatable, judgement.mutation) == (reads, not reads)
    # The judgement of a name is kept, so each case needs a service of its own.


@pytest.mark.parametrize(
    ("service", "name"),
    [
        ("cognito-idp", "GetUserAttributeVerificationCode"),
        ("sagemaker", "GetScalingConfigurationRecommendation"),
        ("cognito-identity", "GetId"),
        ("quicksight", "DescribeTopicRefreshSchedule"),  # its text says that it deletes: in doubt never
        ("importexport", "GetShippingLabel"),
        ("stepfunctions", "StartExecution"),
        ("cloudtrail", "StartQuery"),
        ("repostspace", "SendInvites"),
        ("bedrock-agent-runtime", "CreateSession"),
        ("neptunedata", "ExecuteFastReset"),
        ("rekognition", "StartFaceDetection"),
        ("acm-pca", "IssueCertificate"),
    ],
)
def test_models_that_lie(service: str, name: str) -> None:
    """A verb or a trait that does not hold without a key does not make a call repeatable."""
    assert not classify(operation(service, name), {}).repeatable


def test_a_key_that_the_caller_may_leave_out() -> None:
    """The trait `idempotent` holds only with the key, where there is one that botocore does not fill."""
    issue = operation("acm-pca", "IssueCertificate")
    judgement = classify(issue, {"IdempotencyToken": "certificate-17"})
    assert judgement.repeatable
    assert judgement.span == 300
    assert "IdempotencyToken" in classify(issue, {}).conditions
    assert not classify(issue, {"IdempotencyToken": ""}).repeatable
    assert not classify(issue, {"IdempotencyToken": None}).repeatable


def test_a_token_that_botocore_fills() -> None:
    """A member with the trait `idempotencyToken` is the condition, and counts when it is there."""
    model = made_up("MakeThing", members={"token": TOKEN, "name": TEXT})
    assert classify(model, {"token": "0f8fad5b"}).met == "token"
    unmet = classify(model, {"name": "x"})
    assert (unmet.repeatable, unmet.safety) == (False, Safety.CONDITIONAL)


@pytest.mark.parametrize(
    ("name", "required", "repeatable"),
    [
        ("CreateThing", ["name"], True),
        ("CreateThing", ["ThingName"], True),
        ("StartThing", ["thingId"], True),
        ("CreateThing", ["ParentName"], False),
        ("CreateThing", [], False),
        ("SendThing", ["body"], False),
        ("SetThing", [], True),
        ("Startle", [], True),
    ],
)
def test_idempotent(name: str, required: list[str], *, repeatable: bool) -> None:
    """The trait `idempotent` counts for what creates only with a required name for it."""
    model = made_up(name, idempotent=True, required=required, members=dict.fromkeys(required, TEXT))
    assert classify(model, {}).repeatable is repeatable


def test_versions() -> None:
    """A version to change, in a member IfMatch, makes a write repeatable; `*` is none."""
    model = made_up("ChangeThing", members={"IfMatch": TEXT})
    assert classify(model, {"IfMatch": "E1"}).repeatable
    assert not classify(model, {"IfMatch": "*"}).repeatable
    assert not classify(model, {}).repeatable


def test_nothing_is_known() -> None:
    """An operation without trait, verb or row is never repeated."""
    judgement = classify(made_up("DoThing", documentation="Does it."), {})
    assert (judgement.safety, judgement.repeatable, judgement.mutation) == (Safety.NEVER, False, True)


@pytest.mark.parametrize(
    ("service", "name", "parameters", "span"),
    [
        ("dynamodb", "TransactWriteItems", {"ClientRequestToken": "t"}, 600),
        ("sqs", "SendMessage", {"QueueUrl": "https://q/1/q.fifo", "MessageDeduplicationId": "d"}, 300),
        ("ec2", "RunInstances", {"ClientToken": "t"}, 300),
        ("redshift-data", "ExecuteStatement", {"ClientToken": "t"}, 28_800),
        ("route53", "CreateHostedZone", {"CallerReference": "r"}, None),
        ("secretsmanager", "CreateSecret", {"ClientRequestToken": "t"}, None),
        ("ec2", "RebootInstances", {"DryRun": True}, None),
        ("sqs", "SendMessageBatch", {"QueueUrl": "q.fifo", "Entries": [{"MessageDeduplicationId": "d"}]}, 300),
        ("ssm", "PutParameter", {}, None),
    ],
)
def test_spans(service: str, name: str, parameters: dict[str, Any], span: float | None) -> None:
    """A key holds as long as the service remembers it; a condition that needs none has no span (counterexample K6)."""
    judgement = classify(operation(service, name), parameters)
    assert judgement.repeatable
    assert judgement.span == span


@pytest.mark.parametrize(
    ("service", "name", "parameters"),
    [
        ("ec2", "RebootInstances", {"DryRun": "true"}),  # N5: true, not only there
        ("ec2", "RebootInstances", {"DryRun": False}),
        ("sqs", "SendMessage", {"QueueUrl": "https://q/1/q", "MessageDeduplicationId": "d"}),  # K7: ignored there
        ("sqs", "SendMessageBatch", {"QueueUrl": "q.fifo", "Entries": [{"MessageDeduplicationId": "d"}, {}]}),
        ("sqs", "SendMessageBatch", {"QueueUrl": "q.fifo", "Entries": []}),
        ("sqs", "SendMessageBatch", {"QueueUrl": "q.fifo", "Entries": 7}),
        ("sns", "PublishBatch", {"TopicArn": "t.fifo", "PublishBatchRequestEntries": [{}]}),
        ("bedrock-runtime", "Converse", {"toolConfig": {"tools": [{"systemTool": {"name": "nova_code"}}]}}),
        ("bedrock-agent-runtime", "RetrieveAndGenerate", {"sessionId": "s"}),
        ("apigateway", "UpdateUsagePlan", {"patchOperations": [{"op": "add", "path": "/apiStages", "value": "a:b"}]}),
        ("apigateway", "UpdateStage", {"patchOperations": [7]}),
        ("cloudfront", "CreateInvalidation", {"InvalidationBatch": {}}),
        ("cloudfront", "CreateInvalidation", {"InvalidationBatch": 7}),
        ("lambda", "UpdateFunctionCode", {"Publish": True}),
        ("rds", "ModifyDBInstance", {"RotateMasterUserPassword": True}),
        ("elasticache", "ModifyUser", {"AppendAccessString": "~*"}),
        ("ssm", "PutResourcePolicy", {"PolicyId": "p"}),
    ],
)
def test_conditions_that_are_not_met(service: str, name: str, parameters: dict[str, Any]) -> None:
    """A condition holds for the values that are sent; broken ones raise nothing and meet none."""
    assert not classify(operation(service, name), parameters).repeatable


def test_maybe_done() -> None:
    """Codes and statuses by which a second attempt meets the first one's work."""
    create = classify(operation("iam", "CreateUser"), {})
    assert create.is_maybe_done(409, "EntityAlreadyExists")
    assert create.is_maybe_done(400, "ConditionalCheckFailedException")
    assert create.is_maybe_done(404, "")
    assert create.is_maybe_done(400, "UsernameExistsException")
    assert create.is_maybe_done(400, "ClientException", "Job queue q already exists")
    assert create.is_maybe_done(400, "ValidationError", "Stack with id s does not exist")
    assert create.is_maybe_done(400, "InvalidRequestException", "a secret that's currently marked deleted.")
    assert not create.is_maybe_done(400, "ValidationError", "the name must have at least 3 letters")
    assert not create.is_maybe_done(500, "InternalError", "it exists already")
    assert not create.is_maybe_done(403, "AccessDenied")
    assert not create.is_maybe_done(500, "InternalConflict")


class _Bare:
    """An operation of which only the names are known, as the reader of code has it."""

    documentation = ""
    input_shape = None

    def __init__(self, service: str, name: str) -> None:
        self.name = name
        self.service_model = SimpleNamespace(service_name=service)


def test_a_model_without_members_decides_about_no_other() -> None:
    """Somebody who knows the names alone leaves the judgement by botocore's own model as it is."""
    parameters = {"MinCount": 1, "MaxCount": 1, "ClientToken": "0f8fad5b"}
    assert not classify(_Bare("ec2", "RunInstances"), parameters).repeatable
    assert classify(operation("ec2", "RunInstances"), parameters).repeatable
