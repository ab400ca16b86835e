"""Where a customer is, and what is paid with there."""

from billing import records


def name(code):
    return records.load("regions", code)["name"]


def currency(code):
    return records.load("regions", code)["currency"]


def codes():
    return records.codes("regions")
