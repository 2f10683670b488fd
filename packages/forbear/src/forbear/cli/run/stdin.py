"""The stdin of the attempts: each of them reads the same input from its start, unless it is a terminal or a device."""

import os
import stat
from collections.abc import Collection

from forbear.cli.run.output import Direct

_CHUNK = 65536
_IN_MEMORY = 1024 * 1024  # bytes; a longer record goes to a temporary file


class DirectStdin(Direct):
    """Stdin passed through: a terminal or a device, or a file that is set back to `offset` before each attempt."""

    def __init__(self, source: int, offset: int | None = None) -> None:
        self._source = source
        self._offset = offset

    def start(self) -> int:
        """Set the file back to its offset, if it has one, and return the descriptor that the next attempt reads."""
        if self._offset is not None:
            os.lseek(self._source, self._offset, os.SEEK_SET)
        return self._source


class RecordedStdin:
    """A stream that is recorded while an attempt reads it, no further, so that later ones read it from its start."""

    def __init__(self, source: int) -> None:
        import tempfile  # not needed for most runs, and expensive to import

        self._source = source
        self._ended = False
        self._record = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - see close
        self._length = 0
        self._sent = 0
        self._reader: int | None = None
        self._writer: int | None = None

    def start(self) -> int:
        """Make a pipe for the next attempt, and return the descriptor from which it reads; `pump` then fills it."""
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._sent = 0
        self._close_at_end()
        return self._reader

    def started(self) -> None:
        """Close our copy of the pipe's reading end, after the program has inherited it."""
        if self._reader is not None:
            os.close(self._reader)
            self._reader = None

    @property
    def reading(self) -> Collection[int]:
        """The stream, if all that is recorded was written to the pipe; empty otherwise, and once the pipe is closed."""
        return () if self._writer is None or self._sent < self._length else (self._source,)

    @property
    def writing(self) -> Collection[int]:
        """The pipe to the attempt, if a part of the record was not written to it yet; empty otherwise."""
        return () if self._writer is None or self._sent == self._length else (self._writer,)

    def pump(self) -> None:
        """Move data from the record to the pipe; if the pipe has all of the record, first read more from the stream.

        If the program has closed its stdin, the pipe is closed. Raises OSError if the stream is broken.
        """
        if self._writer is None:
            return
        try:
            if self._sent == self._length:
                self._take()
            self._record.seek(self._sent)
            self._sent += os.write(self._writer, self._record.read(_CHUNK))
        except BlockingIOError:
            return
        except BrokenPipeError:  # the program has closed its stdin
            self.stop()
        else:
            self._close_at_end()

    def stop(self) -> None:
        """Close both ends of the pipe, as far as they are open, at the end of the attempt."""
        self.started()
        if self._writer is not None:
            os.close(self._writer)
            self._writer = None

    def close(self) -> None:
        """Delete the record at the end of the run."""
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


def open_stdin(source: int = 0, *, attempts: int | None) -> DirectStdin | RecordedStdin:
    """Return the stdin for this many attempts (None: no limit), which read from the descriptor `source`.

    A stream is recorded if more than one attempt is allowed, all else passed through. A closed stdin reads as empty.
    """
    try:
        mode = os.fstat(source).st_mode
    except OSError:
        empty = os.open(os.devnull, os.O_RDONLY)  # takes the lowest free number, most likely that of `source`
        os.set_inheritable(empty, True)
        return DirectStdin(empty)
    if attempts == 1 or stat.S_ISCHR(mode):
        return DirectStdin(source)
    try:
        return DirectStdin(source, os.lseek(source, 0, os.SEEK_CUR))
    except OSError:
        return RecordedStdin(source)
