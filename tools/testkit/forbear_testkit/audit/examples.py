"""The examples of the rules as modules that can be audited."""

_IMPORTS = "import backoff, httpx, openai, random, requests, stamina, tenacity, time, uuid\n"


def module_of(example: str) -> str:
    """The example with imports; what is no definition stands in a function, and a `continue` in a loop."""
    if example.startswith(("@", "client", "async", "def")):
        return f"{_IMPORTS}{example}\n"
    lines = example.splitlines()
    if example.startswith("if"):
        head = ["while time.monotonic() < deadline:", "    response = requests.get(URL)"]
        lines = [*head, *(f"    {line}" for line in lines), "    return response"]
    return f"{_IMPORTS}def example():\n" + "".join(f"    {line}\n" for line in lines)


POST = (
    "import requests\nimport stamina\n\n\n@stamina.retry(on=requests.Timeout)\ndef order(item):\n"
    "    return requests.post('https://shop.example.com/orders', json=item)\n"
)
