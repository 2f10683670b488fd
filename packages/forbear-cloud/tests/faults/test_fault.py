"""A wrong fault is refused when it is defined, with a message that says what to change."""

import re
from collections.abc import Callable
from typing import cast

import pytest

from forbear_cloud import Cloud, Fault, random_faults

BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: Fault.status(200), "`code` must be a whole number from 300 to 599, got 200"),
    (lambda: Fault.status(503, times=0), "`times` must be a whole number of at least 1, got 0"),
    (lambda: Fault.status(503, skip=-1), "`skip` must be a whole number of at least 0, got -1"),
    (lambda: Fault.status(503, nth=0), "`nth` must be a whole number of at least 1, got 0"),
    (lambda: Fault.status(503, nth=2, times=1), "`nth` is short for skip=nth-1"),
    (lambda: Fault.status(503, probability=1.5), "`probability` must be a number from 0 to 1, got 1.5"),
    (lambda: Fault.status(503, probability=float("nan")), "`probability` must be a number from 0 to 1, got nan"),
    (lambda: Fault.status(503, retry_after=-1), "`retry_after` must be a number of at least 0, got -1"),
    (
        lambda: Fault.status(503, operation="storage.object.insert"),
        "`operation` must be one that the cloud serves, such as ",
    ),
    (lambda: Fault.status(503, path=""), "`path` must not be empty; leave it out to match everything"),
    (lambda: Fault.status(503, path_regex="("), "`path_regex` must be a regular expression, got '('"),
    (lambda: Fault.status(503, headers={"Content-Length": "5"}), "`headers` must leave Content-Length to the server"),
    (lambda: Fault.truncate(-1), "`keep` must be a whole number of at least 0, got -1"),
    (
        lambda: Fault.truncate(operation="storage.objects.delete"),
        "`operation` storage.objects.delete has no response body",
    ),
    (lambda: Fault.stall(operation="storage.objects.insert.start"), "`operation` storage.objects.insert.start has no"),
    (lambda: Fault.corrupt(operation="storage.objects.insert.cancel"), "`operation` storage.objects.insert.cancel has"),
    (lambda: Fault.truncate(5, share=0.5), "`share` and `keep` exclude each other"),
    (lambda: Fault.delay(float("inf")), "`seconds` must be a number of at least 0, got inf"),
    (
        lambda: Fault.partial(5, operation="storage.buckets.get"),
        "`operation` must be storage.objects.insert.send or xml.",
    ),
    (lambda: Fault.partial(5, status=200), "`status` must be a whole number from 400 to 599, got 200"),
    (lambda: Fault.partial(5, status=309), "`status` must be a whole number from 400 to 599, got 309"),
    (lambda: Fault.rewind(5), "`to` must be a multiple of 262144 (256 KiB), as in the service, got 5"),
    (lambda: Fault.rewind(operation="storage.objects.insert.start"), "`operation` must be storage.objects.insert.send"),
    (lambda: Fault.corrupt_upload(operation="storage.objects.get"), "`operation` must be storage.objects.insert or"),
    (lambda: Fault.other_range(5, 4), "`last` must be a whole number of at least 5, got 4"),
    (lambda: Fault.ignore_range(operation="storage.objects.list"), "`operation` must be storage.objects.get or xml"),
    (lambda: Fault.replace_object(operation="storage.objects.list"), "`operation` must be storage.objects."),
    (lambda: Fault.expire_session(status=500), "`status` must be 404 or 410, as for a session that is gone, got 500"),
    (lambda: Fault.lag(0), "`reads` must be a whole number of at least 1, got 0"),
    (
        lambda: Fault.lag(1, operation="iam.projects.roles.get"),
        "`operation` must be iam.projects.",
    ),
    (lambda: Fault.long_running(0), "`polls` must be a whole number of at least 1, got 0"),
    (lambda: Fault.long_running(1, error=17), "`error` must be a whole number from 1 to 16, got 17"),
    (lambda: Fault.long_running(1, operation="storage.batch"), "`operation` must be redis.projects.locations."),
    (
        lambda: random_faults(1, unavailable=0.9, throttled=0.9),
        "the rates of random faults must add up to at most 1, got 1.95",
    ),
    (lambda: random_faults(1, unavailable=2), "`unavailable` must be a number from 0 to 1, got 2"),
    (lambda: Cloud(port=70_000), "`port` must be a whole number from 0 to 65535, got 70000"),
    (lambda: Cloud(memory_limit=0), "`memory_limit` must be a whole number of at least 1, got 0"),
    (lambda: Cloud(connection_limit=0), "`connection_limit` must be a whole number of at least 1, got 0"),
    (lambda: Cloud(host="0.0.0.0"), "`host` must be a loopback address, such as 127.0.0.1 or ::1"),
    (lambda: Cloud(host="example.com"), "`host` must be a loopback address, such as 127.0.0.1 or ::1: the"),
    (lambda: Cloud(body_limit=0), "`body_limit` must be a whole number of at least 1, got 0"),
]
BAD_JSON: list[tuple[object, str]] = [
    ([], "a fault must be a JSON object, got []"),
    ({}, "`action` must be a string, got None"),
    ({"action": "explode"}, "`action` must be one of close, corrupt, corrupt_upload, delay, "),
    ({"action": "status"}, "`code` is missing: 'status' needs it"),
    ({"action": "status", "code": "503"}, "`code` must be a whole number from 300 to 599, got '503'"),
    ({"action": "status", "code": True}, "`code` must be a whole number from 300 to 599, got True"),
    ({"action": "status", "code": 503, "when": "during"}, "`when` must be one of after, before; got 'during'"),
    ({"action": "status", "code": 503, "when": 5}, "`when` must be a string, got 5"),
    ({"action": "status", "code": 503, "statsu": 1}, "`statsu` is not a parameter of 'status'; it takes body, code,"),
    ({"action": "status", "code": 503, "headers": {"a b": "c"}}, "`headers` must map header names to strings"),
    ({"action": "status", "code": 503, "headers": {"é": "c"}}, "`headers` must map header names to strings"),
    ({"action": "status", "code": 503, "headers": []}, "`headers` must map names to values, got []"),
    ({"action": "status", "code": 503, "body": 5}, "`body` must be a string or None, got 5"),
    ({"action": "status", "code": 503, "method": 5}, "`method` must be a string or None, got 5"),
    ({"action": "truncate", "when": "before"}, "`when` is not a parameter of 'truncate'"),
    ({"action": "truncate", "reset": "yes"}, "`reset` must be True or False, got 'yes'"),
    ({"action": "reset", "header": "x"}, "`header` must be a pair of a name and a part of its value, got 'x'"),
    ({"action": "replace_object", "content": 5}, "`content` must be bytes, a string or None, got 5"),
    ({"action": "delay", "seconds": "1"}, "`seconds` must be a number of at least 0, got '1'"),
]


