"""Requests of google-auth for tokens, within bounds: they carry secrets, and the server may be hostile."""

from typing import Any
from urllib.parse import urlsplit

import requests

from forbear.transfer.storage.bodies import ANSWER
from forbear.transfer.storage.endpoint import is_loopback

_PIECE = 64 * 1024


class TokenSession(requests.Session):
    """A session that follows no redirect, sends requests for this machine through no proxy, and reads at most 1 MiB."""

    def request(self, method: Any, url: Any, *positional: Any, **options: Any) -> requests.Response:
        """Send a request; RequestException where the response has more than that."""
        host = urlsplit(str(url)).hostname or ""
        if is_loopback(host):
            options["proxies"] = {**(options.get("proxies") or {}), "no_proxy": host}
        options.update(allow_redirects=False, stream=True)
        response = super().request(method, url, *positional, **options)
        with response:
            body = bytearray()
            for piece in response.iter_content(_PIECE):
                body += piece
                if len(body) > ANSWER:
                    text = f"the response to a request for a token goes on after {ANSWER} bytes"
                    raise requests.exceptions.RequestException(text)
        response._content = bytes(body)
        return response
