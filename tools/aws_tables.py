"""Compare the newest models of AWS with those of the locked botocore, and our corrections with both: `make tables`.

Each line of the output is one finding, such as "sqs.SendMessage: lost its token". Nothing is changed.
"""

import gzip
import json
import tempfile
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from botocore.model import ServiceModel

from forbear.core.verdict import Safety
from forbear.services.aws import table
from forbear.services.aws.service import Traits, traits_of
from tools.environments import UV, run

Models = Mapping[str, Mapping[str, Traits]]
"""The traits of each operation, by the names of service and operation."""


def main() -> None:
    """Fetch the newest botocore into a folder of its own, and print what is found."""
    with tempfile.TemporaryDirectory(prefix="forbear-botocore-") as name:
        run(UV, "pip", "install", "--quiet", "--no-deps", "--target", name, "botocore")
        newest = read_models(Path(name) / "botocore" / "data")
    locked = read_models(Path(str(distribution("botocore").locate_file("botocore"))) / "data")
    for finding in (*compare(locked, newest), *check_rows(newest)):
        print(finding)


def read_models(folder: Path) -> Models:
    """Return the traits of all operations in a folder of models, each service by its newest version."""
    models: dict[str, dict[str, Traits]] = {}
    for service in sorted(each for each in folder.iterdir() if each.is_dir()):
        path = max(service.glob("*/service-2.json.gz"), default=None)
        if path is not None:
            models[service.name] = read_traits(json.loads(gzip.decompress(path.read_bytes())), service.name)
    return models


def read_traits(document: dict[str, Any], service: str) -> dict[str, Traits]:
    """Return the traits of the operations of one service, from the document of its model."""
    model: Any = ServiceModel(document, service)
    return {name: traits_of(model.operation_model(name)) for name in model.operation_names}


def compare(old: Models, new: Models) -> Iterator[str]:
    """Yield what changed: services and operations, and the traits and tokens that came and went."""
    for service, operations in new.items():
        if service not in old:
            yield f"{service}: a new service"
            continue
        for name, traits in operations.items():
            before = old[service].get(name)
            if before is None:
                judged = table.find(service, name) is not None or service not in table.rows()
                yield f"{service}.{name}: a new operation{'' if judged else ', and no row for it'}"
                continue
            for trait in ("readonly", "idempotent", "tokens"):
                was, now = getattr(before, trait), getattr(traits, trait)
                if was != now:
                    yield f"{service}.{name}: {trait} was {was}, and is {now}"
    for service, operations in old.items():
        for name in operations.keys() - new.get(service, {}).keys():
            yield f"{service}.{name}: gone"


def check_rows(models: Models) -> Iterator[str]:
    """Yield the corrections that match nothing, and reads that count as none because their text names an action."""
    for service, (exact, patterns) in table.rows().items():
        names = models.get(service, {})
        for row in (*exact.values(), *patterns):
            if not any(fnmatchcase(name, row.pattern) for name in names):
                yield f"{service}.{row.pattern}: a row that matches nothing"
            elif row.is_exact and row.safety is Safety.ALWAYS and names[row.pattern].readonly:
                yield f"{service}.{row.pattern}: a row that the model says, too (readonly)"
    for service, operations in models.items():
        for name, traits in operations.items():
            if (traits.looks or traits.readonly) and traits.acts and table.find(service, name) is None:
                yield f"{service}.{name}: a read, by its name or trait, whose text names an action"


if __name__ == "__main__":
    main()
