import unittest

from billing import Invoice, Money, render


def tea(currency, price):
    return Invoice("2026-00001-1", currency, tax_percent="10").add("Tea", "3", price)


class InvoiceTest(unittest.TestCase):
    def test_two_decimals(self):
        self.assertEqual(tea("EUR", "2.50").total(), Money(825, "EUR"))

    def test_no_decimals(self):
        self.assertEqual(tea("JPY", "500").total(), Money(1650, "JPY"))

    def test_three_decimals(self):
        self.assertEqual(tea("KWD", "0.750").total(), Money(2475, "KWD"))

    def test_the_currency_of_a_region(self):
        self.assertEqual(Invoice.for_region("1", "JP").currency, "JPY")

    def test_discount_comes_before_tax(self):
        bill = Invoice("1", "EUR", tax_percent="20", discount_percent="50").add("Tea", "1", "10.00")
        self.assertEqual((bill.net().minor, bill.tax().minor, bill.total().minor), (500, 100, 600))

    def test_as_text(self):
        text = render.invoice(tea("JPY", "500"))
        self.assertEqual([line.split() for line in text.splitlines()][-1], ["Total", "1,650", "JPY"])
