import unittest

from billing import split
from billing.money import Money


class SplitTest(unittest.TestCase):
    def test_nothing_is_lost(self):
        for minor in (0, 1, 99, 100, 101, -100):
            shares = split.evenly(Money(minor, "EUR"), 3)
            self.assertEqual(sum(share.minor for share in shares), minor)

    def test_by_weight(self):
        shares = split.by_weights(Money(1000, "JPY"), [1, 1, 2])
        self.assertEqual([share.minor for share in shares], [250, 250, 500])

    def test_the_largest_remainder_comes_first(self):
        shares = split.by_weights(Money(10, "EUR"), [3, 3, 1])
        self.assertEqual([share.minor for share in shares], [4, 4, 2])

    def test_weights_are_positive(self):
        for weights in ([], [0, 0], [1, -1]):
            with self.assertRaises(ValueError):
                split.by_weights(Money(1, "EUR"), weights)
