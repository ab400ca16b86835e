"""Amounts of money: whole numbers of a currency's smallest unit."""

import functools
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from billing import currencies


class CurrencyMismatch(ValueError):
    """Two amounts of different currencies cannot be combined."""


@functools.total_ordering
@dataclass(frozen=True, eq=True)
class Money:
    minor: int
    currency: str

    def _same(self, other):
        if self.currency != other.currency:
            raise CurrencyMismatch(f"{self.currency} and {other.currency}")

    def __add__(self, other):
        self._same(other)
        return Money(self.minor + other.minor, self.currency)

    def __sub__(self, other):
        self._same(other)
        return Money(self.minor - other.minor, self.currency)

    def __neg__(self):
        return Money(-self.minor, self.currency)

    def __lt__(self, other):
        self._same(other)
        return self.minor < other.minor

    def __bool__(self):
        return self.minor != 0

    def decimal(self):
        """Return the amount in whole units of the currency."""
        return Decimal(self.minor).scaleb(-2)


def zero(currency):
    return Money(0, currency)


def parse(text, currency):
    """Read an amount a person wrote, such as "12.34"."""
    currencies.name(currency)
    try:
        value = Decimal(text.strip().replace(",", ""))
    except InvalidOperation:
        raise ValueError(f"{text!r} is not an amount") from None
    if not value.is_finite():
        raise ValueError(f"{text!r} is not an amount")
    minor = value.scaleb(2)
    if minor != minor.to_integral_value():
        raise ValueError(f"{text!r} has more decimals than {currency}")
    return Money(int(minor), currency)


def total(amounts, currency):
    """Add amounts of one currency; none at all is nothing."""
    result = zero(currency)
    for amount in amounts:
        result = result + amount
    return result
