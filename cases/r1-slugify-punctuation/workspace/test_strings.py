import unittest

from strings import slugify


class SlugifyTest(unittest.TestCase):
    def test_words_are_joined_by_hyphens(self):
        self.assertEqual(slugify("Hello World"), "hello-world")

    def test_no_hyphen_at_either_end(self):
        self.assertEqual(slugify("  Trim me!  "), "trim-me")


if __name__ == "__main__":
    unittest.main()
