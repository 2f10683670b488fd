"""The options that `forbear cp` and `forbear rsync` share, and the checks of their combinations."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forbear.cli.kit import values
from forbear.cli.kit.options import HeadedOption, PolicyOptions, make_retry_option, make_shared_budget_option
from forbear.cli.kit.output import BadInput

if TYPE_CHECKING:
    from forbear_transfer.encryption import EncryptionKey, KeyOptions
    from forbear_transfer.metadata import MetadataOptions
    from forbear_transfer.plans.arguments import SharedOptions
    from forbear_transfer.plans.filters import LinkRule

_FILE = click.Path(dir_okay=False, path_type=Path)

_KEY_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_names_option = partial(HeadedOption, heading="Names")
NAMES = (
    _names_option(["--literal"], is_flag=True, help="Take addresses as names, even with *, ?, [ or # in them."),
    _names_option(["--pattern"], is_flag=True, help="Take them as patterns, even if an object has that name."),
)

_content_option = partial(HeadedOption, heading="Content and metadata")
_METADATA = (
    _content_option(["--gzip"], is_flag=True, help="Compress uploads, and set their Content-Encoding."),
    _content_option(["--packed"], is_flag=True, help="Do not decompress downloads of Content-Encoding gzip."),
    _content_option(["--verify-source"], is_flag=True, help="Read each uploaded file twice, and compare."),
    _content_option(["--preserve-posix"], is_flag=True, help="Keep the permissions of files, as gsutil -P does."),
    _content_option(["--content-type"], metavar="TYPE", help="Content type of new objects.  [default: by the name]"),
    _content_option(["--cache-control"], metavar="TEXT", help="Cache-Control of new objects."),
    _content_option(["--content-disposition"], metavar="TEXT", help="Content-Disposition of new objects."),
    _content_option(["--content-encoding"], metavar="NAME", help="Content-Encoding that the data of new objects has."),
    _content_option(["--content-language"], metavar="CODE", help="Content-Language of new objects."),
    _content_option(
        ["--storage-class"], metavar="CLASS", help="Storage class of new objects.  [default: the bucket's]"
    ),
    _content_option(["--metadata"], multiple=True, metavar="KEY=VALUE", help="Custom metadata; may be repeated."),
)

_key_option = partial(HeadedOption, heading="Encryption")
_KEYS = (
    _key_option(
        ["--encryption-key-file", "encryption_key"],
        type=_FILE,
        metavar="FILE",
        help="Encrypt new objects with the key in FILE (base64); read with it, too.",
    ),
    _key_option(
        ["--decryption-key-file", "decryption_keys"],
        type=_FILE,
        multiple=True,
        metavar="FILE",
        help="Read objects encrypted with the key in FILE; may be repeated.",
    ),
    _key_option(["--kms-key"], metavar="NAME", help="Encrypt new objects with this key of Cloud KMS."),
)

_files_option = partial(HeadedOption, heading="Which files, and how fast")
_FILES = (
    _files_option(
        ["-x", "--exclude"], multiple=True, metavar="REGEX", help="Skip names within SOURCE that it matches."
    ),
    _files_option(["--include"], multiple=True, metavar="REGEX", help="Skip names that no --include matches."),
    _files_option(
        ["--links"],
        type=click.Choice(["follow", "skip"]),
        help="Follow symbolic links, or skip them; if not set, follow, and warn of links out of SOURCE.",
    ),
    _files_option(
        ["--manifest"], type=_FILE, metavar="FILE", help="Record outcomes here; cp skips what is done already."
    ),
    _files_option(
        ["--parallel"], type=click.IntRange(1), metavar="N", help="Run at most N transfers at a time.  [default: 64]"
    ),
    _files_option(
        ["--limit-rate"], type=values.rate, metavar="RATE", help="Move at most 500K or 1.5M bytes per second."
    ),
)

_output_option = partial(HeadedOption, heading="Output")
_OUTPUT = (
    _output_option(["--json", "as_json"], is_flag=True, help="Print one JSON object per file, and a summary last."),
    _output_option(["-v", "--verbose"], is_flag=True, help="Print a line on stderr for every file."),
    _output_option(["-q", "--quiet"], is_flag=True, help="Print only failures."),
    _output_option(["--exit-code"], is_flag=True, help="With --dry-run: exit with 3 if there is something to do."),
)

_connection_option = partial(HeadedOption, heading="Connection")
_CONNECTION = (
    _connection_option(
        ["--credentials"], type=_KEY_FILE, metavar="FILE", help="Key file; else application default credentials."
    ),
    _connection_option(["--impersonate"], metavar="EMAIL", help="Act as this service account."),
    _connection_option(["--anonymous"], is_flag=True, help="Send no credentials."),
    _connection_option(
        ["--endpoint"], metavar="URL", help="The service; else $STORAGE_EMULATOR_HOST, or the real one."
    ),
    _connection_option(
        ["--header", "headers"],
        multiple=True,
        metavar="LINE",
        help="Send this header, too, such as 'X-Test: 1'; for test servers.",
    ),
    _connection_option(["--user-project"], metavar="PROJECT", help="Project that pays, for requester-pays buckets."),
    _connection_option(
        ["--stall-timeout"],
        type=values.duration,
        metavar="S",
        default="60",
        show_default=True,
        help="Drop a connection that is idle for S.",
    ),
)

_trial_option = partial(HeadedOption, heading="Trying it out")
_EMBEDDED = (
    _trial_option(["--embedded"], is_flag=True, help="Use an embedded cloud, which ends with the command."),
    _trial_option(["--faults"], type=int, metavar="SEED", help="With --embedded: fail some requests."),
)

_RETRIES = (make_retry_option("cloud_storage", "Retries"), make_shared_budget_option("Retries"))

OPTIONS = (*NAMES, *_FILES, *_METADATA, *_KEYS, *_OUTPUT, *_CONNECTION, *_RETRIES, *_EMBEDDED)
"""All shared options, in the order of the help."""

_NOT_EMPTY = ("impersonate", "endpoint", "user_project", "shared_budget")
"""Options that mean the user's own account, the real service and so on when they are absent."""


