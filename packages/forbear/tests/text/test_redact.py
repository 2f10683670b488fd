"""Redaction: no secret of the known shapes comes through, and what is harmless stays."""

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.attempt import Attempt
from forbear.text import redact as module
from forbear.text.redact import HIDDEN, LIMIT, HiddenBytes, HiddenText, conceal, redact, without_user

SECRET = "s3cr3tS3cr3tS3cr3tS3cr3t"
HEX = "c0ffee0123456789c0ffee0123456789"
UUID = "c0ffee01-2345-6789-abcd-ef0123456789"
TELEGRAM = "AAc0ffee_0123456789-c0ffee_01234567"

TEXTS = [
    "https://user:{}@storage.googleapis.com/b/o",
    "gcloud storage cp --decryption-keys={} gs://b/o .",
    "decryption_key1 = {}",
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
    "redis://:pa/{}@h:6379/0 refused",
    "redis://user:pa?{}@h:6379/0 refused",
    "redis://user:12/{}@h:6379/0 refused",
    "https://user:pa#{}@h/ refused",
    "https%3A%2F%2Fuser%3A{}%40h%2F is not there",
    "no route to user:{}@h:6379",
    "next=%3Fupload_id%3D{}",
    "next=%253Fa%253D1%2526upload_id%253D{}",
    "next=%25253Fa%25253D{}",
    "see /o;jsessionid={}",
    "[(b'x-api-key', b'{}'), (b'host', b'h')]",
    "('authorization', 'Basic {}')",
    '{{"name": "X-Api-Key", "value": "{}"}}',
    '{{"name": "password", "value": "{}"}}',
    "[('client_secret', '{}')]",
    'body: {{\\"client_secret\\": \\"a {}\\"}}',
    "<SecretAccessKey>{}</SecretAccessKey>",
    '<password type="plain">{}</password>',
    "forbear --client-token {} failed",
    "password\uff1a{}",
    "api key: {}",
    "Authorization header was:\n  token {}",
    "client GOCSPX-{}",
    "refresh 1//0g{}",
    "github_pat_{}",
    "glpat-{}",
    "xoxb-1-{}",
    "sk_live_{}",
    "sk-{}",
    "\nSG.{}",
    "https://hooks.slack.com/services/T0/B0/{}",
    "https://hooks.slack.com/triggers/T0/1/{}",
    "https://discord.com/api/v10/webhooks/1/{}",
    "https://x.webhook.office.com/webhookb2/a@b/IncomingWebhook/{}/c",
    "https://outlook.office.com/webhook/a@b/IncomingWebhook/{}/c",
    "https://chat.example.com:8443/hooks/{}",
    "https://hook.eu1.example.com:443/{}",
    "Max retries exceeded with url: /api/webhooks/1/{} (Caused by ...)",
    "https://maker.ifttt.com/trigger/e/with/key/{}",
    "https://api.telegram.org/bot123456:{}/send",
    "https://api.telegram.org/file/bot123456%3A{}/photo.jpg",
    "ACL SETUSER u on >{} ~*",
    "Command # 1 (ACL SETUSER u on >{}) of pipeline caused error: ERR",
    "CONFIG SET requirepass {}",
    "('CONFIG', 'SET', 'masterauth', '{}')",
    "MIGRATE h 1 k 0 1 AUTH2 user {} KEYS a",
    "AUTH default {} failed",
    "['AUTH', '{}']",
    "(b'AUTH', b'user', b'{}')",
    "authorization: Digest username=u, response={}\nhost: h",
]
IN_PATHS = [
    f"https://hc-ping.com/{UUID}",
    f"hc-ping.com/{UUID}/fail refused",
    f"https://hc-ping.com/{HEX[:22]}/backup",
    f"HTTPSConnectionPool(host='hc-ping.com', port=443): Max retries exceeded with url: /{UUID} (Caused by ...)",
    f"HTTPSConnectionPool(host='hook.eu1.make.com', port=443): Max retries exceeded with url: /{HEX} (Caused by ...)",
    f"https://health.example.com/ping/{UUID}/start",
    f"https://cronitor.link/p/{HEX}/job",
    f"https://nosnch.in/{HEX}",
    f"https://ntfy.sh/{HEX}",
    f"https://uptime.betterstack.com/api/v1/heartbeat/{HEX}",
    f"https://api.honeybadger.io/v1/check_in/{HEX}",
    f"https://events.pagerduty.com/integration/{HEX}/enqueue",
    f"Max retries exceeded with url: /integration/{HEX}/enqueue (Caused by ...)",
    f"https://events.eu.pagerduty.com/x-ere/{HEX}",
    f"https://alert.victorops.com/integrations/generic/20131114/alert/{UUID}/team",
    f"POST /services/T01ABCDEF/B02GHIJKL/{HEX} HTTP/1.1",
    f"/workflows/T01ABCDEF/A02GHIJKL/1234/{HEX}",
    f"/triggers/E01ABCDEF/1234/{HEX}",
    f"/IncomingWebhook/{HEX}/a",
    f"https://uptime.betterstack.com/api/v1/incoming-webhook/{HEX}",
    f"/hooks/catch/123456/{HEX}/",
    f"https://maker.ifttt.com/use/{HEX}",
    f"https://trigger.macrodroid.com/{UUID}/door",
    f"https://open.feishu.cn/open-apis/bot/v2/hook/{UUID}",
    f"https://http-intake.logs.datadoghq.com/v1/input/{HEX}",
    f"https://logs-01.loggly.com/inputs/{UUID}/tag/http",
    f"https://collectors.sumologic.com/receiver/v1/http/{HEX}==",
    f"https://sentry.io/api/67/cron/nightly/{HEX}/",
]
WITHOUT_SCHEME = [
    "user:{}@host/x",
    "could not connect to admin:{}@db.internal/app",
    "(me:{}@10.0.0.5/0)",
    "dsn='me:a:{}@h/db'",
    "user:a@{}@h/db",
    'to="a:(,{}@h/db"',
    "me:{}@h:/srv",
    "GenieKey {}",
    f"no route to {HEX}@o1.ingest.sentry.io/67",
    f"no route to {HEX}:{HEX}@sentry.example.com/67",
    f"bot 123456789:{TELEGRAM} is not known",
]
HARMLESS = [
    f"https://api.example.com/orders/{UUID}/items is not there",
    f"/integrations/{UUID} and /workflows/{UUID} are not there",
    f"/alert/{UUID}, /inputs/{UUID} and /input/{UUID} are not there",
    "https://h/ping, https://h/ping/pong and https://h/heartbeat/all",
    "/integration/orders and /v1/check_in/today",
    "/services/TRADE/items and /services/T1/b2/c3",
    "/triggers/T1/manual/paths and /workflows/T1/runs",
    "https://cronitor.example.com/p/1 and https://events.pagerduty.com/v2/enqueue",
    f"commit {HEX} by ann@example.com",
    "a:b@c is no address, nor is 12:30@lobby",
    "user:ann@example.com and mailto:bob@example.com",
    "member serviceAccount:a@p.iam.gserviceaccount.com: not known",
    "image nginx:1.25@sha256:9f86d081884c7d65 is not there",
    "h:8080/users/a@example.com/orders is not there",
    "https://h:8080/users/a@example.com/orders is not there",
    "jsr:@std/x@1.0/y is not there",
    f"123456789:AA{HEX}00 is too long for a token, and AA{HEX[:31]} has no number",
    "https://api.example.com/v1/webhook_endpoints/we_1 has no hooks",
    "https://api.example.com/bots/bot1/messages",
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
    "ERR Client sent AUTH, but no password is set",
    "no token for the credentials: invalid_grant",
    "see https://iam.googleapis.com/v1/projects/-/serviceAccounts/a@p.iam.gserviceaccount.com:signJwt",
    "https://h:8080/users/a@example.com is not there",
    "gs://bucket/a@b is not there",
    "http://[::1]:80/a@b",
    "role roles/viewer for serviceAccount:a@p.iam.gserviceaccount.com",
    "<Error><Code>AccessDenied</Code><Key>a/b</Key></Error>",
    "task-force-of-the-united-nations",
    "gr\u00fc\u00dfe aus \u6771\u4eac",
]


