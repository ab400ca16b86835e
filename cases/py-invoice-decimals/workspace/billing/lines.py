"""One line of an invoice."""

from dataclasses import dataclass
from decimal import Decimal

from billing.money import Money
from billing.rounding import half_even


@dataclass(frozen=True)
class Line:
    text: str
    quantity: str
    price: Money

    def total(self):
        """Return quantity times price, rounded once."""
        return Money(half_even(self.price.minor * Decimal(self.quantity)), self.price.currency)
