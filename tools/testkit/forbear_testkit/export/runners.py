"""Run what is exported for each target: many calls at the same time against a timed cloud, which fails each."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
import tenacity
import urllib3
from botocore.session import Session
from celery import Celery
from celery.contrib.testing.worker import start_worker
from celery.signals import setup_logging
from google.api_core.retry import Retry

from forbear import export
from forbear.policy import Policy
from forbear_cloud import Cloud
from forbear_testkit import ROOT
from forbear_testkit.export.timed import Clock, names

HERE = ROOT / "packages" / "forbear" / "tests" / "export" / "waits"
EMULATOR = Path("/usr/lib/google-cloud-sdk/platform/pubsub-emulator/lib")
# gsutil has no option to go without TLS.
GSUTIL = """
import sys, httplib2
httplib2.HTTPSConnectionWithTimeout.connect = httplib2.HTTPConnectionWithTimeout.connect
from gslib.__main__ import main
sys.argv[0] = "gsutil"
sys.exit(main())
"""


class Failed(Exception):
    """A request that got a 503."""


def run(*command: str, cwd: Path, **env: str) -> str:
    """Return the output of a program; fail with its own error text."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=570, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def program(name: str, cure: str) -> str:
    """Return the path of a program, or skip the test without it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed: {cure}")
    return path


def installed(package: str, folder: Path) -> dict[str, str]:
    """Install a package of PyPI into a folder; return the environment to run it in, and its version as VERSION."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(folder))
    run(*pip, package, cwd=folder.parent)
    (metadata,) = folder.glob(f"{package}-*.dist-info")
    return {"PYTHONPATH": str(folder), "VERSION": metadata.name.removeprefix(f"{package}-").removesuffix(".dist-info")}


