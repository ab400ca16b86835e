"""From one currency into another."""

from decimal import Decimal

from billing.money import Money
from billing.rounding import half_even


class BadRate(ValueError):
    """A rate must be a positive number."""


def convert(amount, currency, rate):
    """Return `amount` in `currency`; `rate` is what one unit of the old currency costs in the new one."""
    rate = Decimal(rate)
    if not rate.is_finite() or rate <= 0:
        raise BadRate(str(rate))
    if amount.currency == currency:
        return amount
    return Money(half_even(Decimal(amount.minor) * rate), currency)
