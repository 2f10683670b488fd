"""`check()`: a wrong URL, password or server is found when the program starts, with a cure."""

from collections.abc import Generator

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from forbear.core.events import BudgetDegraded, Event
from forbear.shared_budget.budget import BudgetUnavailable, SharedBudget
from forbear.testing.valkey import valkey_server
from forbear_testkit.clients.redis.proxy import HANG, Fate, proxy

SECRET = "hunter2"


@pytest.fixture(scope="module")
def path() -> Generator[str]:
    """Run a server with users and passwords."""
    with valkey_server() as running:
        with Redis(unix_socket_path=running) as admin:
            admin.execute_command("ACL", "SETUSER", "reader", "on", f">{SECRET}", "+get", "~*")
            admin.execute_command("ACL", "SETUSER", "narrow", "on", f">{SECRET}", "+eval", "+evalsha", "+hmget",
                                  "+hset", "+pexpire", "+time", "~{fb:*}")  # fmt: skip
            admin.set("{fb:taken}", "text")
            admin.config_set("requirepass", SECRET)
        yield running


def test_a_server_that_works(path: str) -> None:
    """Nothing is raised, also for a user who may do no more than the script needs."""
    for user in ("", "narrow"):
        budget = SharedBudget(f"unix://{user}:{SECRET}@{path}", "x")
        budget.check()
        budget._share.close()


WRONG = [
    ("unix://{path}", "x", "NOAUTH", "put the password in the URL"),
    ("unix://:hunter3@{path}", "x", "WRONGPASS", "check the user and password in the URL"),
    ("unix://reader:hunter2@{path}", "x", "NOPERM", "allow the user eval, evalsha, hmget, hset, pexpire and time"),
    ("unix://:hunter2@{path}?db=99", "x", "DB index is out of range", "use a database that the server has"),
    ("unix://:hunter2@{path}", "taken", "WRONGTYPE", "choose another name"),
    ("unix://:hunter2@{path}/no", "x", "cannot reach unix://{path}/no", "check host and port"),
]


@pytest.mark.parametrize(("url", "name", "why", "cure"), WRONG)
def test_what_is_wrong_and_what_helps(path: str, url: str, name: str, why: str, cure: str) -> None:
    """The text has the server, the reason and the cure, and no password."""
    budget = SharedBudget(url.replace("{path}", path), name)
    with pytest.raises(BudgetUnavailable, match=f"shared budget {name} cannot use unix://") as caught:
        budget.check()
    text = str(caught.value)
    assert why.replace("{path}", path) in text
    assert cure in text
    assert "hunter" not in text


RESPONSES: list[tuple[Fate, str, str]] = [
    (b"-ERR unknown command 'EVALSHA'\r\n", "unknown command", "use a server that runs scripts"),
    (b"HTTP/1.1 400 Bad Request\r\n", "not of the Redis protocol", "check the port, and whether it expects TLS"),
    (b"-READONLY You can't write against a read only replica.\r\n", "READONLY", "use the address of the primary"),
    (b"-OOM command not allowed\r\n", "OOM", "no memory left"),
    (b"+OK\r\n", "does not send", "check the URL"),
]


@pytest.mark.parametrize(("fate", "why", "cure"), RESPONSES)
def test_servers_of_another_kind(path: str, fate: Fate, why: str, cure: str) -> None:
    """A server without scripts, one of HTTP, a replica and a full one have texts of their own."""
    with proxy(path, lambda _: fate) as seen:
        budget = SharedBudget(f"redis://127.0.0.1:{seen.port}", "x")
        with pytest.raises(BudgetUnavailable, match=why) as caught:
            budget.check()
    assert cure in str(caught.value)


ECHO = b"-NOPERM User bob may not; s3cret \x1b[31m\r\n"


@pytest.mark.parametrize("greets", [True, False])
def test_a_server_that_repeats_the_password(path: str, greets: bool, patient: None) -> None:
    """No text has user, password or control characters, whichever command the server refuses."""
    events: list[Event] = []
    with proxy(path, lambda command: b"+OK\r\n" if greets and not command[0].startswith(b"EVAL") else ECHO) as seen:
        url = f"redis://bob:s3cret@127.0.0.1:{seen.port}"
        with Redis.from_url(url, retry=Retry(NoBackoff(), 0)) as client:
            for target in (url, client):
                budget = SharedBudget(target, "x", on_event=events.append)
                with pytest.raises(BudgetUnavailable, match="may not") as caught:
                    budget.check()
                budget.take()
                (event,) = events
                assert isinstance(event, BudgetDegraded)
                for text in (str(caught.value), event.text):
                    assert "bob" not in text
                    assert "s3cret" not in text
                    assert text.isprintable()
                events.clear()
                budget._share.close()


def test_a_server_that_does_not_answer(path: str) -> None:
    """It ends after the timeout, which must be positive."""
    with proxy(path, lambda _: HANG) as seen:
        budget = SharedBudget(f"redis://127.0.0.1:{seen.port}", "x")
        with pytest.raises(BudgetUnavailable, match=r"did not answer within 0\.05 s; check host and port"):
            budget.check(0.05)
        with pytest.raises(ValueError, match="`timeout` must be positive"):
            budget.check(0)
