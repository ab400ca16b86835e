import unittest

from billing import render
from billing.money import Money


class AmountTest(unittest.TestCase):
    def test_thousands_are_separated(self):
        self.assertEqual(render.amount(Money(123450, "EUR")), "1,234.50 EUR")

    def test_small_and_negative_amounts(self):
        self.assertEqual(render.amount(Money(-5, "EUR")), "-0.05 EUR")
        self.assertEqual(render.amount(Money(0, "EUR")), "0.00 EUR")

    def test_no_decimals(self):
        self.assertEqual(render.amount(Money(1500, "JPY")), "1,500 JPY")

    def test_three_decimals(self):
        self.assertEqual(render.amount(Money(1234, "KWD")), "1.234 KWD")


class RowTest(unittest.TestCase):
    def test_the_amount_is_at_the_right(self):
        self.assertEqual(render.row("Tea", Money(250, "EUR"), width=20), "Tea         2.50 EUR")

    def test_long_text_is_cut(self):
        self.assertEqual(len(render.row("x" * 99, Money(250, "EUR"), width=30)), 30)
