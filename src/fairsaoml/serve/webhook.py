"""Tell another service of an alarm: JSON, posted in the background, tried three times."""

import threading
import time
from collections.abc import Mapping
from typing import Any

__all__ = ["post"]

TRIES = 3
WAIT_SECONDS = 5.0


def post(url: str, content: Mapping[str, Any]) -> threading.Thread:
    """Post an alarm; nobody waits for it, and a failure harms nobody."""
    thread = threading.Thread(target=_post, args=[url, dict(content)], daemon=True)
    thread.start()
    return thread


def _post(url: str, content: dict[str, Any]) -> None:
    import requests

    for attempt in range(TRIES):
        try:
            answer = requests.post(url, json=content, timeout=WAIT_SECONDS, allow_redirects=False)
            if answer.status_code < 500:
                return
        except requests.RequestException:
            pass
        time.sleep(WAIT_SECONDS * attempt)
