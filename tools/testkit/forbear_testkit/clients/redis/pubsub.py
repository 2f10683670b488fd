"""Helpers for subscriptions, sync and async."""

from inspect import isawaitable
from typing import Any

import redis


async def done(value: Any) -> Any:
    """Return the value of a sync or an async method."""
    return await value if isawaitable(value) else value


async def heard(pubsub: Any, server: redis.Redis, text: bytes) -> bool:
    """Return whether `text` arrives; it is published until the server has the subscription."""
    for _ in range(100):
        server.publish("c", text)
        result = await done(pubsub.get_message(ignore_subscribe_messages=True, timeout=0.1))
        if result is not None and result["data"] == text:
            return True
    return False
