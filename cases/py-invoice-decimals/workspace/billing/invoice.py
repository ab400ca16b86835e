"""An invoice: lines, discount, tax."""

from dataclasses import dataclass, field

from billing import discounts, money, regions, tax
from billing.lines import Line


@dataclass
class Invoice:
    number: str
    currency: str
    tax_percent: str = "0"
    discount_percent: str = "0"
    lines: list = field(default_factory=list)

    @classmethod
    def for_region(cls, number, region, **terms):
        """Return an invoice in the currency of a region."""
        return cls(number, regions.currency(region), **terms)

    def add(self, text, quantity, price):
        """Add a line; `price` is what a person wrote."""
        self.lines.append(Line(text, quantity, money.parse(price, self.currency)))
        return self

    def subtotal(self):
        return money.total((line.total() for line in self.lines), self.currency)

    def discount(self):
        return discounts.percent(self.subtotal(), self.discount_percent)

    def net(self):
        return self.subtotal() - self.discount()

    def tax(self):
        return tax.of(self.net(), self.tax_percent)

    def total(self):
        return self.net() + self.tax()
