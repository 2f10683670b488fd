"""The reference pages: in which order things are said, and the sentences between the tables."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

from docs.generate import commands, operations, profiles
from docs.generate.markdown import bullets, text
from forbear.cli.explain import tables
from forbear.core.verdict import Safety
from forbear.services import registry
from forbear.services.cloud_storage import profiles as cloud_storage_profiles
from forbear.services.iam import service as iam_profiles
from forbear.services.memorystore import service as memorystore_profiles
from forbear.services.redis import errors as redis_profiles

_MADE = "Made by `make reference` from the tables and policies of the library; a change made here would be lost."
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
    "JUDGEMENT": "no document says it: it is our judgement of what the operation does. In doubt the stricter answer "
    "was taken: what is not repeated costs a retry, what is repeated wrongly costs data",
}


def cloud_storage() -> Iterator[str]:
    """The page of Cloud Storage."""
    yield from _head(
        "Cloud Storage",
        """What may be repeated in the JSON, XML and gRPC APIs of Cloud Storage, and how long `cloud_storage.policy` and
        `cloud_storage.documented` hold back. [Cloud Storage](../cloud_storage.md) says it in short.""",
        "cloud_storage",
    )
    yield from _how_to_read(
        """The column `documented` has what the retry page says: that profile repeats nothing that the page does not
        name.""",
        ("retry page", "conformance tests", "other clients", "API definition", "gRPC definitions",
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
    """The page of IAM."""
    yield from _head(
        "IAM",
        """What may be repeated in the APIs of IAM (accounts, keys, roles and pools; deny policies; bindings;
        credentials), and how long `iam.policy` and `iam.documented` hold back.""",
        "iam",
    )
    yield from _how_to_read(
        """A 409 whose body has the status ABORTED is a conflict, and so is the gRPC code: `forbear.update` with
        `iam.is_conflict` reads again, changes and writes. A 409 with any other status, such as ALREADY_EXISTS, is
        final. The retry page of IAM names no operation, so both profiles share the tables.""",
        ("retry page of IAM", "API definition", "gRPC service config", "JUDGEMENT"),
    )
    yield from _two_profiles(iam_profiles.documented, iam_profiles.policy)
    titles = {
        "iam.": "Accounts, keys, roles and pools (v1)",
        "google.iam.v2": "Deny policies (v2)",
        "google.iam.v3": "Bindings (v3)",
        "iamcredentials.": "Credentials",
    }
    yield from _by_prefix("iam", titles)


def memorystore() -> Iterator[str]:
    """The page of Memorystore."""
    yield from _head(
        "Memorystore",
        """What may be repeated in the APIs by which Memorystore for Redis, Redis Cluster and Valkey are administered,
        and how long `memorystore.policy` and `memorystore.documented` hold back. The data in them is on another page:
        [Redis](redis.md).""",
        "memorystore",
    )
    yield from _how_to_read(
        """The page on exponential backoff in the documentation of Memorystore for Redis names no operation, so both
        profiles share the tables.""",
        ("API definition", "JUDGEMENT"),
    )
    yield from _two_profiles(memorystore_profiles.documented, memorystore_profiles.policy)
    yield from _by_prefix("memorystore", {"redis.": "Redis and Redis Cluster", "google.": "Valkey"})


def redis() -> Iterator[str]:
    """The page of Redis."""
    entries = tables.find("redis")
    reads = [entry for entry in entries if entry.is_read]
    bound = [entry for entry in entries if entry.columns["kind"] == "connection"]
    writes = [entry for entry in entries if entry not in bound and entry not in reads]
    yield from _head(
        "Redis",
        f"""What may be repeated of the {len(entries)} commands of Redis, Valkey and their modules, and how long
        `redis.policy` holds back.""",
        "redis",
    )
    yield from _how_to_read(
        """Safe is what leaves the same data, whatever is answered; each table says what a repeat is answered: the same,
        perhaps something else, or an error that may mean that the first attempt had worked. Words such as NX count in
        any case, and where they are values they do not count. *Depends on* says what the outcome of a write hangs on,
        and so whether it may be repeated together with other writes, as in a pipeline: on nothing that it finds; on the
        existence of its key; on what its key or other keys hold; on the server.""",
        ("readonly flag", "JUDGEMENT"),
    )
    yield from text("All that is said of writes is our judgement, tested against a live server.")
    yield from text("What only a caller can know counts where the caller promises it:")
    yield from commands.promises()
    yield from ("## Profile", "")
    yield from profiles.section(("policy", redis_profiles.policy))
    yield from profiles.said_of(redis_profiles.policy)
    yield from ("## What a reply means", "")
    yield from commands.replies()
    yield from ("## Reads, always safe", "", "Flagged by the servers themselves:", "")
    yield from commands.names(entry for entry in reads if entry.source != "JUDGEMENT")
    yield from ("By our judgement:", "")
    yield from commands.names(entry for entry in reads if entry.source == "JUDGEMENT")
    for title, safety in (("always safe", Safety.ALWAYS), ("conditional", Safety.CONDITIONAL), ("never", Safety.NEVER)):
        yield from (f"## Writes, {title}", "")
        show = commands.always if safety is Safety.ALWAYS else commands.unsafe
        yield from show(entry for entry in writes if entry.safety is safety)
    yield from ("## What ends with its connection", "")
    yield from text("On a new connection it has to be sent again, before the command that needs it.")
    yield from commands.always(entry for entry in bound if entry.safety is Safety.ALWAYS)
    yield from text("Not always safe:")
    yield from commands.unsafe(entry for entry in bound if entry.safety is not Safety.ALWAYS)
    yield from ("## What Memorystore for Redis does not offer", "")
    yield from commands.blocked(entries)


def plain(service: str) -> Iterator[str]:
    """Yield the page of a service that needs no words of its own: its profiles and its operations."""
    module = import_module(f"forbear.services.{service}.service")
    listed = [entry for name in _tables(service) for entry in tables.find(name)]
    title = service.replace("_", " ").title()
    yield from _head(title, f"What may be repeated in {title}, and how long `{service}.policy` holds back.", service)
    yield from _how_to_read("", tuple(dict.fromkeys(name for entry in listed for name in entry.source.split("; "))))
    yield from _two_profiles(module.documented, module.policy)
    yield from ("## Operations", "")
    yield from operations.section(listed)


_WRITTEN = {"cloud_storage": cloud_storage, "iam": iam, "memorystore": memorystore, "redis": redis}


def _tables(service: str) -> list[str]:
    return list(registry.service(service).tables())


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    service: _WRITTEN.get(service, partial(plain, service)) for service in registry.names() if _tables(service)
}
"""The pages by their names, one for each service that has tables."""


def _head(title: str, what: str, table: str) -> Iterator[str]:
    yield from (f"# {title}: reference", "")
    names = " or ".join(f"`{name}`" for name in tables.names() if name.partition(".")[0] == table)
    yield from text(_MADE, f"{what} `forbear explain --operations TABLE` prints the same, TABLE being {names}.")


def _how_to_read(more: str, sources: tuple[str, ...]) -> Iterator[str]:
    yield from ("## How to read it", "")
    yield from text(
        """**Safe** is what may be sent again when nobody knows whether the first attempt was executed: *always*, only
        *with* a condition (any one of those listed, present before the first attempt), or *never*. **May mean that it
        worked** lists the replies that on a later attempt may come from the success of an earlier one. **A duplicate**
        says what a second execution would do.""",
        more,
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
    """One section for each beginning of a name."""
    for prefix, title in titles.items():
        yield from (f"## {title}", "")
        yield from operations.section(entry for entry in tables.find(table) if entry.id.startswith(prefix))
