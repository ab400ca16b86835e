"""Invoices in any currency."""

from billing.invoice import Invoice
from billing.money import Money

__all__ = ["Invoice", "Money"]
