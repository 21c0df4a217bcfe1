"""DVC stages: read params, build, call repro, write outs. Each is a Sacred experiment."""
