"""`python -m stages code NAME PATH …`: content hashes of the code that all trainings, or all evaluations, share.

A hundred stages depend on this one file instead of on every package: DVC reads and rewrites dvc.lock after each stage,
and a shorter one saves a second every time. A method's own file stays a dependency of its own stages.
"""

import sys
from pathlib import Path

from repro import paths
from repro.errors import BadInput
from repro.files import write_sums
from stages._experiment import Experiment, Run, bad_input_exits, prepare, run

ex = prepare(Experiment("code"))


@ex.main
def main(name: str, code: list[str], _run: Run) -> dict[str, int]:
    """Write the hashes as `sha256sum --check` reads them."""
    files = sorted(file for path in map(Path, code) for file in ([path] if path.is_file() else path.rglob("*.py")))
    write_sums(paths.code(name), Path(), map(str, files))
    return {"files": len(files)}


if __name__ == "__main__":
    with bad_input_exits():
        _, *told = sys.argv
        missing = [path for path in told[1:] if not Path(path).exists()]
        if len(told) < 2 or missing:
            raise BadInput(
                f"got {' '.join(missing or told) or 'nothing'}, expected a name, then files and folders of code"
            )
    run(ex, {"name": told[0], "code": told[1:]}, stage="code", cell=told[0])
