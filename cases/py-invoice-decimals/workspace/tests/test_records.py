import unittest

from billing import currencies, records, regions


class RecordsTest(unittest.TestCase):
    def test_every_file_holds_the_code_it_is_named_after(self):
        for kind in ("currencies", "regions"):
            for code in records.codes(kind):
                self.assertEqual(records.load(kind, code)["code"], code)

    def test_every_region_pays_with_a_known_currency(self):
        known = set(currencies.codes())
        for code in regions.codes():
            self.assertIn(regions.currency(code), known)

    def test_decimals_are_small_numbers(self):
        for code in currencies.codes():
            self.assertIn(currencies.minor_units(code), (0, 2, 3, 4))

    def test_unknown_codes_are_refused(self):
        for code in ("XXX", "eur", "../x", ""):
            with self.assertRaises(records.UnknownCode):
                currencies.name(code)
