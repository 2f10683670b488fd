"""The reference pages: the order of their sections, and the text between the tables."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

from docs.generate import api, audit, aws, commands, fleet, operations, profiles, scenarios
from docs.generate.markdown import bullets, text
from forbear.answers import tables
from forbear.core.verdict import Safety
from forbear.services import registry
from forbear.services.cloud_storage import profiles as cloud_storage_profiles
from forbear.services.iam import service as iam_profiles
from forbear.services.memorystore import service as memorystore_profiles
from forbear.services.redis import errors as redis_profiles

_MADE = "`make reference` generates this page from the tables and policies of forbear. Do not edit it by hand."
_PAGES = {
    "retry page": "[Retry strategy](https://cloud.google.com/storage/docs/retry-strategy) of the Cloud Storage "
    "documentation, with its sections on client libraries",
    "retry page of IAM": "[Retry failed requests](https://cloud.google.com/iam/docs/retry-strategy) of the IAM "
    "documentation",
    "conformance tests": "the retry tests that Google publishes for its Cloud Storage clients "
    "(googleapis/conformance-tests, `storage/v1`)",
    "other clients": "what Google's own clients for other languages repeat",
    "API definition": "the discovery documents and protobuf definitions of the APIs (googleapis/googleapis)",
    "gRPC definitions": "the protobuf definition of the same operation in the gRPC API",
    "gRPC service config": "the retry settings that are published with the protobuf definitions",
    "readonly flag": "the servers' own lists of commands ([Redis](https://redis.io/docs/latest/commands/), "
    "[Valkey](https://valkey.io/commands/)) flag it as only reading",
    "JUDGEMENT": "no document says it; it is our judgement of what the operation does. In doubt we chose the stricter "
    "answer: a missing retry costs a failed request, a wrong retry costs data",
}


def cloud_storage() -> Iterator[str]:
    """Yield the lines of the page of Cloud Storage."""
    yield from _head(
        "Cloud Storage",
        """This page lists which operations of the JSON, XML and gRPC APIs of Cloud Storage may be repeated. The page
        also lists the waits and limits of `cloud_storage.policy` and `cloud_storage.documented`.
        [Cloud Storage](../cloud_storage.md) is a summary.""",
        "cloud_storage",
    )
    yield from _how_to_read(
        """The column `documented` says what the retry page allows. The profile `documented` repeats no operation that
        the page does not name.""",
        sources=("retry page", "conformance tests", "other clients", "API definition", "gRPC definitions",
                 "gRPC service config", "JUDGEMENT"),
    )  # fmt: skip
    yield from _two_profiles(cloud_storage_profiles.documented, cloud_storage_profiles.policy)
    yield from ("## Other profiles", "")
    others = (
        ("documented_2020", cloud_storage_profiles.documented_2020),
        ("python_client", cloud_storage_profiles.python_client),
        ("gsutil", cloud_storage_profiles.gsutil),
    )
    yield from profiles.section(*others)
    for name, profile in others:
        yield from text(f"**`{name}`.** {' '.join(profiles.said_of(profile))}")
    for name, title in (("json", "JSON"), ("xml", "XML"), ("grpc", "gRPC")):
        yield from (f"## {title} API", "")
        yield from operations.section(tables.find(f"cloud_storage.{name}"))


def iam() -> Iterator[str]:
    """Yield the lines of the page of IAM."""
    yield from _head(
        "IAM",
        """This page lists which operations of the APIs of IAM may be repeated: accounts, keys, roles and pools; deny
        policies; bindings; credentials. The page also lists the waits and limits of `iam.policy` and
        `iam.documented`. Its last section is about the IAM methods of APIs for which forbear has no table.""",
        "iam",
    )
    yield from _how_to_read(
        """A 409 whose body has the status ABORTED is a conflict, and so is the gRPC code ABORTED. `forbear.update` with
        `iam.is_conflict` then reads the policy again, changes it and writes it. A 409 with any other status, such as
        ALREADY_EXISTS, is permanent. The retry page of IAM names no operations, so both profiles use the same
        tables.""",
        sources=("retry page of IAM", "API definition", "gRPC service config", "JUDGEMENT"),
    )
    yield from _two_profiles(iam_profiles.documented, iam_profiles.policy)
    titles = {
        "iam.": "Accounts, keys, roles and pools (v1)",
        "google.iam.v2": "Deny policies (v2)",
        "google.iam.v3": "Bindings (v3)",
        "iamcredentials.": "Credentials",
        "iam.any.": "The IAM methods of all other APIs of Google",
    }
    yield from _by_prefix("iam", titles)


def memorystore() -> Iterator[str]:
    """Yield the lines of the page of Memorystore."""
    yield from _head(
        "Memorystore",
        """This page lists which operations of the administration APIs of Memorystore for Redis, Redis Cluster and
        Valkey may be repeated. The page also lists the waits and limits of `memorystore.policy` and
        `memorystore.documented`. The commands for the data in an instance are on another page: [Redis](redis.md).""",
        "memorystore",
    )
    yield from _how_to_read(
        """The page on exponential backoff in the documentation of Memorystore for Redis names no operations, so both
        profiles use the same tables.""",
        sources=("API definition", "JUDGEMENT"),
    )
    yield from _two_profiles(memorystore_profiles.documented, memorystore_profiles.policy)
    yield from _by_prefix("memorystore", {"redis.": "Redis and Redis Cluster", "google.": "Valkey"})


def redis() -> Iterator[str]:
    """Yield the lines of the page of Redis."""
    entries = tables.find("redis")
    reads = [entry for entry in entries if entry.is_read]
    bound = [entry for entry in entries if entry.columns["kind"] == "connection"]
    writes = [entry for entry in entries if not entry.is_read and entry.columns["kind"] != "connection"]
    yield from _head(
        "Redis",
        f"""This page lists which of the {len(entries)} commands of Redis, Valkey and their modules may be repeated. It
        also lists the waits and limits of `redis.policy`.""",
        "redis",
    )
    yield from _how_to_read(
        """A command is safe if a second execution leaves the same data, even if its response differs. **Response to a
        repeat** says whether that response is the same, may differ, or is an error. Option words such as NX are
        recognised in upper and lower case. A value that equals such a word does not count as the option.""",
        """**Depends on** says what the outcome of a write depends on: *nothing*, the *existence* of its key, the
        contents of its *key* or *keys*, or the state of the *server*. This decides whether the write may be repeated
        together with other writes, as in a pipeline.""",
        sources=("readonly flag", "JUDGEMENT"),
    )
    yield from text("Everything that this page says of writes is our judgement, tested against a live server.")
    yield from text(
        """Only the caller can know some conditions. Such a condition counts if the caller states it as a promise, with
        `promised(NAME)`:"""
    )
    yield from commands.promises()
    yield from ("## Profile", "")
    yield from profiles.section(("policy", redis_profiles.policy))
    yield from profiles.said_of(redis_profiles.policy)
    yield from ("## What a response means", "")
    yield from commands.responses()
    yield from ("## Reads, always safe", "", "The servers flag these commands as reads:", "")
    yield from commands.names(entry for entry in reads if entry.source != "JUDGEMENT")
    yield from ("These commands are reads by our judgement:", "")
    yield from commands.names(entry for entry in reads if entry.source == "JUDGEMENT")
    for title, safety in (("always safe", Safety.ALWAYS), ("conditional", Safety.CONDITIONAL), ("never", Safety.NEVER)):
        yield from (f"## Writes, {title}", "")
        show = commands.always if safety is Safety.ALWAYS else commands.unsafe
        yield from show(entry for entry in writes if entry.safety is safety)
    yield from ("## Commands whose effect ends with the connection", "")
    yield from text("On a new connection, such a command must be sent again before the commands that need it.")
    yield from commands.always(entry for entry in bound if entry.safety is Safety.ALWAYS)
    yield from text("These commands are not always safe:")
    yield from commands.unsafe(entry for entry in bound if entry.safety is not Safety.ALWAYS)
    yield from ("## Commands that Memorystore for Redis does not offer", "")
    yield from commands.blocked(entries)


def plain(service: str) -> Iterator[str]:
    """Yield the lines of the page of a service without a text of its own: its profiles and its operations."""
    module = import_module(f"forbear.services.{service}.service")
    listed = [entry for name in _tables(service) for entry in tables.find(name)]
    title = service.replace("_", " ").title()
    yield from _head(
        title,
        f"""This page lists which operations of {title} may be repeated. The page also lists the waits and limits of
        `{service}.policy` and `{service}.documented`.""",
        service,
    )
    yield from _how_to_read(sources=tuple(dict.fromkeys(part for entry in listed for part in entry.source.split("; "))))
    yield from _two_profiles(module.documented, module.policy)
    yield from ("## Operations", "")
    yield from operations.section(listed)


_WRITTEN = {"aws": aws.page, "cloud_storage": cloud_storage, "iam": iam, "memorystore": memorystore, "redis": redis}


def _tables(service: str) -> list[str]:
    return list(registry.service(service).tables())


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    service: _WRITTEN.get(service, partial(plain, service)) for service in registry.names() if _tables(service)
} | {"audit": audit.page, "gallery": fleet.gallery, "scenario": scenarios.page, **api.PAGES}
"""The pages by their names: one for each service with tables, those on rules and simulations, and those of the API."""


def _head(title: str, what: str, table: str) -> Iterator[str]:
    yield from (f"# {title}: reference", "")
    names = " or ".join(f"`{name}`" for name in tables.names() if name.partition(".")[0] == table)
    yield from text(_MADE, f"{what} `forbear explain --operations TABLE` prints the same, where TABLE is {names}.")


def _how_to_read(*more: str, sources: tuple[str, ...]) -> Iterator[str]:
    yield from ("## How to read it", "")
    yield from text(
        """**Safe** says whether an operation may be repeated after an attempt with an unknown outcome: *always*, only
        *with* a condition, or *never*. The request must meet one of the listed conditions from its first attempt on.
        **May mean success** lists the responses to a later attempt that may mean that an earlier attempt worked.
        **Effect of a duplicate** says what a second execution would do.""",
        *more,
        "Sources:",
    )
    yield from bullets(f"*{name}*: {_PAGES[name]}." for name in sources)


def _two_profiles(documented: profiles.Profile, policy: profiles.Profile) -> Iterator[str]:
    yield from ("## Profiles", "")
    yield from profiles.section(("documented", documented), ("policy", policy))
    for name, profile in (("documented", documented), ("policy", policy)):
        yield from (f"### {name}", "")
        yield from profiles.said_of(profile)


def _by_prefix(table: str, titles: dict[str, str]) -> Iterator[str]:
    """Yield one section for each prefix of a name in `titles`; a name belongs to its longest prefix."""
    for prefix, title in titles.items():
        longer = tuple(other for other in titles if other.startswith(prefix) and other != prefix)
        yield from (f"## {title}", "")
        yield from operations.section(
            entry
            for entry in tables.find(table)
            if entry.id.startswith(prefix) and not (longer and entry.id.startswith(longer))
        )
