"""`launch.py STAGE [ARGUMENT …]` in a workspace: run a stage as `python -m stages` does, and tell its process first."""

import os
import sys

sys.path.insert(0, os.getcwd())

from stages.launching import forkserver  # noqa: E402

number = os.dup(1)
os.dup2(2, 1)  # what the stage prints goes to one place, its number to another
connection, stage = forkserver.hand_over(sys.argv[1:])
os.write(number, f"{stage}\n".encode())
os.close(number)
sys.exit(forkserver.follow(connection, stage))
