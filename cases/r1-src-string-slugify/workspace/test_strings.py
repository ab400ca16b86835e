import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "src"))

from strings import slugify


class SlugifyTest(unittest.TestCase):
    def test_words_are_joined_by_hyphens(self):
        self.assertEqual(slugify("Hello World"), "hello-world")

    def test_runs_of_other_characters_become_one_hyphen(self):
        self.assertEqual(slugify("a  --  b"), "a-b")

    def test_no_hyphen_at_either_end(self):
        self.assertEqual(slugify("  Trim me!  "), "trim-me")

    def test_nothing_left_is_empty(self):
        self.assertEqual(slugify("?!"), "")


if __name__ == "__main__":
    unittest.main()
