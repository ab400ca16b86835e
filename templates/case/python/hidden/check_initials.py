"""Names the engine has not seen, compared here and computed elsewhere.

The code under test runs in a process of its own for each name, in a directory that holds nothing
else. This file is gone before it starts, and this process cannot be looked into.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

CASES = [
    ("ada lovelace", "AL"),
    ("  Edsger   W. Dijkstra ", "EWD"),
    ("plato", "P"),
    ("", ""),
]
CODE = ["initials.py"]
ASK = "import sys; sys.path.insert(0, '.'); from initials import initials; sys.stdout.write(repr(initials(sys.argv[1])))"

PR_SET_DUMPABLE = 4
ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)
os.remove(__file__)
wrong = 0
with tempfile.TemporaryDirectory() as place:
    for path in CODE:
        shutil.copy(path, os.path.join(place, path))
    for name, want in CASES:
        asked = subprocess.run([sys.executable, "-I", "-c", ASK, name], capture_output=True, text=True, timeout=30, cwd=place)
        if asked.returncode != 0 or asked.stdout != repr(want):
            wrong += 1
            print(f"initials({name!r}): wanted {want!r}, got {asked.stdout or asked.stderr.strip()[-200:]}")
print(f"{len(CASES) - wrong} of {len(CASES)} right")
sys.exit(1 if wrong else 0)
