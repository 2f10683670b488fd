"""Copy an object within Cloud Storage. The service copies (rewrites) it in one or more calls; no data comes here.

The source is pinned to one version, and the target has a precondition, as for uploads. The token of a rewrite that
takes several calls is saved, so that a later process can continue it.
"""

import json
from contextlib import nullcontext
from typing import Any, Unpack

from forbear.adapters import error_text
from forbear.verdicts import TRANSIENT
from forbear_transfer.encryption import Keys, NewObjectOptions, ObjectEncryption, key_of
from forbear_transfer.errors import (
    ChecksumMismatch,
    HttpError,
    Stalled,
    StrPath,
    TargetChanged,
    TransferError,
    WrongResponse,
    maybe_done,
)
from forbear_transfer.metadata import ObjectMetadata, check_keywords, with_keywords, writable_resource
from forbear_transfer.objects import FIELDS, Object, Url
from forbear_transfer.precondition import Precondition, make_key_error, make_unencrypted_error
from forbear_transfer.progress import current_progress, warner
from forbear_transfer.state import SMALL, State
from forbear_transfer.storage.bodies import LONGEST_TOKEN
from forbear_transfer.storage.calls import Retries, Sent
from forbear_transfer.storage.client import Storage
from forbear_transfer.wire.response import WireError

_GRAIN = 1024 * 1024
_JSON = {"Content-Type": "application/json; charset=UTF-8"}
_FIELDS = f"done,rewriteToken,totalBytesRewritten,resource({FIELDS})"


@with_keywords(NewObjectOptions)
async def copy(
    storage: Storage,
    source: Url | Object,
    target: Url,
    *,
    generation: int | None = None,
    state: StrPath | None = None,
    chunk_size: int | None = None,
    accept_equal: bool = False,
    decryption_keys: Keys | None = None,
    **options: Unpack[NewObjectOptions],
) -> Object:
    """Copy the object `source` with its metadata to `target`, and return the new object.

    - `generation` is the version of the target that may be replaced: 0 for none (else TargetExists), a number for that
      version (else TargetChanged), None for any.
    - `state` is the folder for the state by which the copy of an object of more than 8 MiB continues after its process
      died. Default: $FORBEAR_STATE_DIR, or forbear/transfers in the user's state folder.
    - `chunk_size` is how many bytes the service may copy in one call (a multiple of 1 MiB). By default it decides.
    - `accept_equal` returns an object that is at the target already, and equals the source with all its metadata.
    - The options for metadata are those of `cp`; they change what the copy has from its source. So are the keys:
      `encryption_key` or `kms_key` encrypts the copy, else it has the encryption of its bucket. The source is read with
      `encryption_key` or one of `decryption_keys`. With another key or storage class, source and target may be the
      same object; if another client writes it meanwhile, TargetChanged.

    If the source is replaced meanwhile, the copy starts again with the new version, unless `source` is a Url with a
    generation. Raises HttpError (404 without a source), ChecksumMismatch, Locked, NoEncryptionKey, and TransferError
    for a copy of an object onto itself, or another key than that of the run that is continued. Example: see `upload`.
    """
    if chunk_size is not None and (chunk_size <= 0 or chunk_size % _GRAIN):
        raise ValueError(f"`chunk_size` must be a multiple of {_GRAIN} (1 MiB) or None, got {chunk_size!r}")
    check_keywords("copy", NewObjectOptions, options)
    chosen = ObjectMetadata.of(options)
    encryption = ObjectEncryption.of({**options, "decryption_keys": decryption_keys})
    condition = Precondition(storage, target, generation, encryption)
    if isinstance(source, Url):
        source.check_object("source")
    version = source if isinstance(source, Object) else await storage.stat(source, encryption.keys)
    if version is None:
        raise HttpError(f"copy {source}", 404, "there is no such object")
    key_of(version, encryption.keys)
    version = await storage.completed(version, encryption.keys)
    is_pinned = isinstance(source, Url) and source.generation is not None
    is_same = (version.bucket, version.name) == (target.bucket, target.name)
    other_class = is_same and chosen.storage_class not in (None, version.storage_class)
    if not other_class and (not encryption.encrypts or encryption.is_of(version)):
        await _check_differs(storage, version, target, has_key=encryption.encrypts)
    elif is_same and generation is None and not is_pinned:
        # It gets another key or class, and must not replace what another client writes meanwhile.
        own = encryption if encryption.encrypts else encryption.keep(version)
        condition = Precondition(storage, target, version.generation, own)
    current_progress.get().sized(version.size)
    key = "rewrite", storage.endpoint, str(Url(version.bucket, version.name)), str(target)
    with State(state, *key, warn=warner()) if version.size > SMALL else nullcontext() as kept:
        work = _Rewrite(
            storage, version, condition, kept, chosen, is_pinned=is_pinned, accepts_equal=accept_equal,
            chunk_size=chunk_size,
        )  # fmt: skip
        return await work.run()