@pytest.mark.parametrize(("define", "text"), BAD)
def test_a_wrong_value_of_a_fault_is_named(define: Callable[[], object], text: str) -> None:
    """The error names each wrong value and its rule."""
    with pytest.raises(ValueError, match=f"^{re.escape(text)}"):
        define()


@pytest.mark.parametrize(("value", "text"), BAD_JSON)
def test_json_definitions(value: object, text: str) -> None:
    """JSON passes the same checks, and an unknown name is refused with a list of the known ones."""
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(text)}"):
        Fault.from_json(value)


@pytest.mark.parametrize("name", ["skip", "nth", "times", "probability"])
def test_random_faults_have_rates_instead(name: str) -> None:
    """Parameters that count requests do not fit random faults."""
    make = cast("Callable[..., object]", random_faults)
    with pytest.raises(TypeError, match="does not fit random faults"):
        make(1, **{name: 1})


def test_only_faults_can_be_added(cloud: Cloud) -> None:
    """An action without a matcher, or a mere number, is refused."""
    add = cast("Callable[..., None]", cloud.fault)
    with pytest.raises(TypeError, match=r"`fault` takes faults, such as Fault.status"):
        add(503)


def test_unknown_matchers() -> None:
    """A misspelt matcher is refused from Python too, with those that exist."""
    make = cast("Callable[..., object]", Fault.reset)
    with pytest.raises(TypeError, match="`pth` is not a parameter of this fault; requests are matched by operation,"):
        make(pth="x")
