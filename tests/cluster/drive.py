"""`tools/cluster` for a small pipeline in the current folder: the same options and code, one CPU for every stage."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from stages.settings.machine import Resources  # noqa: E402
from stages.tracking import bad_input_exits  # noqa: E402
from tools.scheduling import command  # noqa: E402

if __name__ == "__main__":
    with bad_input_exits():
        sys.exit(command.run(command.parser("").parse_args(), Path.cwd(), lambda _: Resources()))
