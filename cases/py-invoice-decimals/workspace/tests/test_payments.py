import unittest

from billing import Invoice, Money, payments


class PaymentsTest(unittest.TestCase):
    def setUp(self):
        self.bill = Invoice("1", "EUR").add("Tea", "1", "10.00")

    def test_part_of_it(self):
        self.assertEqual(payments.open_amount(self.bill, [Money(400, "EUR")]), Money(600, "EUR"))

    def test_settled_and_overpaid(self):
        self.assertTrue(payments.is_settled(self.bill, [Money(400, "EUR"), Money(600, "EUR")]))
        self.assertTrue(payments.is_settled(self.bill, [Money(1100, "EUR")]))
