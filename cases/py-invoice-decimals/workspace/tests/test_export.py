import json
import unittest

from billing import Invoice, export


class ExportTest(unittest.TestCase):
    def bill(self, currency, price):
        return Invoice("1", currency, tax_percent="10").add("Tea", "2", price)

    def test_json(self):
        found = json.loads(export.to_json(self.bill("EUR", "1.50")))
        self.assertEqual((found["net"], found["tax"], found["total"]), ("3.00", "0.30", "3.30"))

    def test_json_without_decimals(self):
        found = json.loads(export.to_json(self.bill("JPY", "1500")))
        self.assertEqual((found["net"], found["tax"], found["total"]), ("3000", "300", "3300"))

    def test_csv(self):
        self.assertEqual(export.to_csv([self.bill("EUR", "1.50")]), "number,currency,total\n1,EUR,3.30\n")
