"""`launch.py STAGE [ARGUMENT …]` in a workspace: run a stage as `python -m stages` does, and tell its process first."""

import os
import sys

sys.path.insert(0, os.getcwd())

from stages import _warm  # noqa: E402

told = os.dup(1)
os.dup2(2, 1)  # what the stage prints goes to one place, its number to another
connection, stage = _warm._hand_over(sys.argv[1:])
os.write(told, f"{stage}\n".encode())
os.close(told)
sys.exit(_warm._read(connection, 1)[0])
