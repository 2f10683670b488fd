"""Export: a policy as an object, configuration or source text for another system, with a list of what is lost.

`forbear.export.tenacity(policy)` and the other functions return an `Exported`: the object, keywords or text for the
target, and the losses. `source(target, policy)` returns text for any target. Targets called gax_… set each method that
is always safe to repeat. All raise TypeError for what is no policy, and ValueError for one that the target is not for,
such as that of another service. ImportError says that the target's library is missing.

To add a target, write its function in a module of `forbear.export.targets`, and name it here: in the imports, in
`__all__` and in `_REGISTRY`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from forbear.export.outline import Exported
from forbear.export.targets.config_files import boto, envoy, gcloud
from forbear.export.targets.cpp import cpp, gax_cpp
from forbear.export.targets.csharp import csharp, gax_csharp
from forbear.export.targets.go import gax_go, go
from forbear.export.targets.grpc import grpc
from forbear.export.targets.http_clients import botocore, botocore_source, urllib3, urllib3_source
from forbear.export.targets.java import gax_java, java
from forbear.export.targets.nodejs import gax_nodejs, nodejs
from forbear.export.targets.php import gax_php, php
from forbear.export.targets.retry_libraries import google_api_core, google_api_core_source, tenacity, tenacity_source
from forbear.export.targets.ruby import gax_ruby, ruby
from forbear.export.targets.tasks import celery, celery_source, temporal, temporal_source

if TYPE_CHECKING:
    from forbear.policy import Policy

__all__ = [
    "TARGETS",
    "Exported",
    "boto",
    "botocore",
    "celery",
    "cpp",
    "csharp",
    "envoy",
    "gax_cpp",
    "gax_csharp",
    "gax_go",
    "gax_java",
    "gax_nodejs",
    "gax_php",
    "gax_ruby",
    "gcloud",
    "go",
    "google_api_core",
    "grpc",
    "java",
    "nodejs",
    "php",
    "ruby",
    "source",
    "temporal",
    "tenacity",
    "urllib3",
]

_REGISTRY: "dict[str, tuple[str, Callable[[Policy], Exported[str]]]]" = {
    "grpc": ("a gRPC service config (JSON)", grpc),
    "boto": ("gsutil's .boto file", boto),
    "gcloud": ("properties of gcloud storage", gcloud),
    "google_api_core": ("the retry= of Google's Python clients", google_api_core_source),
    "tenacity": ("a Retrying of tenacity", tenacity_source),
    "urllib3": ("a Retry of urllib3", urllib3_source),
    "botocore": ("a Config for the AWS clients", botocore_source),
    "celery": ("options of a Celery task", celery_source),
    "temporal": ("options of a Temporal activity", temporal_source),
    "envoy": ("a retry policy of Envoy (JSON)", envoy),
    "go": ("the Cloud Storage client of Go", go),
    "java": ("the Cloud Storage client of Java", java),
    "nodejs": ("the Cloud Storage client of Node.js", nodejs),
    "cpp": ("the Cloud Storage client of C++", cpp),
    "csharp": ("the Cloud Storage client of C#", csharp),
    "php": ("the Cloud Storage client of PHP", php),
    "ruby": ("the Cloud Storage client of Ruby", ruby),
    "gax_nodejs": ("the clients of IAM, Memorystore and Resource Manager of Node.js", gax_nodejs),
    "gax_java": ("the clients of IAM, Memorystore and Resource Manager of Java", gax_java),
    "gax_go": ("the clients of IAM, Memorystore and Resource Manager of Go", gax_go),
    "gax_cpp": ("the clients of IAM, Memorystore and Resource Manager of C++", gax_cpp),
    "gax_csharp": ("the clients of IAM, Memorystore and Resource Manager of C#", gax_csharp),
    "gax_php": ("the clients of IAM, Memorystore and Resource Manager of PHP", gax_php),
    "gax_ruby": ("the clients of IAM, Memorystore and Resource Manager of Ruby", gax_ruby),
}
"""The targets by name, each with a description of what is exported, and the function that returns it as text."""

TARGETS = {name: description for name, (description, _) in _REGISTRY.items()}
"""The targets by name, with a description of what is exported."""


def source(target: str, policy: "Policy") -> Exported[str]:
    """Return the policy as text for a target of `TARGETS`, its configuration or source code, with the losses.

    >>> from forbear.services import cloud_storage
    >>> exported = source("gcloud", cloud_storage.policy)
    >>> print(exported.value)
    [storage]
    base_retry_delay = 1
    exponential_sleep_multiplier = 2
    max_retries = 16
    max_retry_delay = 46
    >>> exported.losses[0]
    'safety: the target does not see which operations are safe to execute twice'
    """
    if target not in _REGISTRY:
        raise ValueError(f"`target` must be one of {', '.join(TARGETS)}, got {target!r}")
    return _REGISTRY[target][1](policy)
