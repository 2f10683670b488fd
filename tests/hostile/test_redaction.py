"""Redaction and hostile texts: twice the text is never much more than twice the work."""

import re
from itertools import count

import pytest

from forbear.text import redact
from forbear_testkit.hostile.steps import spans

PIECES = [
    "a", "-", " ", "(", ")", "=", ":", "@", "/", "?", "&a=", "#", "%3F", "%3D", "%25", "%3A%2F%2F", "://", "://a",
    "http://u:", "redis://:", "http://a@", "\\", "\\\\", '"', "'", "b'", "\\n", "a-", "x-", "x-a-", "X-Key", "eyJ",
    "eyJAAAAAAAA-", "-eyJ", "ya29.", "-AIza", " AKIA", "gho_", "github_pat_", "1//0", "xoxb", "sk-", "-----BEGIN ",
    "-----BEGIN PRIVATE KEY ", "secret", "secret ", "secret-", "token=", 'token="', "token='\\", "token: ", "token>",
    "<token ", "--", "--a-", "--token ", "password    ", "api key ", "Authorization", "authorization   ",
    "cookie: [redacted] ", 'cookie", "', '"cookie","value":', "bearer ", "Basic auth", "AUTH", "AUTH ", "( AUTH ",
    "SETUSER ", "SETUSER a ", "requirepass ", "%3Fa%3D", ":a@", ":a@b", "/bot123456:", "hooks.slack.com/",
    "upload_id", "credential credential", "signature;", "&a=[redacted]", "u:p@h", "u:p@", "'u:", " u:@h.", "@h/",
    "@a.a-", "/services/TA", "/services/T/B/", "/triggers/E/1", "hc-ping.com", "hc-ping.com/", "hc-ping.com', port=4",
    "hook.a', port=44): Max retries exceeded with url: ", "/cron/a", "/cron/a/", "/ping/c0ffee01-",
    "/generic/1/alert/", "/integration/a", "12345678:AA", "12345678:AAa-", "c0ffee0123456789", "c0ffee01:",
    "/incoming-webhook",
]  # fmt: skip
"""Each is repeated: texts that nearly match at every place."""


def _steps(text: str) -> int:
    """Return the steps that `hide` needs, and check on the way that they are those of `re`."""
    redact.hide("")
    has_sign, shapes = redact._compiled[0]
    total = len(text)
    if has_sign(text.lower()):
        signs = text.lower()
        for words, shape, replacement in shapes:
            if any(word in signs for word in words):
                pattern = re.compile(shape)
                found, steps = spans(pattern, text)
                assert found == [match.span() for match in pattern.finditer(text)], shape
                total += steps
                text = pattern.sub(replacement, text)
    return total


def _grows_linearly(piece: str, length: int) -> None:
    once, twice = (_steps((piece * (size // len(piece) + 1))[:size]) for size in (length, 2 * length))
    assert twice <= 3 * once, f"{once} steps for {length} characters, {twice} for twice as many"


@pytest.mark.parametrize("piece", PIECES[::3])
def test_twice_the_text_is_at_most_three_times_the_work(piece: str) -> None:
    """Steps of the matcher are counted, so the result is the same on any machine."""
    _grows_linearly(piece, 240)


@pytest.mark.soak
@pytest.mark.parametrize("before", ["", "http://", "token=", "(", "Authorization: "])
@pytest.mark.parametrize("piece", PIECES)
def test_so_it_is_for_every_shape(piece: str, before: str) -> None:
    """The same for more and longer texts, alone and behind the beginning of a secret."""
    _grows_linearly(piece, 500)
    once, twice = (_steps(before + piece * size) for size in (100, 200))
    assert twice <= 3 * once


def test_the_counter_sees_a_pattern_that_is_quadratic() -> None:
    """A test that counts must be able to fail: this was the pattern for web tokens once."""
    old = re.compile(r"\beyJ[\w-]{8,}(?:\.[\w-]*)+")
    once, twice = (spans(old, "eyJaaaaaaaa-" * size)[1] for size in (20, 40))
    assert twice > 3.5 * once


@pytest.mark.parametrize("pattern", [shape for _, shape in redact._SHAPES])
def test_every_secret_has_a_sign(pattern: str) -> None:
    """No shape is left out because the quick look does not know its signs."""
    words = next(words for words, shape in redact._SHAPES if shape == pattern).split()
    assert all(re.fullmatch(rf"(?s).*(?:{redact._ANY_SIGN}).*", word) for word in words)


@pytest.mark.parametrize("size", [redact.LIMIT, 10 * redact.LIMIT, 1_000_000])
def test_a_text_of_any_size_is_cut_first(size: int) -> None:
    """The text that is kept is short, and so is the one that is searched."""
    seen: list[int] = []
    for character, number in zip("abx", count(), strict=False):
        text = character * size
        seen.append(len(redact.redact(text)))
        assert seen[number] <= redact.LIMIT
    assert len(set(seen)) == 1
