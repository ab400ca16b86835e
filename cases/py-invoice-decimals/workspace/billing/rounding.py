"""The one way in which this package rounds."""

from decimal import ROUND_HALF_EVEN, Decimal


def half_even(value):
    """Return a whole number: to the nearest, ties to the even one."""
    return int(Decimal(value).to_integral_value(rounding=ROUND_HALF_EVEN))
