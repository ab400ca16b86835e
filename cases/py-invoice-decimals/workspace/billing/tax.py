"""Tax on an amount."""

from decimal import Decimal

from billing.money import Money
from billing.rounding import half_even


def of(amount, percent):
    """Return the tax of `percent` on `amount`."""
    percent = Decimal(percent)
    if percent < 0:
        raise ValueError(f"{percent}% is no tax")
    return Money(half_even(amount.minor * percent / 100), amount.currency)


def contained_in(amount, percent):
    """Return the tax already contained in a gross `amount`."""
    percent = Decimal(percent)
    if percent < 0:
        raise ValueError(f"{percent}% is no tax")
    return Money(half_even(amount.minor * percent / (100 + percent)), amount.currency)
