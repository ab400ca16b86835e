import datetime
import unittest

from billing import terms


class DueTest(unittest.TestCase):
    def test_weekends_are_skipped(self):
        thursday = datetime.date(2026, 1, 1)
        self.assertEqual(terms.due(thursday, 1), datetime.date(2026, 1, 2))
        self.assertEqual(terms.due(thursday, 2), datetime.date(2026, 1, 5))

    def test_days_late(self):
        day = datetime.date(2026, 1, 5)
        self.assertEqual(terms.days_late(day, datetime.date(2026, 1, 9)), 4)
        self.assertEqual(terms.days_late(day, datetime.date(2026, 1, 1)), 0)
