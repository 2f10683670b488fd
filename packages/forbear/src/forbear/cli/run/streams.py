"""The streams of a program: stdin from its start in each attempt; output of its own, or passed on while it is watched.

Stdin is recorded for later attempts, unless it is a terminal or a device. The output is passed on where patterns are
matched against its lines.
"""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Collection, Sequence
from typing import NamedTuple

_CHUNK = 4096
"""The bytes of one write. If poll() says that a pipe can be written, this much does not block."""

LONGEST_LINE = 8192
"""The bytes of a line that patterns are matched against; the rest of a longer line is passed on unseen."""

_LINE_END = re.compile(rb"[\r\n]")
_STDOUT, _STDERR = 1, 2
_LOWEST = 3

FileAction = tuple[int, int, int]


class Matches(NamedTuple):
    """The first pattern of `--on-output` and of `--stop-on-output` that matched in an attempt, None for none."""

    on: str | None = None
    stop: str | None = None


class Direct:
    """A stream of the program that does not pass through this process: there is nothing to wait for or to do."""

    reading: Collection[int] = ()
    writing: Collection[int] = ()

    def _do_nothing(self, *_: object) -> None:
        pass

    started = pump = stop = close = _do_nothing


class DirectOutput(Direct):
    """Output that the program writes by itself; nothing of it is seen."""

    matches = Matches()

    def start(self) -> list[FileAction]:
        """Return no file actions: the program inherits stdout and stderr."""
        return []


class WatchedOutput:
    """Output that goes through this process at once, while patterns are matched against its lines: see `matches`."""

    def __init__(self, on: Sequence[str], stop: Sequence[str]) -> None:
        self._on = [re.compile(pattern) for pattern in on]
        self._stop = [re.compile(pattern) for pattern in stop]
        self._streams: list[_Stream] = []
        self.matches = Matches()

    @property
    def reading(self) -> Collection[int]:
        """The descriptors to wait for until they can be read."""
        return [stream.source for stream in self._streams if stream.source is not None and not stream.pending]

    @property
    def writing(self) -> Collection[int]:
        """The descriptors to wait for until they can be written: one of a stream whose last piece waits."""
        return [stream.target for stream in self._streams if stream.pending]

    def start(self) -> list[FileAction]:
        """Make pipes for the next attempt, forget all matches, and return the file actions for the program."""
        self.stop()
        self.matches = Matches()
        self._streams = [_Stream(_STDOUT), _Stream(_STDERR)]
        return [(os.POSIX_SPAWN_DUP2, stream.end or 0, stream.target) for stream in self._streams]

    def started(self) -> None:
        """Close our copies of the writing ends, after the program has inherited them."""
        for stream in self._streams:
            stream.close_end()

    def pump(self, ready: Collection[int]) -> None:
        """Write one waiting piece, if its target is ready, and read from each source that is ready."""
        for stream in self._streams:
            if stream.pending and stream.target in ready:
                stream.write()
                break  # another stream may have the same target, which need not be ready any more
        for stream in self._streams:
            if not stream.pending and stream.source in ready:
                for line in stream.read():
                    self._match(line)

    def stop(self) -> None:
        """Close all ends of the pipes at the end of an attempt. A process that still writes to them gets SIGPIPE."""
        for stream in self._streams:
            stream.close()
        self._streams = []

    def _match(self, line: bytes) -> None:
        on, stop = self.matches
        text = line.decode(errors="replace")
        self.matches = Matches(
            _find(self._on, text) if on is None else on, _find(self._stop, text) if stop is None else stop
        )


def _find(patterns: Sequence[re.Pattern[str]], text: str) -> str | None:
    """Return the first pattern that matches a text, None if none does."""
    return next((pattern.pattern for pattern in patterns if pattern.search(text)), None)


class _Stream:
    """One of the two streams: a pipe from the program, and the descriptor `target` that gets its data."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.pending = b""
        source, end = map(_move_up, os.pipe())
        self.source: int | None = source
        self.end: int | None = end
        self._line = b""

    def read(self) -> list[bytes]:
        """Read a piece, which becomes `pending`, and return the lines that it ends, each cut at `LONGEST_LINE`."""
        data = os.read(self.source or 0, _CHUNK)
        self.pending = data
        first, *lines = _LINE_END.split(data)
        self._line += first[: LONGEST_LINE - len(self._line)]
        if lines or not data:  # the last line may lack its end
            lines.insert(0, self._line)
            self._line = lines.pop() if data else b""
        if not data:
            self._close_source()
        return [line for line in lines if line]

    def write(self) -> None:
        """Write of the pending piece what fits; if its reader is gone, close the source. OSError if that fails."""
        try:
            self.pending = self.pending[os.write(self.target, self.pending) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the program gets SIGPIPE, as it would without us
            self.pending = b""
            self._close_source()
        except OSError as error:
            if error.errno != errno.EBADF:  # a closed stream loses what is written to it
                raise
            self.pending = b""

    def close_end(self) -> None:
        if self.end is not None:
            os.close(self.end)
            self.end = None

    def close(self) -> None:
        self.close_end()
        self._close_source()

    def _close_source(self) -> None:
        if self.source is not None:
            os.close(self.source)
            self.source = None


def _move_up(number: int) -> int:
    """Return a descriptor for the same file that is not stdin, stdout or stderr, which may have been closed."""
    if number >= _LOWEST:
        return number
    moved = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _LOWEST)
    os.close(number)
    return moved


_PIECE = 65536
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
            self._sent += os.write(self._writer, self._record.read(_PIECE))
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
        chunk = os.read(self._source, _PIECE)
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
