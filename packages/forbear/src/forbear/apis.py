"""APIs that are known by their hosts: how their servers ask for waits and retries, with the page that says so.

None of them adds a key or counts one by itself: `apis=[forbear.apis.stripe]` of an adapter makes keys count there.
The pages were read in November 2026.
"""

from functools import lru_cache

from forbear.http.api import Api, IdempotencyKey, check_apis
from forbear.http.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from forbear.http.patterns import Origin

_OPENAI_QUOTAS = {"x-ratelimit-reset-requests": "duration", "x-ratelimit-reset-tokens": "duration"}
SDK_STATUSES = (408, 409, 429, *range(500, 600))
"""The statuses after which the SDKs of OpenAI and Anthropic, and those made like them, send a request again."""

openai = Api(
    "https://api.openai.com",
    service="llm",
    transient=SDK_STATUSES,
    wait_headers={"retry-after-ms": "milliseconds", **_OPENAI_QUOTAS},
    retry_headers="x-should-retry",
)
"""OpenAI. Source: platform.openai.com/docs/guides/rate-limits ("6m0s"); its SDKs for statuses and x-should-retry."""

anthropic = Api(
    "https://api.anthropic.com",
    service="llm",
    transient=SDK_STATUSES,
    wait_headers={
        "retry-after-ms": "milliseconds",
        "anthropic-ratelimit-requests-reset": "rfc3339",
        "anthropic-ratelimit-tokens-reset": "rfc3339",
        "anthropic-ratelimit-input-tokens-reset": "rfc3339",
        "anthropic-ratelimit-output-tokens-reset": "rfc3339",
    },
    retry_headers="x-should-retry",
)
"""Anthropic. Source: docs.anthropic.com/en/api/rate-limits (RFC 3339); its SDKs for statuses and x-should-retry."""

azure_openai = Api(
    "https://*.openai.azure.com",
    service="llm",
    transient=SDK_STATUSES,
    wait_headers=("retry-after-ms", "x-ms-retry-after-ms"),
    retry_headers="x-should-retry",
)
"""Azure OpenAI. Source: learn.microsoft.com/azure/ai-services/openai/how-to/quota (retry-after-ms)."""

gemini = Api("https://generativelanguage.googleapis.com")
"""Gemini: RetryInfo in the JSON body of a 429. Source: ai.google.dev/gemini-api/docs/rate-limits."""

mistral = Api("https://api.mistral.ai", service="llm")
"""Mistral: Retry-After. Source: docs.mistral.ai/deployment/laplateforme/tier."""

groq = Api(
    "https://api.groq.com",
    service="llm",
    transient=SDK_STATUSES,
    wait_headers=_OPENAI_QUOTAS,
    retry_headers="x-should-retry",
)
"""Groq. Source: console.groq.com/docs/rate-limits ("2m59.56s"); its SDK for statuses and x-should-retry."""

openrouter = Api("https://openrouter.ai", service="llm", wait_headers={"x-ratelimit-reset": "epoch_milliseconds"})
"""OpenRouter. Source: openrouter.ai/docs/api-reference/limits."""

stripe = Api(
    "https://api.stripe.com",
    key=IdempotencyKey("Idempotency-Key", hours=24),
    retry_headers="stripe-should-retry",
)
"""Stripe. Source: docs.stripe.com/api/idempotent_requests (24 hours); its SDKs for Stripe-Should-Retry."""

github = Api("https://api.github.com", throttles=[403], wait_headers={"x-ratelimit-reset": "epoch"})
"""GitHub. Source: docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api (403 or 429, epoch seconds)."""

slack = Api("https://slack.com", service="slack")
"""Slack: Retry-After. Source: docs.slack.dev/apis/web-api/rate-limits."""

twilio = Api("https://api.twilio.com", not_executed=[429])
"""Twilio, which processes no request that it answers with 429. Source: www.twilio.com/docs/api/errors/20429."""

shopify = Api("https://*.myshopify.com")
"""Shopify: Retry-After, with fractions. Source: shopify.dev/docs/api/usage/limits."""

notion = Api("https://api.notion.com", transient=[409, 529])
"""Notion: Retry-After, also with 529. Source: developers.notion.com/reference/request-limits and /status-codes."""

cloudflare = Api("https://api.cloudflare.com")
"""Cloudflare: Retry-After and RateLimit. Source: developers.cloudflare.com/fundamentals/api/reference/limits."""

discord = Api("https://discord.com", wait_headers={"x-ratelimit-reset-after": "seconds"})
"""Discord. Source: docs.discord.com/developers/topics/rate-limits."""

KNOWN = (
    openai, anthropic, azure_openai, gemini, mistral, groq, openrouter, stripe, github, slack, twilio, shopify, notion,
    cloudflare, discord,
)  # fmt: skip
"""All APIs that are found by their hosts."""


OF_SDKS = {"openai": openai, "anthropic": anthropic, "groq": groq}
"""The APIs by the package of the SDK that calls them, also at another origin (`base_url`)."""

UNKNOWN = Api("https://unknown.invalid")
"""The API of which nothing is known."""


def find_api(origin: "Origin", own: Api | None = None) -> Api:
    """Return what is known of the API at an origin (`Request.origin`): the user's `own` value, joined with ours."""
    known = _find_known(origin)
    if own is None or own is known:
        return known
    return own if known is UNKNOWN else own.join(known)


@lru_cache(maxsize=256)
def _find_known(origin: "Origin") -> Api:
    return next((api for api in KNOWN if api.is_for(origin)), UNKNOWN)


def add_api_of_sdk(apis: "Api | Iterable[Api]", client: object) -> tuple[Api, ...]:
    """Return the `apis` of the user, and what is known of the one that the SDK's `client` calls at its `base_url`."""
    listed = check_apis(apis)
    known = OF_SDKS.get(type(client).__module__.partition(".")[0])
    scheme, mark, rest = str(getattr(client, "base_url", "")).partition("://")
    if known is None or not mark:
        return listed
    host = rest.partition("/")[0].rpartition("@")[2]
    origin = Request("", host, "", scheme=scheme).origin
    if any(api.is_for(origin) for api in listed):
        return tuple(api.join(known) if api.is_for(origin) else api for api in listed)
    return (*listed, known.replace(origin=f"{scheme}://{host}"))
