"""Operations of AWS as the installed botocore describes them."""

import csv
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from forbear_testkit.lazily import Library

_model: Any = Library("botocore.model")
_session: Any = Library("botocore.session")
_numbers = count()


def operation(service: str, name: str) -> Any:
    """Return botocore's model of an operation: `operation("sqs", "SendMessage")`."""
    return service_model(service).operation_model(name)


@cache
def service_model(service: str) -> Any:
    """Return botocore's model of a service."""
    return _model.ServiceModel(_loader().get_service_data(service), service)


def made_up(name: str, **raw: Any) -> Any:
    """Return the model of an operation that does not exist, in a service of its own; `raw` are parts of its model.

    `members` are those of its input, and `required` the names of those that it must have.
    """
    members, required = raw.pop("members", {}), raw.pop("required", [])
    data = {
        "metadata": {"protocol": "json", "serviceId": "Made Up", "endpointPrefix": "made-up"},
        "operations": {name: {"name": name, "http": {"method": "POST"}, "input": {"shape": "Input"}, **raw}},
        "shapes": {
            "Input": {"type": "structure", "required": required, "members": members},
            "Text": {"type": "string"},
        },
    }
    return _model.ServiceModel(data, f"made-up-{next(_numbers)}").operation_model(name)


def labelled() -> dict[str, list[dict[str, str]]]:
    """Return the labelled cases of each service, as aws_labels.csv has them."""
    cases: dict[str, list[dict[str, str]]] = {}
    path = Path(__file__).with_name("aws_labels.csv")
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            cases.setdefault(line["service"], []).append(line)
    return cases


@cache
def _loader() -> Any:
    return _session.Session()
