"""Redaction: no secret of the known shapes comes through, and what is harmless stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.redact import HIDDEN, redact
from forbear.core.report import Attempt

SECRET = "s3cr3tS3cr3tS3cr3tS3cr3t"

TEXTS = [
    "https://user:{}@storage.googleapis.com/b/o",
    "redis://:{}@127.0.0.1:6379/0 refused",
    "https://{}@example.com",
    "amqp://guest:a@{}@host/vhost",
    "https://storage.googleapis.com/b/o?X-Goog-Algorithm=GOOG4&X-Goog-Signature={}",
    "https://storage.googleapis.com/b/o?X-Goog-Credential={}%2F20260101&X-Goog-Date=20260101T000000Z",
    "https://b.s3.amazonaws.com/o?AWSAccessKeyId=a&Signature={}&Expires=1",
    "https://a.blob.core.windows.net/c/b?sv=2024&sig={}",
    "Max retries exceeded with url: /b/o?GoogleAccessId=a&Signature={} (Caused by ...)",
    "503 POST https://storage.googleapis.com/upload/storage/v1/b/b/o?uploadType=resumable&upload_id={}: Busy",
    "PUT /b/o?upload_id={} HTTP/1.1",
    "https://www.googleapis.com/storage/v1/b?key={}",
    "https://example.com/callback#access_token={}&token_type=bearer",
    "Authorization: Bearer {}",
    "authorization: {}",
    "{{'Authorization': 'Basic {}', 'Host': 'example.com'}}",
    "Proxy-Authorization: Basic {}",
    "Cookie: sid={}; theme=dark",
    "Set-Cookie: sid=1; token={}",
    "x-goog-encryption-key: {}",
    "X-Api-Key: {}",
    "x-amz-security-token: {}",
    "sent with Bearer {} and refused",
    "Basic {}",
    "password={}",
    "connection failed: host=db password='{}' port=5432",
    'client_secret="{}"',
    '{{"client_secret": "{}", "type": "service_account"}}',
    '{{"client_secret": "a\\"{}", "type": "service_account"}}',
    "refresh_token={}&grant_type=refresh_token",
    "aws_secret_access_key = {}",
    "passphrase: {}",
    "session_uri={}",
    "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\nbye",
    "-----BEGIN RSA PRIVATE KEY-----\n{}",
    "Command # 1 (AUTH default {}) of pipeline caused error: WRONGPASS",
    "Command # 1 (HELLO 3 AUTH default {}) of pipeline caused error: WRONGPASS",
    "token ya29.{} expired",
    "bad key AIza{0}{0}",
    "bad token eyJhbGciOiJSUzI1NiJ9.{}.c2ln",
    "The key AKIAIOSFODNN7EXAMPLE{} is unknown",
    "ghp_{} is not allowed",
]
HARMLESS = [
    "",
    "[Errno 104] Connection reset by peer",
    "All connection attempts failed",
    "503 Service Unavailable",
    "HTTPSConnectionPool(host='storage.googleapis.com', port=443): Read timed out. (read timeout=60)",
    "404 GET https://storage.googleapis.com/storage/v1/b/my-bucket/o/a%2Fb.txt: No such object: my-bucket/a/b.txt",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "NOAUTH Authentication required.",
    "could it be? a=b",
    "Basic authentication failed",
    "on_result refused a value of type str",
]


@pytest.mark.parametrize("text", TEXTS)
def test_secrets_are_hidden(text: str) -> None:
    """The secret is gone, and a mark stands where it was."""
    found = redact(text.format(SECRET))
    assert SECRET not in found
    assert HIDDEN in found


@pytest.mark.parametrize("text", HARMLESS)
def test_other_texts_stay(text: str) -> None:
    """What holds no secret is told as it is."""
    assert redact(text) == text


def test_what_is_not_secret_stays_around_it() -> None:
    """Hosts, paths and the names of parameters help to find the cause."""
    assert redact("GET https://me:pw@h/b/o?generation=7&sig=x failed") == (
        f"GET https://{HIDDEN}@h/b/o?generation={HIDDEN}&sig={HIDDEN} failed"
    )


FRAGMENTS = st.sampled_from([
    "?", "&", "=", "#", "://", "@", "/", ":", " ", "\n", '"', "'", ",", "}", ")", "(", "\\", ";", ".", "a", "sig",
    "token", "password", "Bearer ", "Authorization: ", "cookie", "x-key", "AUTH ", "ya29.", "eyJhbGciOiJ9",
    "-----BEGIN PRIVATE KEY-----", HIDDEN, "redacted", "[", "]",
])  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=12).map("".join) | st.text(max_size=60))
def test_twice_is_once(text: str) -> None:
    """A text that was redacted is left alone: reports are made again where they are unpickled."""
    once = redact(text)
    assert redact(once) == once


@given(
    st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%!$*+,:@/'()", min_size=8, max_size=80),
    st.text(" \n\t\"'?&#=(){};\\[]", max_size=20),
)
def test_no_value_of_a_query_comes_through(value: str, before: str) -> None:
    """Whatever is in a URL's query, and whatever stands before the URL, the value is not told."""
    assert value not in redact(f"{before}https://h/p?X-Goog-Signature={value}&upload_id={value} failed")


@given(st.text("abcXYZ019-._~%!$*+,:'()@", min_size=1, max_size=60).filter(lambda text: text not in HIDDEN))
def test_no_userinfo_comes_through(userinfo: str) -> None:
    """Whatever stands before the @ of a URL is hidden, a second @ included."""
    assert redact(f"lost redis://{userinfo}@h:6379/0") == f"lost redis://{HIDDEN}@h:6379/0"


PARTS = ["?a=", "x-", "://", "eyJa.", "password", "Bearer ", "-----BEGIN PRIVATE KEY-----", '"\\', "token: '", "(AUTH "]


@pytest.mark.parametrize("part", PARTS)
def test_long_texts_are_no_trap(part: str) -> None:
    """Text that nearly matches over and over again: a search that went back each time would not end."""
    redact(part * (100_000 // len(part)))


def test_texts_of_attempts_are_redacted_before_they_are_cut() -> None:
    """A token that is cut in half would not be recognised."""
    attempt = Attempt(1, "HTTPError", f"{'.' * 490} ya29.{SECRET}", 0)
    assert attempt.text == f"{'.' * 490} {HIDDEN}"[:500]
