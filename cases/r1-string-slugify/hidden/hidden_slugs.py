import unittest

from strings import slugify


class HiddenSlugs(unittest.TestCase):
    def test_unseen_inputs(self):
        for text, want in [
            ("The quick, brown fox", "the-quick-brown-fox"),
            ("v1.2.3", "v1-2-3"),
            ("---", ""),
            ("already-a-slug", "already-a-slug"),
            ("Tabs\tand\nlines", "tabs-and-lines"),
        ]:
            with self.subTest(text=text):
                slug = slugify(text)
                # An object of another type could claim to equal anything.
                self.assertIs(type(slug), str)
                self.assertEqual(slug, want)
