import unittest
from decimal import Decimal

from billing import money
from billing.money import CurrencyMismatch, Money


class ParseTest(unittest.TestCase):
    def test_two_decimals(self):
        self.assertEqual(money.parse("12.34", "EUR"), Money(1234, "EUR"))
        self.assertEqual(money.parse(" 1,000.5 ", "USD"), Money(100050, "USD"))

    def test_no_decimals(self):
        self.assertEqual(money.parse("1500", "JPY"), Money(1500, "JPY"))

    def test_three_decimals(self):
        self.assertEqual(money.parse("1.234", "KWD"), Money(1234, "KWD"))

    def test_more_decimals_than_there_are_is_refused(self):
        for text, currency in (("1.234", "EUR"), ("1.5", "JPY"), ("1.2345", "KWD")):
            with self.assertRaises(ValueError):
                money.parse(text, currency)

    def test_words_are_refused(self):
        for text in ("", "ten", "NaN", "Infinity"):
            with self.assertRaises(ValueError):
                money.parse(text, "EUR")


class MoneyTest(unittest.TestCase):
    def test_sums_stay_in_one_currency(self):
        self.assertEqual(Money(1, "EUR") + Money(2, "EUR"), Money(3, "EUR"))
        with self.assertRaises(CurrencyMismatch):
            Money(1, "EUR") + Money(1, "USD")

    def test_order(self):
        self.assertLess(Money(1, "EUR"), Money(2, "EUR"))
        self.assertGreaterEqual(Money(2, "EUR"), Money(2, "EUR"))

    def test_whole_units(self):
        self.assertEqual(str(Money(1234, "EUR").decimal()), "12.34")
        self.assertEqual(str(Money(1500, "JPY").decimal()), "1500")
        self.assertEqual(Money(-1234, "KWD").decimal(), Decimal("-1.234"))

    def test_the_sum_of_nothing_is_nothing(self):
        self.assertEqual(money.total([], "CHF"), Money(0, "CHF"))
