"""Inputs the engine has not seen, compared here and computed elsewhere.

The code under test runs in a process of its own for each input, so it can answer but not judge.
"""

import subprocess
import sys

CASES = [
    ("The quick, brown fox", "the-quick-brown-fox"),
    ("v1.2.3", "v1-2-3"),
    ("---", ""),
    ("already-a-slug", "already-a-slug"),
    ("Tabs\tand\nlines", "tabs-and-lines"),
    ("  9 Lives  ", "9-lives"),
]
ASK = "import sys; sys.path.insert(0, 'src'); from strings import slugify; sys.stdout.write(repr(slugify(sys.argv[1])))"

wrong = 0
for text, want in CASES:
    asked = subprocess.run([sys.executable, "-I", "-c", ASK, text], capture_output=True, text=True, timeout=30)
    got = asked.stdout
    if asked.returncode != 0 or got != repr(want):
        wrong += 1
        print(f"slugify({text!r}): wanted {want!r}, got {got or asked.stderr.strip()[-200:]}")
print(f"{len(CASES) - wrong} of {len(CASES)} right")
sys.exit(1 if wrong else 0)
