"""What attempts read from stdin: the same for each of them. It starts no program and waits for nothing."""

import os
import stat
from collections.abc import Collection

_CHUNK = 65536
_IN_MEMORY = 1024 * 1024  # bytes; what is more goes to a temporary file


class Passed:
    """Stdin as it is: a terminal or device, or a file that is rewound to where it stood."""

    reading: Collection[int] = ()
    writing: Collection[int] = ()

    def __init__(self, source: int, offset: int | None = None) -> None:
        self._source = source
        self._offset = offset

    def start(self) -> int:
        """The file that the next attempt reads."""
        if self._offset is not None:
            os.lseek(self._source, self._offset, os.SEEK_SET)
        return self._source

    def started(self) -> None:
        """The attempt has the file."""

    def pump(self) -> None:
        """Nothing has to be moved."""

    def stop(self) -> None:
        """The attempt is over."""

    def close(self) -> None:
        """There is no further attempt."""


class Recorded:
    """A stream: recorded on its way to the first attempt, so that the next one reads it from the start.

    No attempt has to wait for the stream's end, and no more is read than attempts ask for, but for what a pipe holds.
    """

    def __init__(self, source: int) -> None:
        import tempfile  # not needed for most runs, and not cheap to import

        self._source = source
        self._ended = False
        self._record = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - see close
        self._length = 0
        self._sent = 0
        self._reader: int | None = None
        self._writer: int | None = None

    def start(self) -> int:
        """The file that the next attempt reads."""
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._sent = 0
        self._close_at_end()
        return self._reader

    def started(self) -> None:
        """The attempt has the file, so we let go of it."""
        if self._reader is not None:
            os.close(self._reader)
            self._reader = None

    @property
    def reading(self) -> Collection[int]:
        """Wait for the stream only when the attempt has all that came before."""
        return () if self._writer is None or self._sent < self._length else (self._source,)

    @property
    def writing(self) -> Collection[int]:
        """Wait for the attempt to take what it does not have."""
        return () if self._writer is None or self._sent == self._length else (self._writer,)

    def pump(self) -> None:
        """Move what can be moved, once a file to read or write is ready; OSError where the stream is broken."""
        if self._writer is None:
            return
        try:
            if self._sent == self._length:
                self._take()
            self._record.seek(self._sent)
            self._sent += os.write(self._writer, self._record.read(_CHUNK))
        except BlockingIOError:
            return
        except BrokenPipeError:  # the attempt wants no more
            self.stop()
        else:
            self._close_at_end()

    def stop(self) -> None:
        """The attempt is over, or has read all."""
        self.started()
        if self._writer is not None:
            os.close(self._writer)
            self._writer = None

    def close(self) -> None:
        """There is no further attempt."""
        self._record.close()

    def _take(self) -> None:
        chunk = os.read(self._source, _CHUNK)
        self._ended = not chunk
        self._record.seek(self._length)
        self._record.write(chunk)
        self._length += len(chunk)

    def _close_at_end(self) -> None:
        if self._ended and self._sent == self._length and self._writer is not None:
            os.close(self._writer)
            self._writer = None


def replayed(source: int = 0, *, attempts: int | None) -> Passed | Recorded:
    """Stdin for so many attempts; where it is closed, they find it empty."""
    try:
        mode = os.fstat(source).st_mode
    except OSError:
        empty = os.open(os.devnull, os.O_RDONLY)  # takes the lowest free number, most likely that of `source`
        os.set_inheritable(empty, True)
        return Passed(empty)
    if attempts == 1 or stat.S_ISCHR(mode):
        return Passed(source)
    try:
        return Passed(source, os.lseek(source, 0, os.SEEK_CUR))
    except OSError:
        return Recorded(source)