@pytest.mark.parametrize("text", TEXTS)
def test_secrets_are_hidden(text: str) -> None:
    """The secret is gone, and a mark stands where it was."""
    found = redact(text.format(SECRET))
    assert SECRET not in found
    assert HIDDEN in found


@pytest.mark.parametrize("text", [*IN_PATHS, *(text.format(SECRET) for text in WITHOUT_SCHEME)])
def test_secrets_in_paths_and_in_addresses_without_a_scheme_are_hidden(text: str) -> None:
    """The secret is hidden, also without a host or with one that stands apart, and twice is once."""
    found = redact(text)
    assert not any(secret in found for secret in (SECRET, HEX, HEX[:22], UUID, TELEGRAM))
    assert HIDDEN in found
    assert redact(found) == found


@pytest.mark.parametrize("query", ["email=ann@example.com", "a=1&to=ann@example.com/x", "next=me:pw@host/x"])
def test_an_address_in_a_query_hides_no_host(query: str) -> None:
    """The value is hidden as every value of a query is; an `@` in it does not make the host a user."""
    names = [pair.partition("=")[0] for pair in query.split("&")]
    shown = "&".join(f"{name}={HIDDEN}" for name in names)
    assert redact(f"GET https://h:8080/p?{query} failed") == f"GET https://h:8080/p?{shown} failed"


@pytest.mark.parametrize("text", HARMLESS)
def test_texts_without_a_secret_are_unchanged(text: str) -> None:
    """A text that holds no secret is unchanged."""
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


ESCAPED = [
    ("a\nERROR forged", "a\\nERROR forged"),
    ("a\r\tb", "a\\r\\tb"),
    ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
    ("\x00\x7f\x9b1m", "\\x00\\x7f\\x9b1m"),
    ("abc\u202egpj.exe", "abc\\u202egpj.exe"),
    ("a\u2028b\u200bc", "a\\u2028b\\u200bc"),
    ("lost \udc80", "lost \\udc80"),
    ("\U000e0041", "\\U000e0041"),
]


