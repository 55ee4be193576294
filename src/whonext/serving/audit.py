"""Reading an event trace back: was every admission the policy's choice?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["admissions_out_of_order", "bookkeeping_faults"]


def admissions_out_of_order(
    events: Iterable[tuple[Any, ...]], ranks: Mapping[str, Any]
) -> list[str]:
    """Find the requests that started while another, of lower rank, was waiting to start.

    Parameters
    ----------
    events
        Rows of an event trace, in order: time, event, job, and more.
    ranks
        The rank of each request, worked out by someone else than the scheduler. Equal ranks go by
        arrival.

    Returns
    -------
    list of str
        One line for each fault; empty if every admission obeyed.
    """
    faults: list[str] = []
    waiting: dict[str, tuple[Any, int]] = {}
    for place, (time, event, job, *_) in enumerate(events):
        if event == "arrive":
            waiting[job] = (ranks[job], place)
        elif event == "start":
            first = min(waiting, key=lambda name: waiting[name])
            if first != job:
                faults.append(f"at {time}: {job} started before {first}")
            del waiting[job]
        elif event in ("finish", "abort"):
            waiting.pop(job, None)
    return faults


def bookkeeping_faults(events: Iterable[tuple[Any, ...]]) -> list[str]:
    """Find requests whose events do not make a life: lost, started twice, finished unstarted.

    Returns
    -------
    list of str
        One line for each fault; empty if all is well.
    """
    allowed = {
        ("", "arrive"),
        ("arrive", "start"),
        ("arrive", "abort"),
        ("start", "preempt"),
        ("start", "finish"),
        ("start", "abort"),
        ("preempt", "resume"),
        ("preempt", "abort"),
        # A step that was in flight at the preemption can bring the last token.
        ("preempt", "finish"),
        ("resume", "preempt"),
        ("resume", "finish"),
        ("resume", "abort"),
    }
    faults: list[str] = []
    state: dict[str, str] = {}
    present = 0
    for time, event, job, _, _, in_system in events:
        if event == "policy":
            continue
        before = state.get(job, "")
        if (before, event) not in allowed:
            faults.append(f"at {time}: {job}: {event} after {before or 'nothing'}")
        state[job] = event
        present += {"arrive": 1, "finish": -1, "abort": -1}.get(event, 0)
        if in_system != present:
            faults.append(f"at {time}: {in_system} in the system, {present} by count")
    faults += [
        f"{job} is left with {event}"
        for job, event in state.items()
        if event not in ("finish", "abort")
    ]
    return faults
