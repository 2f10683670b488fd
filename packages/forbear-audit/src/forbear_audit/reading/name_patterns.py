"""The words in names that tell what a function, a variable or an error is for, where its code cannot be read.

All are searched in the text of a name or of an expression. Each has an example and a near miss.
"""

from forbear_audit.reading.patterns import pattern

_LOGS = r"log|print|echo|debug|info|warn|error\b|exception"

RETRIES = pattern(r"(?i)retr(?!iev)|attempt|(?<!en)(?<!un)(?<!is)tries|trial|back_?off", "max_retries", "retrieve")
"""Something that repeats: `max_retries`, `attempt`; not `retrieve`, `entries`, `countries` or `registries`."""

RANDOM = pattern(r"(?i)random|jitter|uniform|randint|secrets|gauss|expovariate", "random.uniform", "rand")
"""A wait that differs from client to client."""

STOPS = pattern(
    r"(?i)stop|(?:\b|_)event\b|clos(?:ed|ing)|shutdown|cancel|running|is_set|exit|quit|alive|abort",
    "self._stop.is_set",
    "events",
)
"""A flag or an event by which another thread ends a loop."""

WAITS = pattern(r"(?i)sleep|wait|back_?off|delay|pause|throttle", "asyncio.sleep", "load")
"""A function that may wait."""

LOGS = pattern(rf"(?i){_LOGS}", "logger.warning", "errors_of")
"""A function that only tells people."""

TELLS = pattern(
    rf"(?i){_LOGS}|message|emit|notify|record|metric|report|append|add|set_|put|str|repr|type|format|len|isinstance",
    "metrics.record",
    "client.send",
)
"""A function that tells people, keeps what it gets, or makes a text of it: it neither waits nor raises."""

LOCAL = pattern(
    r"(?i)(?:^|[._])(?:sleep|wait|print|log|debug|info|warn|warning|error|exception|uniform|random|randint|min|max|range|"
    r"format)$",
    "time.sleep",
    "sleepy",
)
"""The end of the name of a function that is no attempt of anything: it waits, logs or counts."""

TIME = pattern(
    r"monotonic|\btime\(|\.time\(|perf_counter|\bnow\(|deadline|timeout|expire|elapsed|until|\bend\b|remaining|left\b|"
    r"budget|max_(?:wait|time|delay|duration|seconds)|seconds_left|time_left|waited",
    "deadline",
    "attempt",
)
"""The names of clocks, of limits of time, and of the time that has passed."""

CLOCK = pattern(r"monotonic|\btime\(|\.time\(|perf_counter|\bnow\(|clock\(", "time.monotonic()", "timeout")
"""A call that reads a clock."""

COUNTS_RETRIES = pattern(
    r"retry|retries|backoff|attempt|tries|giv(?:e|ing)_?up|exhaust", "policy.give_up", "client.send"
)
"""The calls that may count the attempts: a schedule, or an object of retries."""

MAXIMUM = pattern(r"(?i)max_|_max\b|retr(?:y|ies)|attempts?|tries", "max_attempts", "maximal")
"""The names of a limit of attempts, where it is compared."""

ATTEMPT_LIMITS = pattern(r"attempt|retr(?:y|ies)|tries", "retries", "timeout")
"""The names of options that limit attempts."""

HEADER = pattern(r"(?i)retry[-_]?after|retry_in|x-ratelimit", "Retry-After", "retry_count")
"""The header in which a server names the wait, and the names of variables with its value."""

RESET = pattern(r"(?i)rate_?limit[-_]?reset|retry_?delay|retry_?info", "X-RateLimit-Reset", "rate_limit")
"""Other places in which a server names the wait."""

CAPS = pattern(r"\bmin\(|\bmax_|_max\b|\bcap\b|maximum|limit|clip", "min(delay, 30)", "minute")
"""A wait that has a largest value."""

TIME_SCOPES = pattern(
    r"(?:^|\.)(?:timeout|timeout_at|wait_for|fail_after|fail_at|move_on_after|move_on_at|Timeout)$",
    "asyncio.timeout",
    "set_timeout",
)
"""The context managers and functions that limit the time of what they hold."""