def nodejs(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run the text with the npm package."""
    node, npm = (program(name, "apt install nodejs npm") for name in ("node", "npm"))
    run(npm, "install", "--no-audit", "--no-fund", "@google-cloud/storage@7", cwd=folder)
    (folder / "snippet.js").write_text(export.nodejs(policy).value + (HERE / "nodejs.js").read_text())
    where = f"{cloud.url}/storage/v1"  # it adds no path to this one
    run(node, "snippet.js", str(calls), cwd=folder, STORAGE_EMULATOR_HOST=where, GOOGLE_CLOUD_PROJECT="p")
    package = folder / "node_modules" / "@google-cloud" / "storage" / "package.json"
    return f"@google-cloud/storage {json.loads(package.read_text())['version']}, reads of metadata"


def go(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run the text's gax.Backoff with Debian's gax-go."""
    compiler = program("go", "apt install golang-go golang-github-googleapis-gax-go-dev")
    backoff = re.search(r"gax\.Backoff\{.*?\}", export.go(policy).value, re.DOTALL)
    assert backoff is not None
    (folder / "main.go").write_text((HERE / "gax.go").read_text().replace("BACKOFF", backoff[0]))
    env = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": str(folder / "cache")}
    run(compiler, "build", "-o", "main", "main.go", cwd=folder, **env)
    run("./main", cloud.url, str(calls), cwd=folder)
    return f"gax-go 2, {run(compiler, 'version', cwd=folder).split()[2]}"


def java(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run the text's RetrySettings with the gax-java in the Pub/Sub emulator of the Google Cloud CLI.

    That version of gax-java takes Duration of another package, from setters without the suffix Duration.
    """
    compiler, runtime = (program(name, "apt install default-jdk") for name in ("javac", "java"))
    jars = [str(path) for path in EMULATOR.glob("*.jar")]
    if not jars:
        pytest.skip("gax-java is not installed: apt install google-cloud-cli-pubsub-emulator")
    settings = re.search(r"RetrySettings retrySettings =.*?;", export.java(policy).value, re.DOTALL)
    assert settings is not None
    text = re.sub(r"(\.set\w+)Duration\(", r"\1(", settings[0])
    (folder / "Gax.java").write_text((HERE / "Gax.java").read_text().replace("SETTINGS", text))
    run(compiler, "-cp", jars[0], "Gax.java", cwd=folder)
    run(runtime, "-Xss512k", "-cp", f"{jars[0]}:.", "Gax", cloud.url, str(calls), cwd=folder)
    return "gax-java of the Pub/Sub emulator"


def ruby(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run the text's arguments with Debian's retriable, called as google-apis-core calls it."""
    interpreter = program("ruby", "apt install ruby ruby-retriable")
    arguments = export.ruby(policy).value.partition("Storage.new(")[2].rpartition(")")[0]
    (folder / "main.rb").write_text((HERE / "retriable.rb").read_text().replace("ARGUMENTS", arguments))
    run(interpreter, "main.rb", cloud.url, str(calls), cwd=folder)
    shown = run(interpreter, "-r", "retriable", "-e", "print Retriable::VERSION", cwd=folder)
    return f"retriable {shown}"


def php(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run the text with PHP, on a client of our own that waits as ExponentialBackoff does."""
    interpreter = program("php", "apt install php-cli")
    (folder / "client.php").write_text((HERE / "client.php").read_text())
    text = f"<?php\nrequire 'client.php';\n{export.php(policy).value}{(HERE / 'storage.php').read_text()}"
    (folder / "main.php").write_text(text)
    run(interpreter, "main.php", cloud.url, str(calls), cwd=folder)
    return f"the text's function under PHP {run(interpreter, '-r', 'echo PHP_VERSION;', cwd=folder)}"


def cpp(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run the google-cloud-cpp in pyarrow, whose backoff cannot be set: it is the one of the export for this policy."""
    text = export.cpp(policy).value
    assert "std::chrono::milliseconds(1000),\n" in text, text
    assert "2.0)\n" in text, text
    env = installed("pyarrow", folder / "packages")
    run(sys.executable, str(HERE / "arrow.py"), cloud.url, str(calls), cwd=folder, **env)
    return f"google-cloud-cpp in pyarrow {env['VERSION']}"


def boto(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run gsutil with the exported file: deletes of many objects."""
    env = installed("gsutil", folder / "packages")
    (folder / ".boto").write_text(export.boto(policy).value)
    url = urlsplit(cloud.url)
    options = [
        f"Credentials:gs_json_host={url.hostname}",
        f"Credentials:gs_json_port={url.port}",
        "GSUtil:default_project_id=p",
        f"GSUtil:state_dir={folder}",
        "GSUtil:use_gcloud_storage=False",
        "GSUtil:parallel_process_count=1",
        "GSUtil:parallel_thread_count=8",
    ]
    line = [sys.executable, "-c", GSUTIL, "-q", "-m", *(part for option in options for part in ("-o", option))]
    env |= {"BOTO_CONFIG": str(folder / ".boto"), "HOME": str(folder)}
    run(*line, "rm", *(f"gs://b/{name}" for name in names(calls)), cwd=folder, **env)
    return f"gsutil {env['VERSION']}, JSON API"


def gcloud(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run gcloud with the exported properties: downloads of many objects."""
    cli = program("gcloud", "apt install google-cloud-cli")
    properties = re.findall(r"(\w+) = (\d+)", export.gcloud(policy).value)
    env = {
        "HOME": str(folder),
        "CLOUDSDK_CONFIG": str(folder / "gcloud"),
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"{cloud.url}/storage/v1/",
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "CLOUDSDK_CORE_PROJECT": "p",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "true",
        "CLOUDSDK_STORAGE_PROCESS_COUNT": "1",
        "CLOUDSDK_STORAGE_THREAD_COUNT": str(calls),
        **{f"CLOUDSDK_STORAGE_{name.upper()}": value for name, value in properties},
    }
    target = folder / "back"
    target.mkdir()
    run(cli, "storage", "cp", "gs://b/*", str(target), "--quiet", "--verbosity=error", cwd=folder, **env)
    shown = run(cli, "version", "--format=value('Google Cloud SDK')", cwd=folder, **env).strip()
    return f"gcloud {shown}, downloads"


def together(calls: int, call: Callable[[str], object]) -> None:
    """Call a function for each object, all at the same time."""
    with ThreadPoolExecutor(calls) as threads:
        for done in [threads.submit(call, name) for name in names(calls)]:
            done.result()


def opened(cloud: Cloud, name: str, pool: urllib3.PoolManager) -> None:
    """Read an object without retries; raise Failed for a 503."""
    response = pool.request("GET", f"{cloud.url}/storage/v1/b/b/o/{name}", retries=False)
    if response.status != 200:
        raise Failed


def google_api_core(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run the Retry."""
    retry: Retry = export.google_api_core(policy.replace(service=None).with_on(Failed).with_repeatable(True)).value
    with urllib3.PoolManager(maxsize=calls) as pool:
        together(calls, lambda name: retry(opened)(cloud, name, pool))
    return f"google-api-core {version('google-api-core')}"


def tenacity_(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run the text's Retrying."""
    namespace: dict[str, Any] = {}
    policy = policy.replace(service=None).with_on(ConnectionError).with_repeatable(True)
    exec(export.source("tenacity", policy).value, namespace)
    retrying: tenacity.Retrying = namespace["RETRYING"]

    def read(name: str, pool: urllib3.PoolManager) -> None:
        try:
            opened(cloud, name, pool)
        except Failed as error:
            raise ConnectionError from error

    with urllib3.PoolManager(maxsize=calls) as pool:
        together(calls, lambda name: retrying.copy()(read, name, pool))
    return f"tenacity {version('tenacity')}"


def urllib3_(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run the Retry."""
    retries = export.urllib3(policy).value

    def read(name: str) -> None:
        response = pool.request("GET", f"{cloud.url}/storage/v1/b/b/o/{name}", retries=retries)
        assert response.status == 200

    with urllib3.PoolManager(maxsize=calls) as pool:
        together(calls, read)
    return f"urllib3 {version('urllib3')}"


def botocore(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run the Config, with a client for each call, because a client's retries share a quota."""
    config = export.botocore(policy).value
    clients = [
        Session().create_client(
            "s3",
            "us-east-1",
            endpoint_url=cloud.url,
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            config=config,
        )
        for _ in range(min(calls, 40))
    ]

    def read(name: str) -> None:
        client: Any = clients[int(name[1:]) % len(clients)]
        client.head_object(Bucket="b", Key=name)

    together(calls, read)
    return f"botocore {version('botocore')}"


def _leave_logging_alone(**_: object) -> None:
    """Have Celery set up no logging: it would raise the level of the root logger, also where it is no hijacker."""


def celery(policy: Policy, cloud: Cloud, calls: int, folder: Path) -> str:
    """Run a worker, which makes each retry a message with the time at which to run it."""
    app = Celery("app", broker="memory://", backend="cache+memory://")
    app.conf.update(worker_prefetch_multiplier=0)
    setup_logging.connect(_leave_logging_alone)
    app.conf.broker_transport_options = {"polling_interval": 0.02}  # by default it looks for messages once a second
    policy = policy.replace(service=None).with_on(Failed).with_repeatable(True)

    with urllib3.PoolManager(maxsize=calls) as pool:

        def read(name: str) -> None:
            opened(cloud, name, pool)

        task: Any = app.task(shared=False, **export.celery(policy).value)(read)
        worker: Any = start_worker
        with worker(app, pool="threads", concurrency=20, perform_ping_check=False):
            for first in range(0, calls, 15):  # a retry waits behind all messages that came before it
                for result in [task.delay(name) for name in names(calls)[first : first + 15]]:
                    result.get(timeout=300, interval=0.2, disable_sync_subtasks=False)
    return f"celery {version('celery')}"


@contextmanager
def timed_server(clock: Clock, retries: int, method: str) -> Generator[int]:
    """Yield the port of a gRPC server that notes when each call of a method arrives, and fails the first ones."""

    def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
        if clock.note(request.decode()) < retries:
            context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
        return b""

    service, _, name = method.partition("/")
    handler = grpc.unary_unary_rpc_method_handler(answer)
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {name: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None).wait()


def grpc_(policy: Policy, clock: Clock, calls: int, retries: int) -> str:
    """Run a channel with the service config, against a server that notes when each call arrives."""
    method = "google.storage.v2.Storage/GetObject"
    options = (("grpc.service_config", export.grpc(policy).value), ("grpc.enable_retries", 1))
    with timed_server(clock, retries, method) as port, grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        call = channel.unary_unary(f"/{method}", bytes, bytes)
        for each in [call.future(name.encode(), timeout=120) for name in names(calls)]:
            each.result()
    return f"grpcio {version('grpcio')}"


def gax_nodejs(policy: Policy | None, clock: Clock, calls: int, retries: int, folder: Path) -> tuple[str, Any]:
    """Run Memorystore's npm package with the exported config, or for None with its own.

    Return its version, and a list of what its calls ended with: "done", or codes of gRPC.
    """
    node, npm = (program(name, "apt install nodejs npm") for name in ("node", "npm"))
    run(npm, "install", "--no-audit", "--no-fund", "@google-cloud/redis@5", "google-gax@5", cwd=folder)
    shutil.copy(HERE / "gax.js", folder)
    config = []
    if policy is not None:
        (folder / "retries.json").write_text(export.gax_nodejs(policy).value)
        config = ["./retries.json"]
    with timed_server(clock, retries, "google.cloud.redis.v1.CloudRedis/GetInstance") as port:
        outcomes = json.loads(run(node, "gax.js", str(port), str(calls), *config, cwd=folder).splitlines()[-1])
    package = folder / "node_modules" / "@google-cloud" / "redis" / "package.json"
    return f"@google-cloud/redis {json.loads(package.read_text())['version']}", outcomes
