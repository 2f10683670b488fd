"""The estimate of the time that is left, for transfers of small and large files.

A small file takes a request's time whatever its size, and a large one takes time by its bytes. So the time of a file
has two parts, one for the file and one for its bytes. Both are fitted to the past.
"""

_LARGE = 8 * 1024 * 1024
"""The mean size in bytes from which the time for a file beside that for its bytes is negligible."""
_FADING = 0.97
"""The weight of older windows against the next one: the network and the server change."""
_DISTINCT = 0.02
"""The least variation in the mixture of files and bytes for a fit of both."""
_ALIKE = 4.0
"""The factor within which the mean size of the remaining files must be that of the past ones without such a fit."""


class TimeEstimate:
    """Learns from windows of time how long files and bytes take, and estimates the rest."""

    def __init__(self) -> None:
        self._sums = [0.0] * 8

    def add(self, files: int, count: int, seconds: float) -> None:
        """Add a window in which so many files ended and `count` bytes moved."""
        products = files * files, files * count, count * count, seconds * files, seconds * count
        new = (files, count, seconds, *products)
        self._sums = [before * _FADING + value for before, value in zip(self._sums, new, strict=True)]

    def seconds(self, files: int, count: int, speed: float) -> float | None:
        """Return the seconds that so many more files with `count` bytes in all take; None if that cannot be known.

        That is so while only small files were seen, and large ones are left, or the other way round. `speed` is the
        present one in bytes per second, which counts alone if all files are large.
        """
        if not files or count / files >= _LARGE:
            return count / speed if speed else None
        past_files, past_bytes, past_seconds, of_files, of_both, of_bytes, time_files, time_bytes = self._sums
        if not past_files or not past_seconds:
            return None
        spread = of_files * of_bytes
        rest = spread - of_both**2
        if spread and rest / spread > _DISTINCT:  # least squares, with no negative times
            each = (time_files * of_bytes - time_bytes * of_both) / rest
            byte = (time_bytes * of_files - time_files * of_both) / rest
            if each < 0:
                each, byte = 0.0, time_bytes / of_bytes
            elif byte < 0:
                each, byte = time_files / of_files, 0.0
            return each * files + byte * count
        before, after = past_bytes / past_files, count / files
        if before and not 1 / _ALIKE <= after / before <= _ALIKE:
            return None
        return past_seconds * files / past_files
