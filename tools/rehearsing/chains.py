"""How long all stages take: one after the other, side by side in several places, and along the longest chain."""

import heapq
from collections.abc import Mapping, Sequence

Job = tuple[str, str, int]  # stage, name, seed


def longest_chain(seconds: Mapping[Job, float], needs: Mapping[Job, Sequence[Job]]) -> tuple[float, list[Job]]:
    """What no number of places goes below, and the stages that it runs through; jobs come in the pipeline's order."""
    until: dict[Job, float] = {}
    before: dict[Job, Job | None] = {}
    for job, own in seconds.items():
        last = max(needs[job], key=lambda one: until[one], default=None)
        until[job], before[job] = own + (until[last] if last else 0.0), last
    chain: list[Job] = []
    at: Job | None = max(until, key=lambda one: until[one], default=None)
    while at is not None:
        chain.append(at)
        at = before[at]
    return max(until.values(), default=0.0), chain[::-1]


def side_by_side(seconds: Mapping[Job, float], needs: Mapping[Job, Sequence[Job]], places: int) -> float:
    """Seconds on `places` places: each takes the first stage of the pipeline that is ready, as tools/repro does."""
    order = {job: place for place, job in enumerate(seconds)}
    missing = {job: len(needs[job]) for job in seconds}
    after: dict[Job, list[Job]] = {job: [] for job in seconds}
    for job, upstream in needs.items():
        for one in upstream:
            after[one].append(job)
    ready = [(order[job], job) for job, number in missing.items() if not number]
    heapq.heapify(ready)
    running: list[tuple[float, int, Job]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < places:
            place, job = heapq.heappop(ready)
            heapq.heappush(running, (now + seconds[job], place, job))
        now, _, ended = heapq.heappop(running)
        for job in after[ended]:
            missing[job] -= 1
            if not missing[job]:
                heapq.heappush(ready, (order[job], job))
    return now
