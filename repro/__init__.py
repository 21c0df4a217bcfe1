"""Replication of CASTLE and aCASTLE: the library. No Sacred, no DVC, no argparse, no printing."""
