"""`ADVICE`: for each rule an example without its flaw, and when a finding may stay. Pages and --explain print it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """The cured example of a rule, and when to suppress a finding."""

    cured: str
    accept: str


ADVICE: dict[str, Advice] = {
    "UNSAFE": Advice(
        "def charge(cents):\n    return send(cents, key=str(uuid.uuid4()))\n\n@stamina.retry(on=httpx.HTTPError)\n"
        "def send(cents, key):\n    headers = {'Idempotency-Key': key}\n"
        "    return httpx.post(URL, json={'cents': cents}, headers=headers)",
        "The server finds duplicates by a field that the audit cannot know, or the call only reads, such as a search.",
    ),
    "MAYBE-UNSAFE": Advice(
        "@stamina.retry(on=httpx.ConnectError)\ndef call(url, body):\n    return httpx.post(url, json=body)",
        "All addresses that the function is called with only read or compute.",
    ),
    "OUTER-KEY": Advice(
        "def pay(body):\n    return send(body, key=str(uuid.uuid4()))\n\n@stamina.retry(on=httpx.HTTPError)\n"
        "def send(body, key):\n    return httpx.post(URL, json=body, headers={'Idempotency-Key': key})",
        "The key only names the attempt, and the server finds duplicates by another field.",
    ),
    "NESTED": Advice(
        "client = openai.OpenAI(max_retries=0)\n\n@stamina.retry(on=openai.APIConnectionError)\n"
        "def ask(text):\n    return client.responses.create(model='m', input=text)",
        "The outer retry repeats other errors than the inner one, and the product of the attempts is small enough.",
    ),
    "UNBOUNDED": Advice(
        "@tenacity.retry(\n    retry=tenacity.retry_if_exception_type(OSError),\n"
        "    stop=tenacity.stop_after_attempt(5) | tenacity.stop_after_delay(60),\n"
        "    wait=tenacity.wait_random_exponential(max=60),\n)\ndef fetch():\n    return load()",
        "A program that has nothing else to do waits for its database or its queue, and something else ends it.",
    ),
    "NO-DEADLINE": Advice(
        "@tenacity.retry(\n    retry=tenacity.retry_if_exception_type(OSError),\n"
        "    stop=tenacity.stop_after_attempt(5) | tenacity.stop_after_delay(60),\n"
        "    wait=tenacity.wait_random_exponential(max=60),\n)\ndef fetch():\n    return load()",
        "A caller sets the deadline, or each attempt has a short timeout and there are few attempts.",
    ),
    "NO-JITTER": Advice(
        "for attempt in range(5):\n    try:\n        return fetch()\n    except OSError:\n"
        "        if attempt == 4 or time.monotonic() > deadline:\n            raise\n"
        "        time.sleep(2 ** attempt * random.uniform(0.5, 1))",
        "There is only one client, such as a job that runs once in the whole system.",
    ),
    "FIXED": Advice(
        "@tenacity.retry(\n    retry=tenacity.retry_if_exception_type(OSError),\n"
        "    stop=tenacity.stop_after_attempt(3) | tenacity.stop_after_delay(60),\n"
        "    wait=tenacity.wait_random_exponential(max=60),\n)\ndef fetch():\n    return load()",
        "The cause passes by itself within a known time, such as a lock, or nothing is shared, such as a test.",
    ),
    "NO-CAP": Advice(
        "@backoff.on_exception(backoff.expo, OSError, max_tries=15, max_value=60, max_time=600)\n"
        "def fetch():\n    return load()",
        "Long waits are meant, such as those of a job that may take days.",
    ),
    "CATCH-ALL": Advice(
        "@stamina.retry(on=(ConnectionError, TimeoutError))\ndef fetch():\n    return load()",
        "The library has no better class for its transient errors, and the attempts are few.",
    ),
    "WRONG-ERROR": Advice(
        "@backoff.on_exception(backoff.expo, ConnectionError, max_time=60)\ndef fetch():\n    return load()['value']",
        "Somebody else may mend the cause in the meantime, such as a file that another program is about to write.",
    ),
    "RETRY-AFTER": Advice(
        "if response.status_code == 429:\n    time.sleep(float(response.headers.get('Retry-After', 5)))\n    continue",
        "The server never sends the header.",
    ),
    "STATE": Advice(
        "@stamina.retry(on=OSError)\ndef upload(url, path):\n    with open(path, 'rb') as file:\n"
        "        return requests.put(url, data=file)",
        "What is changed may be changed twice, such as a list of the attempts.",
    ),
    "BLOCKING": Advice(
        "@stamina.retry(on=OSError)\nasync def fetch():\n    return await load()",
        "The coroutine has an event loop of its own, with no other task.",
    ),
    "LAST-SLEEP": Advice(
        "for attempt in range(3):\n    try:\n        return fetch()\n    except OSError:\n"
        "        if attempt == 2 or time.monotonic() > deadline:\n            raise\n"
        "        time.sleep(2 ** attempt * random.uniform(0.5, 1))",
        "The wait also serves what follows, such as the next attempt of the caller.",
    ),
    "LOST-CAUSE": Advice(
        "last = None\nfor attempt in range(3):\n    try:\n        return fetch()\n    except OSError as error:\n"
        "        last = error\n        if time.monotonic() > deadline:\n            break\n"
        "        time.sleep(2 ** attempt * random.uniform(0.5, 1))\nraise RuntimeError('failed') from last",
        "The cause holds a secret that must not be in a traceback.",
    ),
}
"""The advice by the id of the rule."""
