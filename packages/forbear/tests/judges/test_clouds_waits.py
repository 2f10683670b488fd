"""The waits in the errors of real SDKs, which are installed for this test alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forbear_testkit.clients.wire import Wire, reply

ASK = {
    "stripe": """
import stripe
client = stripe.StripeClient("sk_test_x", base_addresses={"api": url}, max_network_retries=0)
ask = client.v1.customers.list
""",
    "slack_sdk": """
import slack_sdk
client = slack_sdk.WebClient("x", base_url=f"{url}/api/", retry_handlers=[])
ask = client.auth_test
""",
    "google-api-python-client": """
import httplib2, json
from googleapiclient.discovery import build_from_document
method = {"id": "x.get", "path": "x", "flatPath": "x", "httpMethod": "GET", "parameters": {}, "response": {}}
document = {"name": "x", "version": "v1", "rootUrl": url + "/", "servicePath": "", "baseUrl": url + "/",
            "resources": {"x": {"methods": {"get": method}}}}
ask = build_from_document(document, http=httplib2.Http()).x().get().execute
""",
}
JUDGE = """
try:
    ask()
except Exception as error:
    verdict = forbear.transient(error)
    print(verdict.kind.value, verdict.retry_after, verdict.wait_from)
"""


@pytest.mark.soak
@pytest.mark.parametrize("library", ASK)
@pytest.mark.parametrize("line", ["Retry-After: 7", "retry-after-ms: 6500", "x-ms-retry-after-ms: 6500"])
def test_an_sdk(library: str, line: str, tmp_path: Path) -> None:
    """The error of each SDK shows the wait that the server asked for."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    subprocess.run([*pip, "--target", str(tmp_path), library], timeout=600, check=True)
    body = b'{"ok": false, "error": {"message": "busy"}}'
    with Wire(reply(429, body, "Content-Type: application/json", line)) as wire:
        code = f"import forbear\nurl = {wire.url!r}\n{ASK[library]}{JUDGE}"
        run = [sys.executable, "-c", code]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=600, check=False)
    name, _, value = line.partition(": ")
    seconds = float(value) / (1000 if name.endswith("ms") else 1)
    assert done.stdout.split() == ["transient", str(seconds), name], done.stderr
