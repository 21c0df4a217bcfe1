"""How this process's memory is kept, for work that asks for the same sizes again and again."""

import ctypes
from contextlib import suppress

# Of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST = 32 << 20  # bytes of a block that is kept; no version of glibc takes more
ALL = 2**31 - 1


def keep_freed_memory() -> None:
    """Let the allocator keep what is freed.

    Every step of a training frees its activations and asks for them again. Given back to the kernel in between, they
    are cleared page by page each time: a tenth of a step of the narrow ConvNet-4. Other C libraries go on as they do.
    """
    with suppress(AttributeError):
        adjust = ctypes.CDLL(None).mallopt
        adjust(M_MMAP_THRESHOLD, LARGEST)
        adjust(M_TRIM_THRESHOLD, ALL)
