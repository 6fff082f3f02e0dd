"""The error for requests that the web app refuses."""

from __future__ import annotations


class RefusedError(Exception):
    """A request is refused and nothing has changed. The message, which gives the reason, is shown to the user."""