RAISERS = pattern(r"(?:^|[._])raise_(?!for_status)\w+$", "self.raise_error", "response.raise_for_status")
"""The names of functions that always raise, even if their code is elsewhere."""

NETWORK_ERRORS = pattern(
    r"Connection|Connect|Timeout|Unavailable|Transient|Throttl|RateLimit|Disconnect|Network|Reconnect|Transport|Temporary",
    "ConnectionResetError",
    "FileNotFoundError",
)
"""The names of errors that only a call over a network raises: a loop that repeats after them is a retry."""

METHODS_OF_RETRIES = pattern(r"retr\w*\.\w+$", "retries.increment", "retries")
"""A method of an object that counts the retries."""

CURES = pattern(
    r"(?:^|[._])(?:refresh\w*|renew\w*|re?new_\w+|reload\w*|create\w*|makedirs|mkdir|pop|unlink|remove|rmtree|delete\w*|clear|"
    r"reset\w*|install\w*|re?login|authenticate|update\w*|init\w*|ensure\w*|invalidate\w*|close|chmod|reconnect)$",
    "self.refresh_token",
    "fetch",
)
"""The ends of functions that change what made the attempt fail, such as `refresh_token` or `makedirs`."""

WAITS_FOR_STATE = pattern(
    r"(?i)(?:^|_)(?:a?wait(?:s|ing|ed)?|poll(?:s|ing)?|until|acquire|probe|ready|ensure_up|is_up)(?:_|$)",
    "wait_for_port",
    "waiter",
)
"""The names of functions that wait for a state, such as `wait_for_port`."""

RECONNECTS = pattern(r"re_?connect", "reconnect", "connect")
"""The names of functions that keep a connection alive."""

NOT_YET_ERRORS = pattern(
    r"(?:^|\.)(?:Queue)?(?:Empty|Full)$|Pending|NotReady|NotYet|InProgress|WouldBlock|BlockingIOError|InterruptedError|"
    r"(?<!Dead)Lock(?:File)?(?:Exists|ed|Held)|Invalid\w*State|InUse|Ongoing",
    "queue.Empty",
    "DeadLockHeld",
)
"""The names of errors that mean "not yet": a queue is empty, a lock is held, a job is not ready."""

PROMPTS = pattern(
    r"(?:^|[._])(?:input|getpass|prompt|readline)$|^(?:\w+\.)?(?:Prompt|questionary)\.\w+$",
    "getpass.getpass",
    "input_file",
)
"""The functions that ask a person."""

PROBES = pattern(
    r"(?:^|[._])(?:ping|head|check\w*|health\w*|is_\w+|probe\w*|wait\w*|connect_ex|create_connection|urlopen|search|describe\w*|"
    r"list\w*|show\w*|status|exists|alive|recv|recv_multipart|get_\w*(?:msg|message)|receive\w*)$",
    "client.ping",
    "mapping",
)
"""The ends of functions that only look whether something is there."""

SERVICES = pattern(
    r"re_?connect|listen|serve|forever|consume|subscri|(?:^|_)(?:loop|worker|pump|follow|tail|watch\w*|monitor|main|daemon|run)(?:_|$)",
    "worker",
    "network",
)
"""The names of functions that run for ever."""

NEXT_ALTERNATIVE = pattern(r"(?:^|_)(?:next|rotate|switch|failover|fallback)(?:_|$)", "next_server", "context")
"""The words in the name of a function that turns to another server or account."""

NEXT_WAIT = pattern(r"delay|backoff|wait|interval|sleep|retry|^next$", "next_delay", "next_server")
"""The words that make such a name one of a wait: `next_delay`."""

LEAVES_PROCESS = pattern(
    r"requests|http|client|session|urlopen|\.(?:post|put|request)$|json", "client.post", "queue.get"
)
"""The calls that may leave the process."""

STATUS_NAMES = pattern(
    r"^(?:(?:\w+_)?(?:status_code|http_status|http_code)|status|statusCode|code)$", "response_status_code", "exit_code"
)
"""The names of variables and attributes with a status."""

