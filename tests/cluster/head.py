"""A Ray of two CPUs for several drivers, until standard input ends; prints where it is."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.scheduling.clusters import local_ray  # noqa: E402

if __name__ == "__main__":
    out = sys.stdout
    with local_ray(2, Path(os.devnull)):
        import ray

        print(ray.get_runtime_context().gcs_address, os.environ["RAY_AUTH_TOKEN"], file=out, flush=True)
        sys.stdin.read()
