"""All invoices of a customer on one page."""

from billing import money, render


def by_currency(invoices):
    """Return the sum of the invoices in each currency, in order of code."""
    sums = {}
    for invoice in invoices:
        sums[invoice.currency] = sums.get(invoice.currency, money.zero(invoice.currency)) + invoice.total()
    return [sums[code] for code in sorted(sums)]


def text(customer, invoices):
    lines = [f"Statement for {customer}"]
    lines += [render.row(invoice.number, invoice.total()) for invoice in invoices]
    lines += [render.row("Sum", amount) for amount in by_currency(invoices)]
    return "\n".join(lines)
