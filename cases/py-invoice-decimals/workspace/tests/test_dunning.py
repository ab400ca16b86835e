import unittest

from billing import dunning
from billing.money import Money


class InterestTest(unittest.TestCase):
    def test_by_the_day(self):
        self.assertEqual(dunning.interest(Money(100000, "EUR"), "7.3", 50), Money(1000, "EUR"))

    def test_days_of_grace(self):
        self.assertEqual(dunning.interest(Money(100000, "EUR"), "7.3", 3), Money(0, "EUR"))
