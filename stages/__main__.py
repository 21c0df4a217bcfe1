"""Run one stage: `python -m stages NAME [ARGUMENT …]`, as dvc.yaml does.

Importing torch, timm and Sacred costs seconds, and a grid has more than a hundred stages. So the stage runs in a child
of a warm process that has imported them once (`stages/_warm.py`); REPRO_WARM=0 runs it right here instead.
"""

import os
import runpy
import sys
from pathlib import Path


def main() -> int:
    names = sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"usage: python -m stages {{{','.join(names)}}} [ARGUMENT …]", file=sys.stderr)
        return 2
    if os.environ.get("REPRO_WARM", "1") != "0":
        from stages import _warm

        return _warm.run(sys.argv[1:])
    sys.argv = sys.argv[1:]
    runpy.run_module(f"stages.{sys.argv[0]}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
