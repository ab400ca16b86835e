"""Amounts and invoices as text."""


def amount(money):
    """Return an amount as it stands on an invoice: "1,234.50 EUR"."""
    sign = "-" if money.minor < 0 else ""
    whole, cents = divmod(abs(money.minor), 100)
    return f"{sign}{whole:,}.{cents:02d} {money.currency}"


def row(text, money, width=48):
    """Return one line of an invoice, the amount at its right end."""
    shown = amount(money)
    room = max(width - len(shown) - 1, 1)
    return f"{text[:room]:<{room}} {shown}"


def invoice(bill):
    """Return a whole invoice."""
    lines = [f"Invoice {bill.number}"]
    lines += [row(f"{line.quantity} x {line.text}", line.total()) for line in bill.lines]
    if bill.discount():
        lines.append(row("Discount", -bill.discount()))
    lines.append(row("Net", bill.net()))
    lines.append(row(f"Tax {bill.tax_percent}%", bill.tax()))
    lines.append(row("Total", bill.total()))
    return "\n".join(lines)
