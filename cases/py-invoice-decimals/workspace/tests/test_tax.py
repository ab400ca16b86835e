import unittest

from billing import tax
from billing.money import Money


class TaxTest(unittest.TestCase):
    def test_on_an_amount(self):
        self.assertEqual(tax.of(Money(9999, "EUR"), "19"), Money(1900, "EUR"))
        self.assertEqual(tax.of(Money(1005, "JPY"), "10"), Money(100, "JPY"))

    def test_within_an_amount(self):
        self.assertEqual(tax.contained_in(Money(11900, "EUR"), "19"), Money(1900, "EUR"))

    def test_no_negative_tax(self):
        with self.assertRaises(ValueError):
            tax.of(Money(1, "EUR"), "-1")
