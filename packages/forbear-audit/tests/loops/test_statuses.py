"""Which statuses let code go on: conditions are read for one status at a time."""

import ast
import textwrap

import pytest

from forbear_audit.loops.loop_exits import find_repeated_statuses
from forbear_audit.loops.paths import goes_on
from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import Loop

SAMPLES = (200, 404, 429, 500, 503, None)


def _passing(code: str) -> set[int | None]:
    """Return the samples for which the function `f` of some code may come to its end."""
    module = Module(ast.parse(textwrap.dedent(code)))
    function = module.top["f"]
    return {status for status in SAMPLES if goes_on(module, function.body, status)}


@pytest.mark.parametrize(
    ("condition", "passing"),
    [
        ("r.status_code == 200", {200}),
        ("r.status_code != 429", {200, 404, 500, 503, None}),
        ("r.status_code in (429, 503)", {429, 503}),
        ("r.status_code not in BUSY", {200, 404, 500, None}),
        ("500 <= r.status < 600", {500, 503, None}),
        ("r.status_code in unread", {404, 429, 500, 503, None}),
        ("r.status_code in self.expected", set(SAMPLES)),
        ("r.ok", {200, None}),
        ("not r.is_server_error", {200, 404, 429, None}),
        ("e.response is None or e.response.status_code >= 500", {500, 503, None}),
        ("getattr(e, 'status_code', None) == 429", {429}),
        ("e.code == HTTPStatus.TOO_MANY_REQUESTS", {429}),
        ("code in {status.HTTP_429_TOO_MANY_REQUESTS}", {429}),
        ("'429' in str(e)", {429}),
        ("is_rate_limited(e)", {429}),
        ("isinstance(e, RateLimitError)", {429}),
        ("r.status_code in range(400, 500)", {404, 429}),
        ("r.status_code == 429 and attempt < 3", {429}),
        ("r.status_code == 429 or attempt < 3", set(SAMPLES)),
        ("exit_code != 0", set(SAMPLES)),
        ("r.status in ('PENDING', 'RUNNING')", set(SAMPLES)),
        ("str(r.status_code) in {'429', '503'}", {429, 503}),
        ("r.status_code in frozenset({HTTPStatus.NOT_FOUND, 500})", {404, 500}),
        ("r.getcode() == HTTPStatus.NOT_FOUND", {404}),
    ],
)
def test_a_condition_passes_some_statuses(condition: str, passing: set[int | None]) -> None:
    """Code below a condition goes on for the statuses that fulfil it; an unknown condition passes them all."""
    code = f"""
    from http import HTTPStatus
    BUSY = (429, 503)
    def f(r, e, code, attempt, exit_code):
        if not ({condition}):
            return
    """
    assert _passing(code) == passing


def test_functions_and_handlers_are_followed() -> None:
    """A function that raises, and `raise_for_status()`, end the code unless a handler goes on."""
    code = """
    import requests
    def check(r):
        if r.status_code == 404:
            raise KeyError(r)
    def f(r):
        try:
            check(r)
            r.raise_for_status()
        except requests.HTTPError as error:
            if error.response.status_code < 500:
                raise
    """
    assert _passing(code) == {200, 500, 503, None}


@pytest.mark.parametrize(("success", "repeated"), [("r.status_code == 201", True), ("done", False)])
def test_a_loop_repeats_only_if_a_success_ends_it(success: str, repeated: bool) -> None:
    """Other statuses count only if the end after a success can be read."""
    module = Module(ast.parse(f"while True:\n    r = post()\n    if {success}:\n        break\n"))
    loop: Loop = module.loops[0]
    assert find_repeated_statuses(module, loop, (503,)) == ((503,) if repeated else ())
