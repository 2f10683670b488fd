"""Redact a text: cut it to a limit, hide the secrets in it, and escape control characters.

Secrets are recognized by their shape; in doubt, too much is hidden. Time and memory are linear in the length after the
cut, for any text. Therefore an unbounded repetition in a pattern is possessive, is followed by nothing that can fail,
or matches only characters that cannot begin the pattern.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from re import Match, Pattern

    Shape = tuple[tuple[str, ...], str, str | Callable[[Match[str]], str]]

HIDDEN = "[redacted]"
LIMIT = 4096
"""The longest text that `redact` returns, in characters; of a longer one it keeps the beginning."""

_LONGEST_TOKEN = 256
"""A word of up to this length is dropped if the cut at LIMIT goes through it: half a token may not look like one."""

_MOST_CONCEALED = 1000
_MARK = "\u2026"
_OF_TOKENS = "-./+_=~%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

_NOT_YET = r"(?!\[redacted\])"
_START = r"(?:\b|(?<=\\[nrt]))"
"""The pattern for the beginning of a word, also right after a line end or tab, which are escapes by then."""
_LINE = r"(?:(?!\\[nr]).)++"
_HEADER = (
    r"(?:(?:proxy-)?authorization|(?:set-)?cookie2?"
    r"|(?:(?<![\w-])|(?<=\\[nrt]))x-[\w-]{0,40}?(?:key|token|secret|signature|auth|credential)[\w-]{0,20})"
)
_NAME = (
    r"(?:passw(?:or)?d|pwd|passphrase|secret|token|api[_ -]?key|(?:access|account|private|(?:en|de)cryption)[_-]?key"
    r"|signature|credential(?!s: )|upload_?id|session[_-]?(?:id|ur[il]))[\w-]{0,20}"
)
_AFTER = r"""(?:\\{0,3}["'])?[ ]{0,4}[:=\uff1a][ ]*+"""
"""The pattern for the text between a name and its value: `name: `, `name=`, `"name": `."""
_PAIR = r"""\\{0,3}["'][ ]{0,4}(?:[:=]|,(?:[ ]{0,4}\\{0,3}["']value\\{0,3}["'][ ]{0,4}:)?)[ ]*+"""
"""The pattern for the text from the closing quote of a name to its value.

Matches `": ` in `"name": `, `", ` in `("name", `, and `", "value": ` in `{"name": "...", "value": `.
"""
_QUOTED = r"""(?:b?"(?:[^"\\]|\\.)*+"?|b?'(?:[^'\\]|\\.)*+'?|\\{1,3}["'][^"']*+["']?)"""
_WORD = rf"(?:{_QUOTED}|\S++)"

_HOST = r"@(?!sha\d)[\w.-]++(?::\d|:?/)"
"""The pattern for the host of an address without a scheme; a port or a path follows. The digest of an image is none."""
_PATH = r"(?::\d{1,5}+)?(?:/|['\"], port=\d{1,5}\): Max retries exceeded with url: /)"
"""The pattern for the text between a host and its path: as in a URL, or as urllib3 tells it."""
_UUID = r"[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}"

_SHAPES = (
    # user and password of a percent-encoded URL, and of an address without a scheme
    ("%3a", r"(?i)(%3A%2F%2F)(?:(?!%2F|%3F|%40)[^\s&])*+(?=%40)"),
    ("@", r"(?i)(?<!\w)()[\da-f]{32}(?::[\da-f]{32})?(?=@[\w.-])"),  # an address of Sentry
    ("@", rf"((?<![^\s\"'(])[^\s@/:\"'(]{{1,64}}:)[^\s@/\"'(][^\s/\"'(]*(?={_HOST})"),
    ("@", rf"(:)[^\s@/:]++(?={_HOST})"),
    # all values in a query: signatures, keys, ids of upload sessions and any other
    ("? & # ;", rf"([?&#;][\w.~%+\[\]-]++=){_NOT_YET}[^\s&#\"<>]++"),
    ("%3d %253d %25253d", rf"(?i)(%(?:25){{0,2}}(?:3F|26|23)[\w.~+-]++%(?:25){{0,2}}3D){_NOT_YET}[^\s&#\"<>]++"),
    # webhooks and bots, whose paths are secret: hide all after a host or a path segment with such a name
    (
        "hook /bot /with/key/",
        (
            rf"(?i)((?<![\w-])(?:web)?hooks?\.[\w.-]{{1,100}}+{_PATH}|/(?:incoming-?)?(?:web)?hooks?(?:b2)?/|/with/key/"
            r"|/bot(?=\d{6,12}(?::|%3A)))"
            rf"{_NOT_YET}[^\s?#\"'<>]++"
        ),
    ),
    # other services whose paths are secret: Slack without its host, what watches jobs, what takes events and logs
    (
        "/services/t /workflows/t /triggers/t /triggers/e",
        (
            r"(/services/(?=T[A-Z\d]++/B[A-Z\d]++/)|/workflows/(?=T[A-Z\d]++/A[A-Z\d]++/)"
            r"|/triggers/(?=[TE][A-Z\d]++/\d++/))[^\s?#\"'<>]++"
        ),
    ),
    (
        "hc-ping. hchk.io nosnch.in cronitor.link ntfy.sh api.day.app macrodroid. ifttt.com loggly.com pagerduty.",
        (
            r"(?i)((?<![\w-])(?:hc-ping\.com|hchk\.io|nosnch\.in|cronitor\.link|ntfy\.sh|api\.day\.app"
            rf"|trigger\.macrodroid\.com){_PATH}|ifttt\.com/use/|loggly\.com/inputs/"
            rf"|pagerduty\.com/(?:integration|x-ere)/){_NOT_YET}[^\s?#\"'<>]++"
        ),
    ),
    (
        "/ping/ /alert/ /check_in/ /heartbeat/ /integration/ /x-ere/ /input/ /receiver/ /cron/",
        (
            rf"(?i)(/ping/(?={_UUID})|/generic/\d{{1,12}}/alert/(?={_UUID})"
            r"|/(?:check_in|heartbeat|integration|x-ere|v1/input)/(?=[\da-z]{16})|/receiver/v1/http/"
            rf"|/cron/[\w.-]{{1,100}}+/(?=[\da-f]{{32}})){_NOT_YET}[^\s?#\"'<>]++"
        ),
    ),
    (":aa", r"((?<!\w)\d{6,12}:)AA[\w-]{33}(?![\w-])"),  # the token of a Telegram bot
    # headers: the value in quotes in a dict or a list of pairs, else to the end of the line
    ("authorization cookie x-", rf"(?i)({_HEADER}{_PAIR}){_NOT_YET}{_QUOTED}"),
    ("authorization cookie x-", rf"(?i)({_HEADER}{_AFTER}){_NOT_YET}{_LINE}"),
    # a credential without its header
    (
        "bearer basic negotiate geniekey",
        (
            rf"(?i){_START}((?:bearer|basic|negotiate|geniekey)[ ]++)"
            r"(?!\[redacted\]|(?:auth\w*|tokens?|credentials?)\b|is[ ])[^\s\"',;)]++"
        ),
    ),
    ("token key", r"(?i)((?:token|api ?key)[ ]++)[\w.~+/=-]{20}[\w.~+/=-]*+"),
    # password=..., "client_secret": "...", ("token", "..."), --password ..., <SecretAccessKey>...
    (
        "pass pwd secret token key signature credential upload session",
        rf"(?i)({_NAME}(?:{_PAIR}(?=\\{{0,3}}b?[\"'])|{_AFTER})){_NOT_YET}(?:{_QUOTED}|[^\s,;&]++)",
    ),
    ("--", rf"(?i)((?<![\w-])--[\w-]{{0,40}}?{_NAME}[ ]++){_NOT_YET}{_WORD}"),
    (">", rf"(?i)({_NAME}(?:[ ][^<>]{{0,100}})?>){_NOT_YET}[^<]++"),
    # passwords in commands of Redis: AUTH (within HELLO and MIGRATE, too), CONFIG SET, ACL SETUSER
    ("auth", rf"(?i)(\([^()]*?\bAUTH2? ){_NOT_YET}[^)]++"),
    (
        "auth",
        (
            rf"{_START}(AUTH2?(?:\\{{0,3}}[\"'],?)?[ ]++)"
            rf"(?!\[redacted\]|(?:is|was|has|not|error|fail\w*|requ\w*|command|method)\b){_WORD}"
            rf"(?:(?:(?<=[\"']),)?[ ]++{_WORD})?"
        ),
    ),
    (
        "requirepass auth key-file-pass",
        (
            r"(?i)((?:requirepass|masterauth|primaryauth|tls-(?:client-)?key-file-pass)"
            rf"(?:\\{{0,3}}[\"'],?)?[ :=]++){_NOT_YET}{_WORD}"
        ),
    ),
    ("setuser", rf"(?i)(SETUSER(?:\\{{0,3}}[\"'],?)?[ ]++\S++[ ]++){_NOT_YET}(?:(?!\) of pipeline|\\[nr]).)++"),
    # private keys, then tokens and keys with a known prefix: Google, JWT, AWS, GitHub, Slack ...
    ("private key", r"()-----BEGIN [A-Z ]{0,30}PRIVATE KEY.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,9}-----|\Z)"),
    (
        "ya29 1//0 gocspx aiza eyj akia asia goog1",
        (
            r"()(?:ya29\.[\w.-]|1//0[\w-]{10}|GOCSPX-[\w-]|AIza[\w-]{30}|eyJ[\w-]{8}|A[KS]IA[A-Z0-9]{12}|GOOG1\w{20})"
            r"[\w.-]*+"
        ),
    ),
    (
        "gho_ ghp_ ghr_ ghs_ ghu_ github_ glpat xox xapp",
        r"()(?:gh[oprsu]_\w{20}|github_pat_\w{10}|glpat-[\w-]{10}|xox[a-z][.-][\w.-]|xapp-\d)[\w.-]*+",
    ),
    (
        "k_live k_test sk- npm_ pypi- hf_ sg. hvs. dop_",
        (
            rf"{_START}()(?:[srp]k_(?:live|test)_\w|sk-[\w-]{{16}}|npm_\w{{30}}|pypi-[\w-]{{16}}|hf_\w{{20}}"
            r"|SG\.[\w-]{16}|hvs\.[\w-]{16}|dop_v1_\w)[\w.-]*+"
        ),
    ),
)
"""Shapes of secrets: pairs of lower-case signs, separated by spaces, and a pattern.

Every text with such a secret contains one of the signs, and most texts contain none. The first group of the pattern is
kept, the rest of the match is hidden.
"""

_URL = r"(://)((?:(?!://)\S)++)"

_ANY_SIGN = (
    r"://|--|:aa|1//0|%(?:25){0,2}3[ad]|a(?:iza|kia|pi\.day|sia|uth)|b(?:asic|earer)|c(?:ookie|redential|ronitor\.)|dop_"
    r"|/(?:bot|with/key|services/t|workflows/t|triggers/[te]|ping|alert|check_in|heartbeat|in(?:tegration|put)|receiver"
    r"|cron/)|eyj|g(?:h[oprsu]_|ithub_|lpat|o(?:cspx|og1))|h(?:c-ping|chk\.|f_|ook|vs\.)|ifttt\.|k(?:_(?:live|test)|ey)"
    r"|loggly\.|macrodroid\.|n(?:egotiate|osnch|pm_|tfy\.)|p(?:agerduty\.|ass|rivate|wd|ypi-)"
    r"|s(?:e(?:cret|ssion|tuser)|g\.|ignature|k-)|token|upload|x(?:app|ox|-)|ya29|[>@?&#;]"
)
"""The pattern that matches every sign in `_SHAPES`, and `://`, in a lower-case text.

The signs are grouped by their first letters, which makes the search twice as fast.
"""


class HiddenText(str):
    """A text that its repr hides, such as a key, so that a traceback with variables does not show it.

    >>> key = HiddenText("tr0ub4dor")
    >>> key, key == "tr0ub4dor"
    ('[redacted]', True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"'{HIDDEN}'"


class HiddenBytes(bytes):
    """Bytes that their repr hides, such as the head of a request with secret headers. Example: see `HiddenText`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"b'{HIDDEN}'"


_concealed: dict[str, None] = {}
"""The secrets that `conceal` got, in order; those that have no known shape. Each step on it is atomic."""

_compiled: "list[tuple[Callable[[str], object], tuple[Shape, ...]]]" = []
_patterns: "dict[str, Pattern[str]]" = {}  # the shapes that a text has needed so far: all would take 13 ms


def redact(text: str) -> str:
    """Return `text` for display: at most LIMIT characters, in one line, without secrets or control characters.

    Credentials, tokens, values of URL queries, and user names and passwords in URLs become "[redacted]". Characters
    that a terminal may obey (control characters, changes of the writing direction) and lone surrogates become escapes.
    A longer text loses its end, with the word that the cut goes through, and gets an ellipsis.

    >>> redact("GET https://user:secret@api.example.com/orders?token=abc")
    'GET https://[redacted]@api.example.com/orders?token=[redacted]'
    """
    whole = printable(text[: LIMIT + 1])
    if len(whole) <= LIMIT:
        return hide(whole)[:LIMIT]
    # If the cut goes through a URL, its last part may be a password; an `@` marks it as one.
    return hide(f"{_head(whole)}@").removesuffix("@")[: LIMIT - 1] + _MARK


def without_user(address: str) -> str:
    """Return an address for display, redacted. A user and password before its last `@` are hidden.

    For a value that ought to be a URL and may lack the scheme or have another fault, by which `redact` would know them.

    >>> redact_address("user:secret@localhost:6379")
    '[redacted]@localhost:6379'
    """
    _, at, host = address.rpartition("@")
    return redact(f"{HIDDEN}@{host}" if at else address)


def conceal(secret: str) -> None:
    """Hide this text from now on wherever `redact` finds it; for a secret without a known shape, such as a key.

    This holds for the whole process and all its threads, and for the 1000 secrets that were new last.

    >>> conceal("tr0ub4dor")
    >>> redact("wrong key: tr0ub4dor")
    'wrong key: [redacted]'
    """
    if secret not in _concealed:
        _concealed[secret] = None
        for oldest in list(_concealed)[:-_MOST_CONCEALED]:
            _concealed.pop(oldest, None)  # another thread may have done it


def hide(text: str) -> str:
    """Return `text` with each part that has the shape of a secret as "[redacted]"; `text` must be printable already."""
    for secret in list(_concealed) if _concealed else ():
        text = text.replace(secret, HIDDEN)
    has_sign, shapes = _compiled[0] if _compiled else _compile()
    signs = text.lower()
    if not has_sign(signs):
        return text
    for words, shape, replacement in shapes:
        for word in words:
            if word in signs:
                text = _find_pattern(shape).sub(replacement, text)
                break
    return text


def printable(text: str) -> str:
    """Return `text` with each character that `str.isprintable` rejects, such as a line end, as a backslash escape.

    >>> printable("bell" + chr(7)).isprintable()
    True
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _head(text: str) -> str:
    """Return the first LIMIT characters of `text`, without the word at their end.

    A word longer than `_LONGEST_TOKEN` stays. Words are of letters, digits and some signs of tokens, such as `-` and
    `_`.
    """
    head = text[:LIMIT]
    whole = head.rstrip(_OF_TOKENS)
    return whole if len(head) - len(whole) <= _LONGEST_TOKEN else head


def _compile() -> "tuple[Callable[[str], object], tuple[Shape, ...]]":
    url: Shape = ("://",), _URL, _without_user
    others = ((tuple(words.split()), shape, rf"\1{HIDDEN}") for words, shape in _SHAPES)
    _compiled[:] = [(_find_pattern(_ANY_SIGN).search, (url, *others))]
    return _compiled[0]


def _find_pattern(text: str) -> "Pattern[str]":
    pattern = _patterns.get(text)
    if pattern is None:
        import re  # when the first text is redacted: it would slow down every import of forbear

        pattern = _patterns[text] = re.compile(text)
    return pattern


def _without_user(match: "Match[str]") -> str:
    """Return the match, a URL from its `://` on, with all before the `@` of its authority hidden.

    Without an `@` it is unchanged. A password that is not percent-encoded may contain `/`, `?` or `#`. Then the
    authority seems to end in the password, and the text after its colon is no port. In that case the last `@` of the
    URL counts.
    """
    rest = match[2]
    end = min((at for at in map(rest.find, "/?#\\") if at >= 0), default=len(rest))
    authority = rest[:end]
    at = authority.rfind("@")
    if at < 0 and not authority.endswith("]"):
        web = match.string[max(0, match.start() - 5) : match.start()].lower().endswith(("http", "https"))
        _, colon, port = authority.rpartition(":")
        if colon and not (web and port.isdigit()):
            at = rest.rfind("@")
    return match[0] if at < 0 else f"://{HIDDEN}{rest[at:]}"
