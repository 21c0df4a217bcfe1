"""`python -m tests.rehearsing.call WORKSPACE PROVE [NAME …]`: rehearse another workspace than this repository."""

import os
import sys
from pathlib import Path

from stages.tracking import bad_input_exits
from stages.tracking.exits import signals_exit
from tools.rehearsing.command import rehearse

if __name__ == "__main__":
    workspace, prove, *only = sys.argv[1:]
    os.chdir(workspace)
    with bad_input_exits(), signals_exit():
        sys.exit(rehearse(Path(workspace), only, Path(workspace).parent / "report.md", None, bool(int(prove))))
