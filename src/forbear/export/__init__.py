"""Export: one policy in the words of other systems, and a list of what those cannot say. Nothing is dropped in silence.

`forbear.export.tenacity(policy)` and its like give the object, the keywords or the text that the target takes, with the
losses; `source(target, policy)` gives text for any target. Nothing is loaded before it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from forbear.export.exported import Exported

if TYPE_CHECKING:
    from forbear.export.targets.botocore import botocore
    from forbear.export.targets.celery import celery
    from forbear.export.targets.cpp import cpp
    from forbear.export.targets.csharp import csharp
    from forbear.export.targets.envoy import envoy
    from forbear.export.targets.go import go
    from forbear.export.targets.google_api_core import google_api_core
    from forbear.export.targets.grpc import grpc
    from forbear.export.targets.gsutil import boto, gcloud
    from forbear.export.targets.java import java
    from forbear.export.targets.nodejs import nodejs
    from forbear.export.targets.php import php
    from forbear.export.targets.ruby import ruby
    from forbear.export.targets.temporal import temporal
    from forbear.export.targets.tenacity import tenacity
    from forbear.export.targets.urllib3 import urllib3
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

TARGETS = {
    "grpc": "a gRPC service config (JSON)",
    "boto": "gsutil's .boto file",
    "gcloud": "properties of gcloud storage",
    "google_api_core": "the retry= of Google's Python clients",
    "tenacity": "a Retrying of tenacity",
    "urllib3": "a Retry of urllib3",
    "botocore": "a Config for the AWS clients",
    "celery": "options of a Celery task",
    "temporal": "options of a Temporal activity",
    "envoy": "a retry policy of Envoy (JSON)",
    "go": "the Cloud Storage client of Go",
    "java": "the Cloud Storage client of Java",
    "nodejs": "the Cloud Storage client of Node.js",
    "cpp": "the Cloud Storage client of C++",
    "csharp": "the Cloud Storage client of C#",
    "php": "the Cloud Storage client of PHP",
    "ruby": "the Cloud Storage client of Ruby",
}
"""What can be exported to, and what comes of it."""

_MODULES = {"boto": "gsutil", "gcloud": "gsutil"}


def source(target: str, policy: "Policy") -> Exported[str]:
    """The policy as text for a target, one of `TARGETS`; ValueError for any other."""
    if target not in TARGETS:
        raise ValueError(f"`target` must be one of {', '.join(TARGETS)}, got {target!r}")
    module = _module(target)
    written: Exported[str] = getattr(module, "source", getattr(module, target))(policy)
    return written


def _module(target: str):  # type: ignore[no-untyped-def]
    return import_module(f"forbear.export.targets.{_MODULES.get(target, target)}")


if not TYPE_CHECKING:  # a checker that sees it would believe in any name

    def __getattr__(name):
        if name in TARGETS:
            return getattr(_module(name), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
