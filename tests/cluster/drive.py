"""`tools/cluster` for a small pipeline in the current folder: the same options and code, one CPU for every stage.

With `--here` as the first option it is `tools/repro`, two stages at once.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from stages.settings.machine import Resources  # noqa: E402
from stages.tracking import bad_input_exits  # noqa: E402
from tools.scheduling import command  # noqa: E402
from tools.scheduling.driving import Driver  # noqa: E402
from tools.scheduling.local_engine import local_engine  # noqa: E402


def main(arguments: list[str]) -> int:
    here = arguments[:1] == ["--here"]
    options = command.parser("").parse_args(arguments[here:])
    driver = command.driver(options, lambda _: Resources())
    if here:
        driver = Driver("tools/repro", lambda _: local_engine(2), lambda _: Resources())
    return driver.run(Path.cwd(), options.targets, options.dry_run)


if __name__ == "__main__":
    with bad_input_exits():
        sys.exit(main(sys.argv[1:]))
