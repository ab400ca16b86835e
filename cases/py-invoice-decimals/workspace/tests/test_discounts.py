import unittest

from billing import discounts
from billing.money import Money


class DiscountTest(unittest.TestCase):
    def test_percent(self):
        self.assertEqual(discounts.percent(Money(1995, "EUR"), "10"), Money(200, "EUR"))

    def test_bounds(self):
        for value in ("-1", "101"):
            with self.assertRaises(ValueError):
                discounts.percent(Money(1, "EUR"), value)

    def test_the_highest_tier_that_is_reached(self):
        tiers = [(Money(10000, "EUR"), "5"), (Money(50000, "EUR"), "10")]
        self.assertEqual(discounts.tiered(Money(9999, "EUR"), tiers), Money(0, "EUR"))
        self.assertEqual(discounts.tiered(Money(10000, "EUR"), tiers), Money(500, "EUR"))
        self.assertEqual(discounts.tiered(Money(60000, "EUR"), tiers), Money(6000, "EUR"))
