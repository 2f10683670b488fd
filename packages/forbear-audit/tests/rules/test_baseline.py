"""Baselines that are broken: each gets one clear line."""

from pathlib import Path

import pytest

from forbear_audit.rules.baseline import Baseline


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a file that --write-baseline has written"),
        ("[]", "must be a file that --write-baseline has written"),
        ("[" * 100_000, "must be a file that --write-baseline has written"),
        ("9" * 5_000, "must be a file that --write-baseline has written"),
        ('{"version": 1}', "must be a file that --write-baseline has written"),
        ('{"version": 1e999, "findings": {}}', "must be of version 1, got .* of version inf"),
        ('{"version": true, "findings": {}}', "must be of version 1, got .* of version True"),
        ('{"version": 1, "findings": []}', r"known.json: `findings` must be a table of numbers, got \[\]"),
        ('{"version": 1, "findings": {"a": "b"}}', "known.json: `findings.a` must be a number from 1, got 'b'"),
        ('{"version": 1, "findings": {"a": 1e999}}', "known.json: `findings.a` must be a number from 1, got inf"),
        ('{"version": 1, "findings": {"a": NaN}}', "known.json: `findings.a` must be a number from 1, got nan"),
        ('{"version": 1, "findings": {"a": -1}}', "known.json: `findings.a` must be a number from 1, got -1"),
        ('{"version": 1, "findings": {"a": true}}', "known.json: `findings.a` must be a number from 1, got True"),
        ('{"version": 1, "findings": {"a": 1.5}}', "known.json: `findings.a` must be a number from 1, got 1.5"),
        (f'{{"version": 1, "findings": {{"a": {"[" * 500 + "]" * 500}}}}}', "`findings.a` must be a number from 1"),
        ('{"version": 2, "findings": {}}', "must be of version 1, got .* of version 2"),
    ],
)
def test_baselines_that_are_broken(text: str, message: str, tmp_path: Path) -> None:
    """A file that is no baseline, and one of another version, is refused."""
    (tmp_path / "known.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        Baseline.read(tmp_path / "known.json")
