import unittest

from billing import numbering


class NumberTest(unittest.TestCase):
    def test_every_number_is_valid(self):
        for running in (1, 2, 99999):
            self.assertTrue(numbering.is_valid(numbering.number(2026, running)))

    def test_a_wrong_digit_is_noticed(self):
        good = numbering.number(2026, 41)
        bad = good.replace("00041", "00014")
        self.assertFalse(numbering.is_valid(bad))
