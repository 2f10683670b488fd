"""The events of botocore: executions that a server counts, for the cases of `aws_labels.csv` in the testkit."""

import json
from typing import Any

import pytest

from forbear.clients.botocore import install
from forbear.services.aws.table import refuses
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.wire import Wire
from forbear_testkit.lazily import Library
from forbear_testkit.services.aws import labelled

botocore: Any = Library("botocore")

CASES = labelled()
SAMPLE = ("dynamodb", "sqs", "sns", "ec2", "s3", "lambda", "route53", "cloudwatch")
"""Services of every protocol; `make soak` has them all."""
SERVICES = [pytest.param(service, marks=() if service in SAMPLE else pytest.mark.soak, id=service) for service in CASES]


@pytest.mark.parametrize("service", SERVICES)
def test_executions(service: str) -> None:
    """After a lost response, a 503, a throttled request and a body cut off: 0 harmful repeated, 0 harmless given up.

    A throttled request is repeated, too, where the service documents that it was not executed.
    """
    with virtual_time(), Wire(aws.LOST) as server:
        client = install(aws.client(service, server.url, parameter_validation=False, inject_host_prefix=False))
        for case in CASES[service]:
            model = client.meta.service_model.operation_model(case["operation"])
            parameters = aws.complete(model, json.loads(case["parameters"]))
            call = getattr(client, botocore.xform_name(model.name))
            slow = aws.fail(model, 429 if model.http["method"] == "HEAD" else 400, "ThrottlingException")
            for first in (aws.LOST, aws.fail(model, 503, "ServiceUnavailable"), slow, *aws.cut(model)):
                server.answers[:] = [first, aws.succeed(model)]
                server.seen.clear()
                succeeded = True
                try:
                    aws.drop(call(**parameters))
                except Exception:
                    succeeded = False
                again = case["harmless"] == "yes" or (
                    first is slow and refuses(service, model.name, "ThrottlingException")
                )
                assert (len(server.seen), succeeded) == (2 if again else 1, again), (case, first)
