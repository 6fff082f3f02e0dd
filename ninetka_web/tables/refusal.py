"""What tables answer to a wish that they do not grant."""

from __future__ import annotations


class RefusedError(Exception):
    """A wish that is not granted: the reason is shown to the person, and nothing has changed."""
