import unittest

from billing import Invoice, Money, statement


class StatementTest(unittest.TestCase):
    def test_one_sum_a_currency(self):
        bills = [
            Invoice("1", "USD").add("Tea", "1", "1.00"),
            Invoice("2", "EUR").add("Tea", "1", "2.00"),
            Invoice("3", "USD").add("Tea", "1", "3.00"),
        ]
        self.assertEqual(statement.by_currency(bills), [Money(200, "EUR"), Money(400, "USD")])
        self.assertEqual(len(statement.text("Acme", bills).splitlines()), 6)
