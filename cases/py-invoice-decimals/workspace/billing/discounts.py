"""What comes off a sum."""

from decimal import Decimal

from billing.money import Money
from billing.rounding import half_even


def percent(amount, value):
    """Return `value` percent of `amount`."""
    value = Decimal(value)
    if not 0 <= value <= 100:
        raise ValueError(f"{value}% is no discount")
    return Money(half_even(amount.minor * value / 100), amount.currency)


def tiered(amount, tiers):
    """Return the discount of the highest tier that `amount` reaches; `tiers` is a list of (from, percent)."""
    reached = [(start, value) for start, value in tiers if not amount < start]
    if not reached:
        return Money(0, amount.currency)
    return percent(amount, max(reached, key=lambda tier: tier[0].minor)[1])