def literal_of(options: "TransferOptions") -> bool | None:
    """Return whether sources are names (`--literal`), patterns (`--pattern`: False), or what exists (None)."""
    return True if options["literal"] else False if options["pattern"] else None


class TransferOptions(PolicyOptions):
    """The values of the shared options; None and False mean that an option is absent."""

    profile: str
    literal: bool
    pattern: bool
    gzip: bool
    packed: bool
    verify_source: bool
    preserve_posix: bool
    links: "LinkRule | None"
    content_type: str | None
    cache_control: str | None
    content_disposition: str | None
    content_encoding: str | None
    content_language: str | None
    storage_class: str | None
    metadata: tuple[str, ...]
    encryption_key: Path | None
    decryption_keys: tuple[Path, ...]
    kms_key: str | None
    exclude: tuple[str, ...]
    include: tuple[str, ...]
    manifest: Path | None
    parallel: int | None
    limit_rate: float | None
    as_json: bool
    verbose: bool
    quiet: bool
    exit_code: bool
    credentials: Path | None
    impersonate: str | None
    anonymous: bool
    endpoint: str | None
    headers: tuple[str, ...]
    user_project: str | None
    stall_timeout: float
    shared_budget: str | None
    embedded: bool
    faults: int | None


def check(options: TransferOptions, *, dry_run: bool = False) -> None:
    """Raise BadInput for options that exclude each other, and for one that needs another one."""
    by_name: dict[str, object] = dict(options)
    for name in _NOT_EMPTY:
        if by_name[name] == "":  # of a variable that is not set, for example
            raise BadInput(f"`--{name.replace('_', '-')}` must not be empty", "leave it out, or write a value")
    for first, second in (
        ("verbose", "quiet"),
        ("literal", "pattern"),
        ("anonymous", "credentials"),
        ("anonymous", "impersonate"),
        ("embedded", "endpoint"),
        ("embedded", "credentials"),
        ("embedded", "impersonate"),
        ("embedded", "user_project"),
    ):
        if by_name.get(first) and by_name.get(second):
            raise BadInput(f"`--{first}` does not go with `--{second.replace('_', '-')}`", "leave one of them out")
    if options["exit_code"] and not dry_run:
        raise BadInput("`--exit-code` is for `--dry-run`", "add --dry-run, or leave it out")
    if options["faults"] is not None and not options["embedded"]:
        raise BadInput("`--faults` is for the embedded cloud only", "add --embedded, or start `forbear cloud --faults`")


