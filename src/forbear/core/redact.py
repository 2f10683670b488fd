"""Redaction: what an error says, without the secrets in it. It knows the shapes of secrets, not whose they are.

When in doubt it takes too much: a text that tells less is better than one that tells a password.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern

HIDDEN = "[redacted]"

_NOT_YET = r"(?!\[redacted\])"
_HEADER = r"(?:proxy-)?authorization|(?:set-)?cookie|x-[\w-]{0,40}?(?:key|token|secret|signature)[\w-]{0,20}"
_NAME = (
    r"[\w-]{0,40}?(?:passw(?:or)?d|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|signature|credential|upload_?id|session[_-]?(?:id|uri|url))[\w-]{0,20}"
)
_SPOKEN = r"(?:auth\w*|tokens?|credentials?)\b"
_QUOTED = r""""(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?"""

_SHAPES = (
    # private keys
    (r"(?s)-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)", ""),
    # user and password of a URL
    (r"(://)[^\s/?#]*(?=@)", r"\1"),
    # values in a query: a signature, a key, the id of an upload session; and whatever else is there
    (rf"([?&#;][\w.~%+\[\]-]+=){_NOT_YET}[^\s&#\"<>]+", r"\1"),
    # headers, to the end of the line
    (rf"(?i)\b((?:{_HEADER})[\"']?[ \t]*[:=][ \t]*+){_NOT_YET}[^\r\n]+", r"\1"),
    # what stands there without its header
    (
        r"(?i)\b((?:bearer|basic|negotiate)[ \t]++)(?!\[redacted\]|(?:auth\w*|tokens?|credentials?)\b)[^\s\"',;)]+",
        r"\1",
    ),
    # password=..., "client_secret": "..."
    (rf"(?i)\b({_NAME}[\"']?[ \t]*[:=][ \t]*+){_NOT_YET}(?:{_QUOTED}|[^\s,;&]+)", r"\1"),
    # the arguments of Redis's AUTH, also within HELLO, where a client tells the command that failed
    (rf"(\([^()\r\n]*?\bAUTH ){_NOT_YET}[^)\r\n]*", r"\1"),
    # tokens and keys that are known by their looks: Google's, JWTs, those of AWS and GitHub
    (r"\bya29\.[\w.-]+|\bAIza[\w-]{30,}|\beyJ[\w-]{8,}(?:\.[\w-]*)+", ""),
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\w*|\bgh[oprsu]_\w{20,}", ""),
)
_compiled: "list[tuple[Pattern[str], str]]" = []


def redact(text: str) -> str:
    """`text` with credentials, tokens, the values of URL queries and user names and passwords in URLs hidden."""
    if not _compiled:
        import re  # when a text is first told to anybody; it would cost every import

        _compiled.extend((re.compile(shape), f"{kept}{HIDDEN}") for shape, kept in _SHAPES)
    for pattern, replacement in _compiled:
        text = pattern.sub(replacement, text)
    return text