@pytest.mark.parametrize(("text", "shown"), ESCAPED)
def test_no_character_that_a_terminal_obeys_comes_through(text: str, shown: str) -> None:
    """Line ends, control characters, those that turn the direction of writing and lone surrogates are spelt out."""
    assert redact(text) == shown


@given(st.text(max_size=80))
def test_what_is_shown_is_one_line_of_printable_text(text: str) -> None:
    """Whatever a peer sends, a terminal and a log show it as it is."""
    assert redact(text).isprintable()


def test_a_line_end_does_not_hide_what_follows() -> None:
    """A header ends with its line, and a secret at the beginning of a line is one."""
    assert redact("Cookie: a=b\nHost: h\nx-api-key: k\nAUTH pw") == (
        f"Cookie: {HIDDEN}\\nHost: h\\nx-api-key: {HIDDEN}\\nAUTH {HIDDEN}"
    )


@pytest.mark.parametrize("size", [LIMIT + 1, 3 * LIMIT, 1_000_000])
def test_long_texts_are_cut(size: int) -> None:
    """The rest of a text ends with a note that it was cut."""
    assert redact("a " * (size // 2 + 1)) == f"{'a ' * (LIMIT // 2)}"[: LIMIT - 1] + "\u2026"
    assert len(redact("&a=b" * size)) == LIMIT
    assert len(redact("\x1b" * size)) <= LIMIT


def test_a_text_that_grows_stays_within_the_limit() -> None:
    """Marks are longer than what they stand for."""
    assert len(redact("&a=b" * (LIMIT // 4))) == LIMIT


@pytest.mark.parametrize("before", [LIMIT - 120, LIMIT - 60, LIMIT - 20, LIMIT - 8])
def test_a_secret_that_the_cut_goes_through_is_hidden(before: int) -> None:
    """Half a token looks like none, and half a URL like one without a password."""
    start = "a " * (before // 2)
    for text in (f"AIza{SECRET}{SECRET}", f"redis://:{SECRET * 20}@h", f"https://u:{SECRET}/{SECRET * 20}@h/"):
        assert SECRET[:8] not in redact(start + text + " more" * 100)


def test_texts_of_attempts_are_redacted_before_they_are_cut() -> None:
    """A token that is cut in half would not be recognised."""
    attempt = Attempt(1, "HTTPError", f"{'.' * 490} ya29.{SECRET}", 0)
    assert attempt.text == f"{'.' * 490} {HIDDEN}"[:500]


def test_a_concealed_text_is_hidden_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret without a known shape is hidden once it was named; only the newest ones are remembered."""
    monkeypatch.setattr(module, "_concealed", {})
    monkeypatch.setattr(module, "_MOST_CONCEALED", 2)
    text = "one shapeless, two shapeless"
    assert redact(text) == text
    for secret in ("one", "two", "shapeless"):
        conceal(secret)
    assert redact(text) == f"one {HIDDEN}, {HIDDEN} {HIDDEN}"
    monkeypatch.setattr(module, "_concealed", MappingProxyType({"two": None}))
    conceal("two")  # nothing changes, so another thread that redacts cannot miss it
    assert redact("x" * LIMIT + "two") == "x" * (LIMIT - 1) + "\u2026"


def test_only_the_patterns_that_a_text_needs_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them take longer than loading forbear, and the first failure of a program seldom needs any."""
    monkeypatch.setattr(module, "_compiled", [])
    monkeypatch.setattr(module, "_patterns", patterns := dict[str, object]())
    assert redact("no stock") == "no stock"
    assert len(patterns) == 1
    assert redact("password=red") == f"password={HIDDEN}"
    assert 1 < len(patterns) < 5


@pytest.mark.parametrize("secret", [HiddenText(SECRET), HiddenBytes(SECRET.encode())], ids=["text", "bytes"])
def test_a_secret_value_is_hidden_by_its_repr(secret: str | bytes) -> None:
    """A traceback with variables shows no part of it, and it is the same text or bytes for those who send it."""
    assert SECRET not in f"{secret!r} {[secret]} {(secret,)}"
    assert secret in {SECRET, SECRET.encode()}


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("//me:{}@h", f"{HIDDEN}@h"), ("me:{}@h:80/p", f"{HIDDEN}@h:80/p"), ("http:/me:{}@h", f"{HIDDEN}@h"),
        ("http:me:a@{}@h", f"{HIDDEN}@h"), ("h:80/p", "h:80/p"), ("http://h/p?key={}", f"http://h/p?key={HIDDEN}"),
        ("\n{}@h\n", f"{HIDDEN}@h\\n"),
    ],
)  # fmt: skip
def test_an_address_is_shown_without_its_user(address: str, shown: str) -> None:
    """Also one that lacks its scheme or a slash, by which a URL would be known."""
    assert without_user(address.format(SECRET)) == shown
