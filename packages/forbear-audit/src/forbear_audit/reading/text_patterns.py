"""Patterns in texts: messages, URLs, SQL, comments, notebooks and TOML. Each has an example and a near miss."""

from forbear_audit.reading.patterns import pattern

KEY_PARTS = 32
"""The most parts of a key of TOML: tomllib would need long for more."""

IPYTHON_COMMANDS = pattern(
    r"(?m)^([ \t]*+)(?:[%!?](?!=)(?=\s*+[\w./~(?%!])|[\w., ]++=[ \t]*+[%!](?=\w)|[\w.*]++[ \t]*+\?\??[ \t]*+$)",
    "!pip install forbear",
    "x = a % b",
)
"""Commands of IPython in a line, also as the value of a name, and a question about a name."""

PYTHON_CELL_MAGIC = pattern(r"\A\s*%%(?:time|timeit|capture|prun|debug|python3?)\b.*", "%%time", "%%bash")
"""The first line of a cell of Python that IPython times or captures."""

OTHER_CELL_MAGIC = pattern(r"\A\s*%%(?!(?:time|timeit|capture|prun|debug|python3?)\b)", "%%bash", "%%time")
"""The first line of a cell in another language."""

MAY_HAVE_RETRIES = pattern(
    r"(?i)except|retr|backoff|stamina|opnieuw|sleep|acks_late|attempt|dramatiq|huey|temporalio|forbear:",
    "import tenacity\n@tenacity.retry",
    "def f(): pass",
)
"""The words without which the audit has nothing to say about a file."""

DECORATORS = pattern(r"(?m)^[ \t]*@(\w+)", "    @robust", "a @ b")
"""The first names of decorators."""

IMPORTED_NAMES = pattern(
    r"(?m)^[ \t]*+from[ \t]++(\.*+\w*+)[\w.]*+[ \t]++import[ \t]++(\([^)]*+\)|[^\n(]++)",
    "from .policy import robust",
    "import policy",
)
"""The first name of a package, and the names that are imported from it."""

LINE_ENDS = pattern(r"\r\n|\r|\n", "\r\n", "\x0b")
"""The ends of lines, as Python counts them; str.splitlines() knows more."""

OUR_COMMENTS = pattern(r"(?i)#\s*forbear:", "# forbear: ignroe", "# forbear is good")
"""The comments for forbear, right or wrong."""

IGNORE_COMMENT = pattern(
    r"(?i)\A#\s*forbear:\s*ignore(-file)?(?![\w-])\s*(?:\[([^\]]*)(\]?))?",
    "# forbear: ignore[STATE]",
    "# forbear: ignore-all",
)
"""The comments that suppress findings: `ignore` or `ignore-file`, with the ids of rules."""

CONFLICT_MESSAGES = pattern(r"(?i)conflict|concurrent|\brace\b", "lost the race", "the trace")
"""Messages about a conflict with a rival, which is over when the next attempt comes."""

SAYS_IT_WAITS = pattern(
    r"(?i)\bwait(?:ing|ed)? (?:for|to|until|on)\b(?! (?:\{\}|\d+) ?m?s)|"
    r"\b(?:still|not yet|isn.?t ready|not ready|is ready)\b|pending|already in use|being deleted|waiting\.\.\.",
    "waiting for the server",
    "waiting for {} s",
)
"""Messages by which a loop says that it waits for something, and not for some seconds."""

HEALTH_URLS = pattern(r"/(?:health|ready|live|alive)z?$", "https://example.com/healthz", "https://example.com/wealth")
"""The ends of URLs that tell whether a server is up."""

HARMLESS_PATHS = pattern(
    r"(?i)(?:search|query|queries|token|login|signin|auth|authorize|graphql|lookup|list|check|validate|verify|predict|"
    r"completions?|embed|embeddings?|embed_?documents|rerank|tokenize|moderations?|translate|classify|count|read|find|"
    r"filter|rpc|status|poll|test\w+|get\w*|batch_?get|sign(?:jwt|blob|_?urls?)|presign\w*|upload[-_](?:url|request)s?|"
    r"init(?:iate)?)/?$",
    "/v1/search",
    "/v1/orders",
)
"""The end of paths that only read or compute, give a token, or open an upload."""

WHOLE_URL = pattern(r"\Ahttps?://[\w.-]+/", "https://example.com/a", "/a")
"""A URL with a host that can be read."""

INSERTS = pattern(r"(?is)\A\s*(?:WITH\b.*?\)\s*)?INSERT\s+INTO\b", "INSERT INTO t VALUES (1)", "SELECT 1")
"""A statement that adds rows."""

HARMLESS_INSERTS = pattern(
    r"(?i)\bON\s+CONFLICT\b|\bON\s+DUPLICATE\s+KEY\b|\bNOT\s+EXISTS\b|\bINSERT\s+OR\s+(?:IGNORE|REPLACE)\b",
    "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
    "INSERT INTO t VALUES (1)",
)
"""The clauses that let a second INSERT do nothing."""

ADDING_UPDATES = pattern(
    r"(?is)\A\s*UPDATE\b.*\bSET\b.*?\b(\w+)\s*=\s*\1\s*[-+*]", "UPDATE t SET n = n + 1", "UPDATE t SET n = m + 1"
)
"""A statement that computes a column from itself: `SET n = n + 1`."""

STATUS_NUMBER = pattern(r"\A[1-5]\d\d\Z", "429", "4290")
"""A status as text."""

FILE_MODE = pattern(r"\A[rwaxbt+]{1,3}\Z", "rb", "utf-8")
"""The mode of a file."""

TOML_VALUES = pattern(
    r"""(?xs)
    \#[^\n]*+
    | \"{3} (?: [^"\\] | \\. | "(?!"") )*+ (?:\"{3})?
    | '{3} (?: [^'] | '(?!'') )*+ (?:'{3})?
    | " (?: [^"\\\n] | \\. )*+ "?
    | '[^'\n]*+ '?
    """,
    'a = "b"',
    "a = 1",
)
"""The comments and texts of TOML. Each quote begins one, closed or not, so that none is looked at twice."""

LONG_TOML_KEY = pattern(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{KEY_PARTS}}}", "a." * (KEY_PARTS + 1), "a.b.c")
"""The beginning of a key for which tomllib would need long."""
