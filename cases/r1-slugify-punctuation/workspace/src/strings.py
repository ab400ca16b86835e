"""Small helpers for text."""

import re


def slugify(text):
    """Return `text` as a URL slug: lower-case words joined by single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
