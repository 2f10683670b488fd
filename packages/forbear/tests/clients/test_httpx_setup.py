"""Setting the transports up: clear errors for what cannot be right, and how to install what is missing."""

import subprocess
import sys
from typing import Any

import httpx
import httpx2
import pytest

from forbear.services import cloud_storage
from forbear_testkit.clients.flavours import Flavour


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"policy": "fast"}, "`policy` must be a forbear.Policy or None (each service's own), got 'fast'"),
        ({"buffer": "8 MiB"}, "`buffer` must be a whole number of bytes, got '8 MiB'"),
        ({"buffer": -1}, "`buffer` must be 0 or more, got -1"),
        ({"transport": "http"}, "`transport` must be an {kind} or None (a plain one), got 'http'"),
    ],
)
def test_wrong_arguments_are_refused_with_a_cure(flavour: Flavour, options: dict[str, Any], text: str) -> None:
    """Each error names the parameter, the rule and the value."""
    kind = f"{flavour.library.__name__}.{'Async' if flavour.is_async else ''}BaseTransport"
    with pytest.raises((TypeError, ValueError)) as caught:
        flavour.transport(**options)
    assert str(caught.value) == text.format(kind=kind)


def test_a_transport_of_the_other_style_is_refused(flavour: Flavour) -> None:
    """A sync transport cannot send for an async one, nor the other way round."""
    other = flavour.library.HTTPTransport if flavour.is_async else flavour.library.AsyncHTTPTransport
    with pytest.raises(TypeError, match="`transport` must be an "):
        flavour.transport(transport=other(verify=False))


async def test_a_client_of_the_other_style_names_the_transport_that_it_needs(flavour: Flavour) -> None:
    """The error at the first request, or at `with`, says which transport to use."""
    make: Any = flavour.library.Client if flavour.is_async else flavour.library.AsyncClient
    transports = ["AsyncRetryTransport", "RetryTransport"]
    got, needed = transports if flavour.is_async else reversed(transports)

    async def send() -> None:
        sent = make(transport=flavour.transport()).get("http://localhost/")
        await sent

    async def enter() -> None:
        client = make(transport=flavour.transport())
        await (client.__enter__() if flavour.is_async else client.__aenter__())

    for use in (send, enter):
        with pytest.raises(AttributeError) as caught:
            await use()
        assert str(caught.value) == f"`transport` of {make.__module__}.{make.__name__} must be {needed}(), got {got}()"


def test_other_attributes_are_missing_as_ever(flavour: Flavour) -> None:
    """A name that no transport has is missing with Python's own text."""
    name = "AsyncRetryTransport" if flavour.is_async else "RetryTransport"
    with pytest.raises(AttributeError, match=f"^'{name}' object has no attribute 'retries'$"):
        _ = flavour.transport().retries


def test_a_client_of_the_other_library_is_refused(flavour: Flavour) -> None:
    """The first request says which module to import from; otherwise only a retry would fail."""
    own, other = flavour.library, httpx2 if flavour.library is httpx else httpx
    request = other.Request("GET", "http://localhost/")
    transport = flavour.transport()
    with pytest.raises(TypeError) as caught:
        transport._options_for(request)
    name = "AsyncRetryTransport" if flavour.is_async else "RetryTransport"
    assert str(caught.value) == (
        f"`transport` of a client of {other.__name__} must not be forbear's {name} for {own.__name__}; "
        f"import {name} from forbear.clients.{other.__name__}"
    )


def test_without_a_transport_a_plain_one_sends(flavour: Flavour) -> None:
    """The default is the library's own transport, and it is closed with ours."""
    adapter = flavour.adapter
    transport = (adapter.AsyncRetryTransport if flavour.is_async else adapter.RetryTransport)(cloud_storage.policy)
    plain = flavour.library.AsyncHTTPTransport if flavour.is_async else flavour.library.HTTPTransport
    assert type(transport._transport) is plain


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_a_missing_library_is_said_with_its_cure(library: str) -> None:
    """Importing an adapter without its library names the extra to install; forbear itself does without."""
    script = f"import sys; sys.modules[{library!r}] = None; import forbear; import forbear.clients.{library}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(
        f'ImportError: forbear.clients.{library} needs {library}; install it with: pip install "forbear[{library}]"'
    )


@pytest.mark.parametrize(("library", "other"), [("httpx", "httpx2"), ("httpx2", "httpx")])
def test_each_adapter_loads_its_own_library_only(library: str, other: str) -> None:
    """The module that both adapters share imports neither library."""
    script = f"import sys; sys.modules[{other!r}] = None; import forbear.clients.{library}"
    subprocess.run([sys.executable, "-c", script], check=True)
