"""Stripe's SDK. Its calls without a client are set up by globals, so they take turns."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

import requests

import forbear
from forbear.clients.requests import RetryAdapter
from forbear_testkit.lazily import Library as Lazy
from tools.sdk_repeats.origin import Response
from tools.sdk_repeats.trials import Library, Operation

stripe: Any = Lazy("stripe")
_globals = Lock()


class _Setup(NamedTuple):
    """The settings of one trial."""

    url: str
    mode: str

    @property
    def http_client(self) -> Any:
        """The sender of HTTP requests, None for Stripe's own."""
        if self.mode != "forbear":
            return None
        session = requests.Session()
        session.mount(self.url, RetryAdapter(apis=forbear.apis.stripe.replace(origin=self.url)))
        return stripe.RequestsClient(session=session)


def _load() -> Any:
    return import_module("stripe")


@cache
def _default_retries() -> int:
    """Return the setting that Stripe's module comes with; called before it is changed."""
    retries: int = _load().max_network_retries
    return retries


def _call(resource: str, method: str = "create", *arguments: str, **params: Any) -> Callable[[Any], object]:
    """Return a call of a class, without a client."""

    def call(setup: Any) -> object:
        with _globals:
            library, retries = _load(), _default_retries()
            library.api_key, library.api_base = "sk_test_x", setup.url
            library.max_network_retries = retries if setup.mode == "default" else 0
            library.default_http_client = setup.http_client
            return getattr(getattr(library, resource), method)(*arguments, **params)

    return call


def _call_client(setup: Any) -> object:
    options: dict[str, Any] = {"max_network_retries": 0} if setup.mode == "off" else {}
    client = stripe.StripeClient(
        "sk_test_x", base_addresses={"api": setup.url}, http_client=setup.http_client, **options
    )
    return client.v1.charges.create(params={"amount": 100, "currency": "eur"})


_PAY: dict[str, Any] = {"amount": 100, "currency": "eur"}
LIBRARIES = (
    Library(
        "stripe",
        ("stripe",),
        _Setup,
        "stripe.max_network_retries = 0",
        "session.mount(url, RetryAdapter(apis=forbear.apis.stripe))",
        (
            Operation("PaymentIntent.create", _call("PaymentIntent", **_PAY), ""),
            Operation("PaymentIntent.confirm", _call("PaymentIntent", "confirm", "pi_1"), ""),
            Operation("Charge.create", _call("Charge", **_PAY, source="tok"), ""),
            Operation("Refund.create", _call("Refund", charge="ch_1"), ""),
            Operation("Customer.create", _call("Customer", email="a@example.com"), ""),
            Operation("Subscription.create", _call("Subscription", customer="c", items=[{"price": "p"}]), ""),
            Operation("InvoiceItem.create", _call("InvoiceItem", customer="c"), ""),
            Operation("StripeClient: v1.charges.create", _call_client, ""),
        ),
        lambda request: Response(200, b'{"id": "x", "object": "x"}', (("Content-Type", "application/json"),)),
        lambda request: request.headers.get("idempotency-key"),
        "Stripe drops a second request with the same key, which the SDK makes for each call. A `StripeClient` repeats "
        "nothing unless it has `max_network_retries`.",
    ),
)