STATUS_GETTERS = pattern(r"(?:status_code|getcode|get_status)$", "response.getcode", "get_code")
"""The ends of functions that return a status."""

TOO_MANY_REQUESTS = pattern(
    r"(?i)rate_?limit|throttl|too_?many_?requests|TooManyRequests|RateLimit|quota", "is_rate_limited", "RateError"
)
"""The names of functions and errors, and the texts of errors, that stand for a 429."""

SUCCESS_STATUSES = pattern(r"(?i)(?:^|[._])ok|(?<!un)(?:success|accept|expected)|good", "self.expected", "unexpected")
"""The names of lists that hold the statuses of a success."""

NAMED_STATUS = pattern(r"\AHTTP_(\d{3})", "HTTP_429_TOO_MANY_REQUESTS", "HTTP_OK")
"""The names of statuses that have the number."""

STATUS_READS = pattern(r"status_code|\.status\b", "error.response.status_code", "response.statuses")
"""Code that looks at a status."""

REFUSALS = pattern(
    r"RateLimit|TooManyRequests|Throttl|ResourceExhausted|Connect(?:ion)?(?:Refused|Timeout)",
    "RateLimitError",
    "ConnectionError",
)
"""The names of errors that prove that the server did nothing: it was too busy, or never reached."""

ACCESS_ERRORS = pattern(
    r"(?:Authentication|Authorization|Unauthorized|Forbidden|AccessDenied|PermissionDenied|InvalidCredentials?)"
    r"(?:Error|Exception|Result|Failed|Failure)?$",
    "AccessDeniedException",
    "AccessDeniedRetry",
)
"""The ends of names of errors about a refused login or a missing right, in any package."""

CONFLICT_ERRORS = pattern(
    r"Integrity|Conflict|StaleData|Serializ|Deadlock|UniqueViolation|WatchError|Concurren|AlreadyExists|Aborted",
    "DeadlockDetected",
    "LockTimeout",
)
"""The names of errors about a conflict with a rival."""

OVERLOAD_CODES = pattern(
    r"(?i)throttl|throughput|slow_?down|too_?many|rate_?exceeded|unavailable|internal|timeout|429|5\d\d|transient",
    "ThrottlingException",
    "AccessDenied",
)
"""The codes of errors that botocore repeats itself: overload, and failures of the server."""

HTTP_CLIENTS = pattern(r"(?:^|_)(?:session|http|http_?client|client|sess)$", "my_session", "sessions")
"""The names of variables with a session or a client, where its type cannot be read."""

HARMLESS_URL_NAMES = pattern(
    r"(?i)(?:^|_)(?:token|auth|oauth|oauth2|login|embed|embedding|embeddings|rerank|tokenize|graphql|search|query)_?"
    r"(?:url|uri|endpoint|api|path|route)s?$",
    "token_url",
    "tokens",
)
"""The names of variables with the URL of such a path."""

READING_FUNCTIONS = pattern(
    r"^_*(?:async_|a|sync_|do_|try_)*(?:get|list|search|query|fetch|find|lookup|count|embed|rerank|tokenize|authenticate|login|"
    r"poll|read|describe|check|validate|verify|wait|translate|retrieve|sign_(?:jwt|blob|url))(?:_|$)|"
    r"(?:^|_)(?:refresh|acquire|renew|obtain|request|exchange|update)_(?:\w+_)?(?:token|jwt|credentials?|auth)(?:_|$)",
    "get_users",
    "target",
)
"""The names of functions that only read or compute, or get a token."""

WRITING_FUNCTIONS = pattern(
    r"create|add|insert|send|post|write|delete|submit|pay|charge|order|upload|publish|run|start|put",
    "search_and_delete",
    "search",
)
"""The words in the names of functions that write, whatever other words say."""

ACTING_FUNCTIONS = pattern(
    r"create|add_|insert|send|delete|submit|pay|charge|order|publish|alert|notify|book|buy|enqueue|register|rent|refund",
    "charge_card",
    "address",
)
"""Words in the names of functions that change something elsewhere."""

