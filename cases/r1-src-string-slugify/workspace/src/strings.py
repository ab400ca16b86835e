"""Small helpers for text."""


def slugify(text):
    """Return `text` as a URL slug."""
    return text.lower()
