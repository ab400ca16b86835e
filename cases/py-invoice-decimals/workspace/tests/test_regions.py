import unittest

from billing import regions


class RegionsTest(unittest.TestCase):
    def test_names_and_currencies(self):
        self.assertEqual(regions.name("IS"), "Iceland")
        self.assertEqual(regions.currency("IS"), "ISK")
        self.assertEqual(regions.currency("SN"), "XOF")