def headers_of(options: TransferOptions) -> dict[str, str] | None:
    """Return the headers in `--header`, None without any; raise BadInput for a line that is no header."""
    headers: dict[str, str] = {}
    for line in options["headers"]:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadInput(f"`--header` must be a name, a colon and a value, got {name!r}", "such as 'X-Test: 1'")
        if name.strip().lower() in (known.lower() for known in headers):
            raise BadInput(f"`--header` sets {name.strip()} twice", "leave one of them out")
        headers[name.strip()] = value.strip()
    return headers or None


def keys_of(options: TransferOptions) -> "KeyOptions":
    """Return the options for keys as keywords of the library; raise BadInput for a file without a key."""
    file, name = options["encryption_key"], options["kms_key"]
    return {
        "encryption_key": None if file is None else _key_in(file, "encryption_key"),
        "decryption_keys": decryption_keys_of(options),
        "kms_key": name,
    }


def decryption_keys_of(options: TransferOptions) -> "tuple[EncryptionKey, ...]":
    """Return the keys in the files of `--decryption-key-file`; raise BadInput for a file without a key."""
    return tuple(_key_in(file, "decryption_keys") for file in options["decryption_keys"])


def _key_in(file: Path, parameter: str) -> "EncryptionKey":
    from forbear_transfer.encryption import EncryptionKey
    from forbear_transfer.errors import TransferError

    try:
        return EncryptionKey.from_file(file)
    except TransferError as error:
        raise BadInput(f"`{parameter}` {error}", error.hint) from None
    except ValueError as error:
        cure = "write the base64 of the key, and nothing else, to the file"
        raise BadInput(f"`{parameter}`: {error}", cure) from None


def metadata_of(options: TransferOptions) -> "MetadataOptions":
    """Return the options for metadata as keywords of the library; raise BadInput for one that is no KEY=VALUE."""
    pairs: dict[str, str] = {}
    for text in options["metadata"]:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise BadInput(f"`--metadata` must be KEY=VALUE, got {text!r}", "such as --metadata team=billing")
        if key in pairs:
            raise BadInput(f"`--metadata` sets {key} twice", "leave one of them out")
        pairs[key] = value
    return {
        "content_type": options["content_type"],
        "cache_control": options["cache_control"],
        "content_disposition": options["content_disposition"],
        "content_encoding": options["content_encoding"],
        "content_language": options["content_language"],
        "storage_class": None if options["storage_class"] is None else options["storage_class"].upper(),
        "metadata": pairs,
    }


def make_keywords(options: TransferOptions) -> "SharedOptions":
    """Return the options that `cp` and `rsync` share as keywords of the library; BadInput for wrong ones."""
    return {
        "exclude": options["exclude"],
        "include": options["include"],
        "manifest": options["manifest"],
        "parallel": options["parallel"],
        "gzip": options["gzip"],
        "packed": options["packed"],
        "verify_source": options["verify_source"],
        "preserve_posix": options["preserve_posix"],
        "links": options["links"],
        **metadata_of(options),
        **keys_of(options),
    }