async def _check_differs(storage: Storage, source: Object, target: Url, *, has_key: bool) -> None:
    """Raise TransferError if `source` is the live version of the target; an older one may replace it."""
    if (source.bucket, source.name) != (target.bucket, target.name):
        return
    there = await storage.stat(target)
    if there is not None and there.generation == source.generation:
        text = f"{source.url} is the present version of {target}: source and target are the same"
        raise TransferError(f"{text}, and it has this key already" if has_key else text)


class _Rewrite:
    """One copy of `source` to the target of `condition`. Call `run` once. `state` is None for a small object.

    `chosen` is the metadata that the copy has instead of that of the source. `is_pinned` says that no newer version of
    the source may be copied instead. `chunk_size` is as for `copy`.
    """

    def __init__(
        self,
        storage: Storage,
        source: Object,
        condition: Precondition,
        state: State | None,
        chosen: ObjectMetadata,
        *,
        is_pinned: bool,
        accepts_equal: bool,
        chunk_size: int | None,
    ) -> None:
        self._storage = storage
        self._source = source
        self._condition = condition
        self._state = state
        self._chosen = chosen
        self._is_pinned = is_pinned
        self._accepts_equal = accepts_equal
        self._chunk_size = chunk_size
        self._retries = Retries(storage.policy, Sent("POST", condition.target), "storage.objects.rewrite")
        self._moved = 0
        self._token: str | None = None
        self._in_doubt = False
        self._identity = condition.encryption.identity

    async def run(self) -> Object:
        """Copy the object and return the copy, after a check of its size and CRC32C.

        Continue a rewrite that an earlier process saved with the same precondition, metadata and keys. Start again if
        its token expires, the source was replaced (unless it is pinned), or the target is a version that may be.
        """
        if self._state is not None:
            self._resume(self._state)
        while True:
            made: Object | None = None
            try:
                made = await self._rewrite()
            except HttpError as error:
                if error.status == 412:
                    made = await self._resolve_refusal(error)
                elif error.status == 404 and not self._is_pinned:
                    if Url(self._source.bucket, self._source.name) == self._condition.target:
                        self._in_doubt = True  # a copy onto itself replaces its source
                        made = await self._find_copy() if self._chosen else None
                        if made is None and self._chosen:
                            raise TargetChanged(f"{self._condition.target} was written meanwhile") from error
                    if made is None:
                        await self._find_replacement(error)
                elif self._token is None or error.status not in {400, 410}:
                    raise
                if made is None:  # a token is valid for one precondition, and for some time
                    self._restart()
                    continue
            except (WireError, Stalled) as error:
                await self._find_after_lost_response(error)
                continue
            if self._state is not None:
                self._state.forget()
            return await self._verify(made)

    def _resume(self, state: State) -> None:
        """Take over a saved rewrite; TransferError if it has another customer-supplied key for the copy."""
        match state.load():
            case {"source": self._source.generation, "token": str(token), "target": int(target), **more} if (
                more.get("resource") == self._change_metadata() and more.get("required") == self._condition.required
            ):
                sha256 = more.get("key_sha256")
                if sha256 not in (None, self._identity.get("key_sha256")):
                    raise make_key_error(f"copy {self._source.url} to {self._condition.target}", sha256, state.path)
                if {name: more.get(name) for name in ("key_sha256", "kms_key") if name in more} == self._identity:
                    self._token, self._condition.generation = token, target
                    self._in_doubt = True  # the process may have died before it had the last response
            case _:
                pass

    async def _resolve_refusal(self, error: HttpError) -> Object | None:
        """Return the object at the target if this copy has made it, None if the copy must be tried again."""
        source = self._source
        self._in_doubt = self._in_doubt or maybe_done(error)
        if self._accepts_equal and not self._in_doubt and (there := await self._find_copy()) is not None:
            return there
        wanted = self._change_metadata() or {"contentType": source.content_type, "metadata": source.metadata}
        sent = (source.size, source.crc32c or "") if self._in_doubt else None
        return await self._condition.resolve_refusal(error, wanted, sent)

    async def _find_copy(self) -> Object | None:
        there, source = await self._condition.look(), self._source
        wanted = self._change_metadata() or writable_resource(source)
        if there is None or source.crc32c is None or (there.crc32c, there.size) != (source.crc32c, source.size):
            return None
        same = there.storage_class == wanted.pop("storageClass", there.storage_class)
        same = same and writable_resource(there) == wanted and self._condition.encryption.is_of(there)
        return there if same else None

    async def _find_after_lost_response(self, error: Exception) -> None:
        """Wait before a call that says how far the copy has come; raise `error` unless its report leaves that open."""
        if not maybe_done(error):
            raise error
        self._in_doubt = True
        operation = f"copy {self._source.url} to {self._condition.target}"
        await self._retries.after(WrongResponse(f"{operation}: the response broke off: {error_text(error)}"), TRANSIENT)

    async def _find_replacement(self, error: HttpError) -> None:
        """Set the source to its live version, after a wait; raise `error` without a newer one, or a retry."""
        url, keys = Url(self._source.bucket, self._source.name), self._condition.encryption.keys
        version = await self._storage.stat(url, keys)
        if version is None or version.generation == self._source.generation:
            raise error
        await self._retries.after(error, TRANSIENT)
        self._source = version

    async def _rewrite(self) -> Object:
        """Call the service until the copy is complete; return the object that the service reports, unchecked.

        The token of each unfinished call is saved. A call that copies nothing more than the one before counts as a
        failed attempt. WrongResponse for a response that makes no sense.
        """
        source, target = self._source, self._condition.target
        resource, encryption = self._change_metadata(), self._condition.encryption
        headers, body = ({}, b"") if resource is None else (_JSON, json.dumps(resource).encode())
        source_key = self._storage.key_headers(key_of(source, encryption.keys), of_source=True)
        headers = {**headers, **self._condition.key_headers, **source_key}
        in_place = (source.bucket, source.name) == (target.bucket, target.name)
        path, operation = source.url.rewrite_path(target), f"copy {source.url} to {target}"
        while True:
            query = {
                "ifGenerationMatch": self._condition.generation,
                "sourceGeneration": source.generation,
                "ifSourceMetagenerationMatch": source.metageneration if resource is not None and in_place else None,
                "destinationKmsKeyName": encryption.kms_key,
                "rewriteToken": self._token,
                "maxBytesRewrittenPerCall": self._chunk_size,
                "fields": _FIELDS,
            }
            values = (await self._storage.call(operation, "POST", path, query, headers=headers, body=body)).json()
            try:
                count, done = int(values.get("totalBytesRewritten", 0)), values["done"]
                before, self._token = self._token, None if done else str(values["rewriteToken"])
                if len(self._token or "") > LONGEST_TOKEN:
                    raise ValueError("its token is too long")
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise WrongResponse(f"{operation}: the response does not say how far the copy has come") from error
            if count < 0 or count > source.size:
                raise WrongResponse(f"{operation}: the server says that it has copied {count} of {source.size} bytes")
            if not done and (before is None or count > self._moved):
                self._retries.progressed()
            elif not done:
                await self._retries.after(WrongResponse(f"{operation}: the server has copied nothing more"), TRANSIENT)
            self._move_to(count)
            if done:
                return Object.of(values.get("resource", {}))
            if self._state is not None:
                begun = {"source": source.generation, "token": self._token, "target": self._condition.generation}
                begun = {**begun, "required": self._condition.required, **self._identity}
                self._state.save(begun if resource is None else {**begun, "resource": resource})

    def _change_metadata(self) -> dict[str, Any] | None:
        """Return all metadata of the copy, as the API has it; None if the service copies that of the source."""
        return self._chosen.over(writable_resource(self._source)) if self._chosen else None

    def _move_to(self, count: int) -> None:
        current_progress.get().moved(count - self._moved)
        self._moved = count

    def _restart(self) -> None:
        if self._state is not None:
            self._state.forget()
        self._token = None
        self._move_to(0)

    async def _verify(self, made: Object) -> Object:
        """Return the copy if it has the size and CRC32C of the source; else delete it and raise ChecksumMismatch.

        WrongResponse if it is not encrypted by the key that was sent; and, without a deletion, if `made` is not at the
        target or was there before. A copy that has replaced its own source is never deleted: it may be the only one.
        """
        self._condition.check_made(made)
        source, encryption = self._source, self._condition.encryption
        in_place = (source.bucket, source.name) == (made.bucket, made.name)
        if not encryption.is_of(made):
            if not in_place:
                await self._storage.delete(made.url)
            raise make_unencrypted_error(made, deleted=not in_place)
        if made.crc32c is None and source.crc32c is not None:  # its bucket may have a key
            made = await self._storage.stat(made.url, encryption.keys) or made
        if made.crc32c != source.crc32c or made.size != source.size:
            text = f"the copy {made.url} differs from {source.url}"
            if in_place:
                raise ChecksumMismatch(text)
            await self._storage.delete(made.url)
            raise ChecksumMismatch(f"{text}, and was deleted")
        self._move_to(made.size)
        return made
