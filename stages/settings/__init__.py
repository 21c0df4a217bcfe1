"""One typed way for settings: params.yaml and paper/grid.yaml become one small file for every stage.

yaml_files.py   reading YAML as DVC reads it
params.py       params.yaml
machine.py      its part that decides no result
grid.py         paper/grid.yaml
kinds.py        what each kind of stage is run with
resolving.py    from the first two to the third
code.py         the code that decides a stage's result
planned.py      what a command line asks for, and what was planned for it
files.py        settings/<stage>/<name>.json: what DVC compares, and a stage reads
scales.py       overlays over params.yaml
"""
