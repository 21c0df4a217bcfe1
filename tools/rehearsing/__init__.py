"""tools/rehearse: the whole pipeline run short in a scratch folder, and what the full one will cost.

work.py         every stage of the full pipeline, and which waits for which
choosing.py     the stages that stand for all others of their kind
shortening.py   what those are run with: few steps, few tasks
sampling.py     a few images of every class instead of all
child.py        one stage in a process of its own, timed by the moves of its progress bar
measuring.py    what such a process sends back
checks.py       what is known before anything runs: device, raw data, disk, memory
sizes.py        counted sizes of datasets, models and steps
predicting.py   from the short stages to the time and disk of the full ones
chains.py       how long all of them take one after the other, and side by side
fitting.py      the largest step that fits, by trying
memory.py       whether every step fits, and what to change
running.py      the scratch folder, and stages side by side in it
command.py      the whole rehearsal
report.py       the report of all this
proving.py      predicted against measured: the same stages in full
numerics.py     precision, determinism, data-parallel equality
"""
