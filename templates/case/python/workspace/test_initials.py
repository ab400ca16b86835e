import unittest

from initials import initials


class InitialsTest(unittest.TestCase):
    def test_first_letters(self):
        self.assertEqual(initials("grace hopper"), "GH")

    def test_upper_case_stays(self):
        self.assertEqual(initials("Alan Mathison Turing"), "AMT")

    def test_no_name(self):
        self.assertEqual(initials("  "), "")
