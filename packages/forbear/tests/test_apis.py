"""The APIs that are known by their hosts."""

from types import ModuleType

import pytest

import forbear
from forbear import apis
from forbear.http.api import UNITS as API_UNITS
from forbear.http.api import Api, check_apis
from forbear.http.request import Request
from forbear.waits import UNITS


def test_every_known_api_is_found_by_its_host() -> None:
    """The list is complete, and no two of them overlap."""
    named = [value for value in vars(apis).values() if isinstance(value, Api) and value is not apis.UNKNOWN]
    assert check_apis(named) == apis.KNOWN
    for api in apis.KNOWN:
        host = api.shown_host.replace("*", "anything")
        assert apis.find_api(Request("POST", host, "/").origin) is api
    assert apis.find_api(Request("POST", "api.openai.com.example.com", "/").origin) is apis.UNKNOWN


def test_every_unit_can_be_parsed() -> None:
    """The units that an API may state are those that waits are read in."""
    assert set(API_UNITS) == set(UNITS)


def test_the_user_s_api_goes_first() -> None:
    """An API of the user joins the known one of its host; the known value itself stays as it is."""
    origin = Request("POST", "api.stripe.com", "/").origin
    assert apis.find_api(origin, apis.stripe) is apis.stripe
    mine = Api("https://api.stripe.com", transient=[409])
    joined = apis.find_api(origin, mine)
    assert joined.transient == {409}
    assert joined.retry_headers == apis.stripe.retry_headers
    elsewhere = Api("https://api.example.com")
    assert apis.find_api(Request("POST", "api.example.com", "/").origin, elsewhere) is elsewhere


class _Client:
    """A client of an SDK, as far as its class and its base URL show it."""

    __module__ = "openai.fake"

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url


def test_the_api_of_an_sdk_is_known_at_any_base_url() -> None:
    """The rules of the SDK count at its base URL, beside the words of the user for that origin."""
    (api,) = apis.add_api_of_sdk((), _Client("http://localhost:8000/v1"))
    assert api == apis.openai.replace(origin="http://localhost:8000")
    mine, other = Api("http://localhost:8000", transient=[404]), Api("http://localhost:9000")
    joined, unchanged = apis.add_api_of_sdk([mine, other], _Client("http://localhost:8000/v1"))
    assert joined == mine.join(apis.openai)
    assert unchanged is other
    assert apis.add_api_of_sdk(mine, object()) == (mine,)
    (api,) = apis.add_api_of_sdk((), _Client("http://user:secret@localhost:8000/v1"))
    assert api.origin == "http://localhost:8000"


def test_the_module_is_an_attribute_of_forbear() -> None:
    """`forbear.apis.stripe` needs no import of its own."""
    assert isinstance(forbear.apis, ModuleType)
    assert forbear.apis.stripe is apis.stripe


@pytest.mark.parametrize("unit", sorted(UNITS))
def test_an_api_accepts_every_unit(unit: str) -> None:
    """Whatever can be parsed may be stated."""
    assert Api("https://api.example.com", wait_headers={"x-reset": unit}).wait_headers == {"x-reset": unit}
