"""Settings and budgets of every trained method, chosen on validation tasks.

command.py   what tools/tune does
choices.py   tools/tuning.yaml: what there is to choose from
trials.py    one training with one setting, measured on validation tasks; a small file each
search.py    which trainings decide, and what they decide
declaring.py paper/tuning.json and the lines of params.yaml that follow
formats.py   what a number format changes
"""
