"""`install` and `uninstall`: what they accept, and whose retries count before and after."""

from types import SimpleNamespace
from typing import Any

import pytest

import forbear
from forbear.clients._botocore.events import find_installed
from forbear.clients.botocore import install, uninstall
from forbear.services.aws import policy as aws_policy
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.wire import Wire
from forbear_testkit.lazily import Library

boto3: Any = Library("boto3")
botocore_session: Any = Library("botocore.session")
exceptions: Any = Library("botocore.exceptions")

MODES = ["legacy", "standard", "adaptive"]


def sends(client: Any, server: Wire) -> int:
    """Return how many requests a client sends for a write whose response is lost."""
    server.seen.clear()
    with pytest.raises(exceptions.ConnectionClosedError):
        client.send_message(QueueUrl=f"{server.url}/1/q", MessageBody="m")
    return len(server.seen)


def handlers(client: Any, event: str) -> list[Any]:
    """Return the handlers that a client has for an event."""
    found: list[Any] = client.meta.events._emitter._handlers.prefix_search(event)
    return found


@pytest.fixture
def server() -> Any:
    """A server that executes every request and loses the response."""
    with Wire(aws.LOST) as wire:
        yield wire


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> Any:
    """botocore waits by itself where forbear is not installed, or is not any more."""
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=int))
    with virtual_time():
        yield


@pytest.mark.parametrize("mode", MODES)
def test_the_ids_of_botocore(mode: str, server: Wire) -> None:
    """botocore registers its handlers under the ids that forbear takes, once in each mode."""
    client = aws.client("sqs", server.url, mode)
    mine = handlers(client, "needs-retry.sqs.SendMessage")
    install(client)
    ours = handlers(client, "needs-retry.sqs.SendMessage")
    assert len(ours) == len(mine)
    assert len(set(map(str, mine)) - set(map(str, ours))) == 1


@pytest.mark.parametrize("mode", MODES)
def test_uninstall(mode: str, server: Wire) -> None:
    """Whose retries count: botocore's, forbear's, botocore's again."""
    client = aws.client("sqs", server.url, mode)
    stock = sends(client, server)
    assert stock == {"legacy": 5}.get(mode, 3)
    before = list(map(str, handlers(client, "needs-retry.sqs.SendMessage")))
    assert install(client) is client
    assert sends(client, server) == 1
    assert uninstall(client) is client
    assert sends(client, server) == stock
    assert sorted(map(str, handlers(client, "needs-retry.sqs.SendMessage"))) == sorted(before)
    assert find_installed(client.meta.events) is None
    install(client)
    assert sends(client, server) == 1


def test_other_handlers_stay(server: Wire) -> None:
    """The redirector of S3 and its check of statuses stay on the same event."""
    client = aws.client("s3", server.url)
    before = list(map(str, handlers(client, "needs-retry.s3.GetObject")))
    install(client)
    after = list(map(str, handlers(client, "needs-retry.s3.GetObject")))
    assert sum(name in after for name in before) == len(before) - 1
    assert any("redirect_from_error" in name for name in after)


def test_one_client_alone(server: Wire) -> None:
    """Another client of the same session keeps botocore's retries."""
    session = boto3.Session(**aws.CREDENTIALS)
    one, other = (aws.track(session.client("sqs", endpoint_url=server.url, config=aws.settings())) for _ in range(2))
    install(one)
    assert (sends(one, server), sends(other, server)) == (1, 3)


@pytest.mark.parametrize("mode", MODES)
def test_session(mode: str, server: Wire) -> None:
    """All clients that a session makes from then on have the retries, until they are uninstalled."""
    session = boto3.Session(**aws.CREDENTIALS)

    def make() -> Any:
        return aws.track(session.client("sqs", endpoint_url=server.url, config=aws.settings(mode)))

    older = make()
    assert install(session, attempts=2) is session
    resource = session.resource("sqs", endpoint_url=server.url, config=aws.settings())
    clients = [make(), make(), aws.track(resource.meta.client)]
    assert [sends(client, server) for client in clients] == [1, 1, 1]
    assert sends(older, server) > 1
    with pytest.raises(ValueError, match="already"):
        install(make())
    with pytest.raises(ValueError, match="already"):
        install(session)
    with pytest.raises(ValueError, match="from its session"):
        uninstall(make())
    uninstall(session)
    assert sends(make(), server) > 1
    assert sends(clients[0], server) == 1
    install(session)
    assert sends(make(), server) == 1


