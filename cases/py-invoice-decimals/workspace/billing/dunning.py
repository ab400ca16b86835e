"""Fees for paying late."""

from decimal import Decimal

from billing.money import Money
from billing.rounding import half_even

GRACE_DAYS = 3


def interest(amount, percent_a_year, days):
    """Return the interest on a late amount, by the day."""
    if days <= GRACE_DAYS:
        return Money(0, amount.currency)
    return Money(half_even(amount.minor * Decimal(percent_a_year) * days / 36500), amount.currency)
