"""Read the cloud's XML."""

from xml.etree import ElementTree as ET

import httpx

MATCH = "x-goog-if-generation-match"


def error_of(response: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of an error."""
    root = ET.fromstring(response.content)
    assert root.tag == "Error"
    return response.status_code, root.findtext("Code") or ""


def texts(response: httpx.Response, path: str) -> list[str | None]:
    """Return the texts of the elements at a path."""
    wanted = "/".join(f"{{*}}{name}" for name in path.split("/"))
    return [each.text for each in ET.fromstring(response.content).findall(wanted)]
