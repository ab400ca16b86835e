"""Names."""


def initials(name):
    """Return the initials of `name`."""
    return name[:1]
