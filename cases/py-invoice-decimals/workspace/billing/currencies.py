"""What is known about a currency."""

from billing import records


def name(code):
    return records.load("currencies", code)["name"]


def minor_units(code):
    """Return how many decimals amounts in this currency have."""
    return records.load("currencies", code)["minor_units"]


def codes():
    return records.codes("currencies")