READING_CLASSES = pattern(
    r"Search|Embed|Rerank|Retriev|Translat|Moderat|Authenticat|OAuth|TokenProvider|Tokenizer", "OAuthClient", "Orders"
)
"""The names of classes that only read or compute, or get a token."""

IDEMPOTENCY_HEADERS = pattern(r"(?i)idempoten|payload[-_]?id|dedup|client[-_]?token", "Idempotency-Key", "X-Key")
"""The names of headers by which a server knows a request that it has seen."""

KEYS_IN_BODIES = pattern(
    r"(?i)idempoten|dedup|^(?:client_?)?(?:request|operation|mutation|transaction)_?id$|client_?(?:request_?)?token",
    "request_id",
    "id",
)
"""The names of fields and parameters by which a server knows a call that it has seen."""

ACTING_METHODS = pattern(
    r"^(?:a_|async_|bulk_|batch_)?(?i:create|insert|add|send|publish|post|submit|run|start|invoke|launch|trigger|produce|"
    r"emit|charge|refund|capture|transfer|pay|purchase|chat_?post|xadd|schedule)(?![a-z])",
    "create_job",
    "created",
)
"""The methods of clients that act twice when they are called twice."""

NAMED_THINGS = pattern(
    r"_(?:table|dataset|bucket|topic|subscription|index|indexes|collection|database|queue|session|server|client|url)$",
    "create_table",
    "create_job",
)
"""The ends of the names of methods that create something under the name that the caller chooses, or only here."""

PART_PARAMETERS = pattern(
    r"^(?:chunk_?(?:index|number|id)|part_?(?:index|number|id)|upload_?id|uploadId|partNumber|offset)$",
    "partNumber",
    "part",
)
"""The names of parameters that say which part of an upload a request has."""

FRESH_VALUES = pattern(
    r"\b(?:uuid[14]?|token_\w+|random\w*|time(?:_ns)?|now|urandom|ulid|nanoid)$", "uuid.uuid4", "timeout"
)
"""The ends of functions with another value on every call."""

WORD_STARTS = pattern(r"(?<=[a-z0-9])(?=[A-Z])", "getUsers", "get_users")
"""The places in a name in camel case where a new word begins."""

CONNECTIONS = pattern(r"conn|db|database", "self.db", "session")
"""The names of connections to databases, which are transactions in a `with`."""

RENAMES = pattern(r"^(?:os|shutil)\.|\.(?:unlink|rename|replace|rmdir)$", "os.replace", "replaced")
"""Calls that move or remove a file."""

TIMED_OUT = pattern(r"timed?_?out", "timedout", "time")
"""The names of errors about time that is over, in small letters."""

COUNTERS = pattern(
    r"attempt|tries|retr|count|stat|metric|log|err|call|fail|num|_n$|history|warn|seen|time|elapsed",
    "self.failures",
    "self.items",
)
"""The names of what should grow with each attempt: counters, logs, lists of errors."""

PURE_FUNCTIONS = pattern(
    r"(?:^|\.)(?:len|str|int|print|repr|range|isinstance|format|join|list|dict|tuple|float|min|max|sum|debug|info|warning|error|exception|monotonic|time|perf_counter|append|extend|insert|get|items|keys|values|copy)$",
    "logger.info",
    "client.send",
)
"""The ends of functions that cannot fail by a fault elsewhere."""

REWINDS = pattern(r"(?:^|_)(?:seek|(?:re_?)?open|reset|rewind)(?:_|$)", "seek", "seeker")
"""The names of methods that let the next attempt read a file or stream from its begin."""

STREAMS = pattern(
    r"^(?:f|fh|fp|stream|file_?obj|file_?handle|body_stream|\w+_(?:stream|fileobj|handle|fh|fp))$",
    "upload_stream",
    "streams",
)
"""The names of parameters that hold an open file."""

RESPONSES_AND_ERRORS = pattern(r"^(?:r|res|resp|response|e|ex|exc|err|error|exception)$", "resp", "result")
"""The usual names of a response or an error."""