def test_session_of_botocore(server: Wire) -> None:
    """A session of botocore itself is one, too."""
    session = install(botocore_session.Session())
    client = session.create_client(
        "sqs",
        region_name="us-east-1",
        endpoint_url=server.url,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=aws.settings(),
    )
    assert sends(aws.track(client), server) == 1


def test_resource(server: Wire) -> None:
    """A resource sends by its client."""
    session = boto3.Session(**aws.CREDENTIALS)
    resource = install(session.resource("sqs", endpoint_url=server.url, config=aws.settings()))
    assert sends(aws.track(resource.meta.client), server) == 1


@pytest.mark.parametrize(
    "target",
    [None, 7, "sqs", object(), forbear, type("Client", (), {}), pytest.raises],
    ids=lambda target: repr(target)[:20],
)
def test_other_targets(target: object) -> None:
    """Anything but a client, a resource or a session is refused."""
    with pytest.raises(TypeError, match="`client` must be"):
        install(target)
    with pytest.raises(TypeError, match="`client` must be"):
        uninstall(target)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"policy": 7}, TypeError, "`policy`"),
        ({"policy": forbear.retry(OSError, repeatable=True)}, ValueError, "repeatable"),
        ({"policy": forbear.retry(KeyError)}, TypeError, "botocore"),
        ({"policy": forbear.retry(OSError, on_result=bool)}, ValueError, "on_result"),
        ({"attempts": 0}, ValueError, "`attempts`"),
        ({"attempt": 3}, TypeError, "attempts"),
        ({"on": OSError}, TypeError, "`on`"),
        ({"safe": 7}, TypeError, "`safe`"),
        ({"safe": [7]}, TypeError, "`safe`"),
        ({"safe": "SendMessage"}, ValueError, "`safe`"),
        ({"safe": "*.SendMessage"}, ValueError, "`safe`"),
        ({"safe": "sns.Publish"}, ValueError, "operations of sqs"),
        ({"safe": "sqs.SendMessages"}, ValueError, "operations of sqs"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], text: str, server: Wire) -> None:
    """Wrong options name the parameter, and leave the client as it was."""
    client = aws.client("sqs", server.url)
    with pytest.raises(error, match=text):
        install(client, **options)
    assert find_installed(client.meta.events) is None


def test_attempt_timeout(server: Wire) -> None:
    """The client's own timeouts are those of an attempt."""
    with pytest.raises(ValueError, match="read_timeout"):
        install(aws.client("sqs", server.url), attempt_timeout=3)


def test_uninstall_nothing(server: Wire) -> None:
    """There must be something to uninstall."""
    with pytest.raises(ValueError, match="without"):
        uninstall(aws.client("sqs", server.url))
    with pytest.raises(ValueError, match="without"):
        uninstall(boto3.Session(**aws.CREDENTIALS))


def test_budget_per_host(server: Wire) -> None:
    """A budget per host is that of the client's endpoint; a session has no host."""
    policy = aws_policy.with_budget(forbear.budgets.Budget.per_host())
    install(aws.client("sqs", server.url), policy)
    with pytest.raises(ValueError, match="per host"):
        install(boto3.Session(**aws.CREDENTIALS), policy)


def find_anything(name: str) -> str:
    """Return that a module is installed, whatever its name."""
    return name


def test_transfers_that_are_not_seen(server: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """With awscrt installed, a client of S3 says that such transfers repeat by themselves."""
    monkeypatch.setattr("forbear.clients._botocore.install.find_spec", find_anything)
    with pytest.warns(UserWarning, match="preferred_transfer_client"):
        install(aws.client("s3", server.url))
    install(aws.client("sqs", server.url))
