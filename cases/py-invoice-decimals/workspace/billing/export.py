"""Invoices for other programs."""

import csv
import io
import json


def to_json(invoice):
    """Return an invoice as JSON, amounts as text in whole units."""
    return json.dumps(
        {
            "number": invoice.number,
            "currency": invoice.currency,
            "lines": [
                {"text": line.text, "quantity": line.quantity, "amount": str(line.total().decimal())}
                for line in invoice.lines
            ],
            "net": str(invoice.net().decimal()),
            "tax": str(invoice.tax().decimal()),
            "total": str(invoice.total().decimal()),
        },
        indent=2,
    )


def to_csv(invoices):
    """Return one row an invoice."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["number", "currency", "total"])
    for invoice in invoices:
        writer.writerow([invoice.number, invoice.currency, str(invoice.total().decimal())])
    return out.getvalue()
