import unittest

from billing.lines import Line
from billing.money import Money


class LineTest(unittest.TestCase):
    def test_rounded_once(self):
        self.assertEqual(Line("Cloth", "2.5", Money(333, "EUR")).total(), Money(832, "EUR"))
