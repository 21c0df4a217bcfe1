"""Spans of time as people read them."""


def clock(seconds: float) -> str:
    """12 s, 3:04 min or 1:02:03 h."""
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if whole < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d} h"
