"""Inputs the engine has not seen, compared here and computed elsewhere.

The code under test runs in a process of its own for each input, in a directory that holds nothing
else. This file is gone before it starts, and this process cannot be looked into.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

CASES = [
    ("Don't stop", "dont-stop"),
    ("Rock & Roll", "rock-and-roll"),
    ("R&B", "r-and-b"),
    ("It\u2019s 5 o\u2019clock", "its-5-oclock"),
    ("'quoted'", "quoted"),
    ("a  --  b", "a-b"),
    ("v1.2.3", "v1-2-3"),
    ("?!", ""),
]
CODE = ['strings.py', 'src/strings.py']
ASK = "import sys; sys.path.insert(0, '.'); from strings import slugify; sys.stdout.write(repr(slugify(sys.argv[1])))"

PR_SET_DUMPABLE = 4
ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)
os.remove(__file__)
with tempfile.TemporaryDirectory() as place:
    for path in CODE:
        os.makedirs(os.path.dirname(os.path.join(place, path)), exist_ok=True)
        shutil.copy(path, os.path.join(place, path))
    wrong = 0
    for text, want in CASES:
        asked = subprocess.run([sys.executable, "-I", "-c", ASK, text], capture_output=True, text=True, timeout=30, cwd=place)
        got = asked.stdout
        if asked.returncode != 0 or got != repr(want):
            wrong += 1
            print(f"slugify({text!r}): wanted {want!r}, got {got or asked.stderr.strip()[-200:]}")
print(f"{len(CASES) - wrong} of {len(CASES)} right")
sys.exit(1 if wrong else 0)
