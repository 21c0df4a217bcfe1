"""DVC stages: read params, build, call repro, write outs. Each is a Sacred experiment."""

import os

# A thread without work sleeps instead of spinning: beside any other busy process, spinning threads take the cores from
# those they wait for, and a training step takes eight times as long. OpenMP reads this when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
