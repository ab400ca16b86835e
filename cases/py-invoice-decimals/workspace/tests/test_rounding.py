import unittest
from decimal import Decimal

from billing.rounding import half_even


class HalfEvenTest(unittest.TestCase):
    def test_ties_go_to_the_even_number(self):
        given = ["0.5", "1.5", "2.5", "-0.5", "-1.5", "2.4999", "2.5001"]
        self.assertEqual([half_even(Decimal(text)) for text in given], [0, 2, 2, 0, -2, 2, 3])
