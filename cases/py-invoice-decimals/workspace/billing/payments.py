"""What has been paid of an invoice."""

from billing import money


def open_amount(invoice, paid):
    """Return what is still to be paid, never less than nothing."""
    left = invoice.total() - money.total(paid, invoice.currency)
    return left if left.minor > 0 else money.zero(invoice.currency)


def is_settled(invoice, paid):
    return not open_amount(invoice, paid)
