"""Encryption keys: those that users supply for their objects (AES-256), and the names of keys in Cloud KMS.

The service needs a customer-supplied key in each request that writes or reads the object, and keeps only its SHA-256.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, TypedDict

from forbear.adapters import HiddenText, dataclass, replace
from forbear_transfer.errors import NoEncryptionKey, StrPath, TransferError, unreadable
from forbear_transfer.metadata import MetadataOptions
from forbear_transfer.objects import Object

_SIZE = 32
_LONGEST_FILE = 4096
_RULE = "base64 of 32 bytes, such as `openssl rand -base64 32` prints"
_KEY = r"[\w+/-]{40,43}="  # a path has no two slashes in a row, so some may be missing
_WRITE_KEY = "write the key to a file, and name the file"
_PREFIX, _SOURCE_PREFIX = "x-goog-encryption-", "x-goog-copy-source-encryption-"
_KMS_KEY = r"projects/[^/\s]+/locations/[\w-]{1,63}/keyRings/[\w-]{1,63}/cryptoKeys/[\w-]{1,63}"


class EncryptionKey:
    """A customer-supplied key (AES-256): base64 text, or its 32 bytes. Its repr and all texts of forbear hide it.

    `sha256` is the SHA-256 of the key in base64, by which the service identifies it. Two keys with the same bytes are
    equal. ValueError for another text or number of bytes. The key can be pickled, for workers in other processes.

    >>> key = EncryptionKey(bytes(32))
    >>> cp("photos/1.jpg", "gs://my-bucket/secret.jpg", encryption_key=key).done
    1
    >>> ls("gs://my-bucket/secret.jpg")[0].key_sha256 == key.sha256
    True
    """

    __slots__ = ("_sha256", "_text")

    def __init__(self, key: str | bytes) -> None:
        text, self._sha256 = _parse(key, "`key`")
        self._text = HiddenText(text)

    @classmethod
    def from_file(cls, path: StrPath) -> Self:
        """Return the key in a file, which has its base64 text and nothing else but white space.

        TransferError if the file cannot be read, ValueError if it holds something else. If `path` looks like a key
        itself, the error does not show it.
        """
        try:
            with open(path, "rb") as file:
                text = file.read(_LONGEST_FILE)
        except OSError as error:
            if re.fullmatch(_KEY, str(path), re.ASCII):
                raise TransferError("cannot read the file: its name looks like a key itself", _WRITE_KEY) from None
            raise unreadable(str(path), error) from error
        return cls(_parse(text.decode("ascii", "replace"), str(path))[0])

    @property
    def sha256(self) -> str:
        """The SHA-256 of the key, in base64. It is no secret: the service shows it with each object of the key."""
        return self._sha256

    def headers(self, *, of_source: bool = False) -> dict[str, str]:
        """Return the headers of a request that needs the key, `of_source` for the source of a copy. They are secret."""
        prefix = _SOURCE_PREFIX if of_source else _PREFIX
        return {f"{prefix}algorithm": "AES256", f"{prefix}key": self._text, f"{prefix}key-sha256": self._sha256}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EncryptionKey) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"EncryptionKey(sha256={self._sha256!r})"


Keys = EncryptionKey | Sequence[EncryptionKey]
"""One or several keys."""


class EncryptionOptions(TypedDict, total=False):
    """The keyword options for the keys of new objects; the docstring of `cp` describes them.

    Example: see `EncryptionKey`.
    """

    encryption_key: EncryptionKey | None
    kms_key: str | None


class KeyOptions(EncryptionOptions, total=False):
    """The keyword options for the keys of new and of existing objects; the docstring of `cp` describes them."""

    decryption_keys: Keys | None


class NewObjectOptions(MetadataOptions, EncryptionOptions, total=False):
    """The keyword options for metadata and keys of new objects; the docstring of `cp` describes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEncryption:
    """The keys of a transfer: `key` or `kms_key` encrypts new objects, and `decryption_keys` read existing ones.

    With neither of the first two, new objects have the encryption of their bucket. Example: see `EncryptionKey`.
    """

    key: EncryptionKey | None = None
    kms_key: str | None = None
    decryption_keys: tuple[EncryptionKey, ...] = ()

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the keys in keyword options, and leave out other options.

        ValueError for a wrong name of a Cloud KMS key, and for both kinds of keys at once. TypeError for another type.
        """
        key, kms_key = options.get("encryption_key"), options.get("kms_key")
        if key is not None:
            _check_type("encryption_key", key)
            if kms_key is not None:
                raise ValueError("`encryption_key` does not go with `kms_key`; leave one of them out")
        if kms_key is not None and not isinstance(kms_key, str):
            raise TypeError(f"`kms_key` must be a string, got {type(kms_key).__name__}")
        if kms_key is not None and not re.fullmatch(_KMS_KEY, kms_key, re.ASCII):
            raise ValueError(
                "`kms_key` must be projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY, "
                f"got {kms_key!r}; copy the name of the key from Cloud KMS"
            )
        return cls(key=key, kms_key=kms_key, decryption_keys=check_keys(options.get("decryption_keys")))

    def __bool__(self) -> bool:
        """Return whether there is a key of any kind."""
        return bool(self.encrypts or self.decryption_keys)

    @property
    def encrypts(self) -> bool:
        """True if new objects get a key."""
        return self.key is not None or self.kms_key is not None

    @property
    def keys(self) -> tuple[EncryptionKey, ...]:
        """All keys that objects may be read with: the one for new objects, too."""
        return self.decryption_keys if self.key is None else (self.key, *self.decryption_keys)

    @property
    def identity(self) -> dict[str, str]:
        """The part of the key for new objects that a state keeps: its SHA-256 or its name; empty without such a key."""
        if self.key is not None:
            return {"key_sha256": self.key.sha256}
        return {} if self.kms_key is None else {"kms_key": self.kms_key}

    def options(self) -> EncryptionOptions:
        """Return the keys for new objects as keyword options, for functions that take them."""
        return EncryptionOptions(encryption_key=self.key, kms_key=self.kms_key)

    def keep(self, there: Object) -> Self:
        """Return these keys, with those of an object for its next version; NoEncryptionKey without its key."""
        kms_key = None if there.kms_key is None else there.kms_key.partition("/cryptoKeyVersions/")[0]
        return replace(self, key=key_of(there, self.keys), kms_key=kms_key)

    def is_of(self, there: Object) -> bool:
        """Return whether an object is encrypted as new objects are to be.

        Without a key for them, any object without a customer-supplied key is.
        """
        if self.kms_key is not None:
            return _is_version(there.kms_key, self.kms_key)
        return there.key_sha256 == (None if self.key is None else self.key.sha256)


DEFAULT_ENCRYPTION = ObjectEncryption()


def check_keys(keys: Keys | None) -> tuple[EncryptionKey, ...]:
    """Return one or several `decryption_keys` as a tuple; TypeError for anything else."""
    if keys is None:
        return ()
    several = tuple(keys) if isinstance(keys, Iterable) else (keys,)  # an iterator can be read only once
    for key in several:
        _check_type("decryption_keys", key)
    return several


def key_of(there: Object, keys: Sequence[EncryptionKey]) -> EncryptionKey | None:
    """Return the key that an object is read with; None if it has no customer-supplied key.

    NoEncryptionKey if it has one that is not among `keys`.
    """
    if there.key_sha256 is None:
        return None
    key = matching(there, keys)
    if key is None:
        have = "no key was named" if not keys else "it is none of those that were named"
        raise NoEncryptionKey(f"{there.url} is encrypted by the key with the SHA-256 {there.key_sha256}; {have}")
    return key


def matching(there: Object, keys: Sequence[EncryptionKey]) -> EncryptionKey | None:
    """Return the key of an object if it is among `keys`, else None."""
    return next((key for key in keys if key.sha256 == there.key_sha256), None)


def _is_version(version: str | None, name: str) -> bool:
    """Return whether `version` is a version of the Cloud KMS key `name`; one may have the number of the project."""
    project, _, key = name.removeprefix("projects/").partition("/")
    other, _, rest = (version or "").removeprefix("projects/").partition("/")
    return f"{rest}/".startswith(f"{key}/") and (other == project or other.isdigit() != project.isdigit())


def _parse(key: object, what: str) -> tuple[str, str]:
    """Return a key and its SHA-256, both in base64; `what` names the key in a ValueError, which does not show it."""
    if not isinstance(key, str | bytes):
        raise TypeError(f"{what} must be a string or bytes, got {type(key).__name__}")
    raw = key
    if isinstance(raw, str):
        try:
            raw = base64.b64decode(raw.strip(), validate=True)
        except ValueError:  # binascii.Error, and text that is not ASCII
            raise ValueError(f"{what} must be {_RULE}; this is no base64") from None
    if len(raw) != _SIZE:
        raise ValueError(f"{what} must be {_RULE}, got {len(raw)} bytes")
    digest = hashlib.sha256(raw).digest()
    return base64.b64encode(raw).decode(), base64.b64encode(digest).decode()


def _check_type(parameter: str, key: object) -> None:
    if not isinstance(key, EncryptionKey):
        raise TypeError(f"`{parameter}` must be an EncryptionKey, got {type(key).__name__}; write EncryptionKey(...)")
