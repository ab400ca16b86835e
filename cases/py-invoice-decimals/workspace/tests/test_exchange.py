import unittest

from billing import exchange
from billing.money import Money


class ConvertTest(unittest.TestCase):
    def test_between_currencies_of_two_decimals(self):
        self.assertEqual(exchange.convert(Money(10000, "EUR"), "USD", "1.0834"), Money(10834, "USD"))

    def test_into_a_currency_without_decimals(self):
        self.assertEqual(exchange.convert(Money(10000, "EUR"), "JPY", "162.5"), Money(16250, "JPY"))

    def test_out_of_a_currency_with_three_decimals(self):
        self.assertEqual(exchange.convert(Money(1500, "KWD"), "USD", "3.25"), Money(488, "USD"))

    def test_the_same_currency_is_left_alone(self):
        self.assertEqual(exchange.convert(Money(7, "EUR"), "EUR", "2"), Money(7, "EUR"))

    def test_rates_are_positive(self):
        for rate in ("0", "-1", "NaN"):
            with self.assertRaises(exchange.BadRate):
                exchange.convert(Money(7, "EUR"), "USD", rate)
