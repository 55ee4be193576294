"""Several policies inside live vLLM, on the same requests, taking turns.

What is run
-----------
vLLM serves SmolLM2-135M-Instruct (the weights of a 4-bit file, de-quantised to bfloat16) with
:class:`whonext.serving.scheduler.WhoNextScheduler`. Requests are sent open-loop: a slice of the
Azure conversation trace, its lengths divided to fit the machine and its arrivals stretched to a
load. Each request makes exactly as many tokens as the trace says, divided (``ignore_eos``);
prompts are random tokens, for the trace has no text. KV blocks are few, so that requests queue for
memory. Prefix caching is off.

A *round* is one slice of the trace, run once under each policy; the order of the policies rotates
from round to round. One engine serves all: the rule is changed between runs, when it is empty.

How the rate is chosen: before each round a burst is sent, all at once, to fit the time of a step
(a constant, so much a request in it, so much a prompt token) and to count how many requests run
while others wait. That gives the seconds of the engine that a request takes if its steps are shared
by so many. The arrivals of a slice are stretched so that these seconds are ``load`` of the time
between the first and the last. Work that is done twice, because a preempted request starts anew,
comes on top.

What is predicted
-----------------
``size`` is the output length, known from the trace. Under ``predicted`` a policy is told the mean
output of earlier requests (the first part of the trace, which is not replayed) whose prompts, as
they are in the trace, were about as long. Under ``noisy`` it is told the true length times a
lognormal error: no predictor, but what one with such errors would be worth. Classes and weights
are drawn at random, apart from size: the trace has none.

The simulator's answer
----------------------
Two, both made from the ``fcfs`` run of a round and held against the other policies of the round:

- ``queue``: :func:`whonext.simulate` with as many servers as requests ran, on average, while
  anyone waited. A request's size is its time in service, by a least-squares line in its prompt and
  output length, scaled so that the servers together do what the engine did. It ignores that a step
  takes longer with more requests in it, that memory admits now more and now fewer, preemption, and
  the time the client and the engine's front end take.
- ``step_clock``: vLLM's own scheduler on a virtual clock
  (:class:`whonext.serving.step_clock.StepClock`), with step times by a least-squares model (a
  constant, so much a request, so much a prompt token). It ignores what the model cannot say about
  step times, and the client and front end.

The record (``results/live.json``, under ``data``)
--------------------------------------------------
``about``
    ``model``, ``vllm``, ``torch``, ``device``, ``trace`` (name, origin ``file`` or ``synthetic``),
    ``lengths`` (divisors and how many requests were cut at the cap).
``plan``
    All settings: ``rounds``, ``requests`` (a round and policy), ``load``, engine limits, seeds.
``calibration``
    Of the burst before the first round, which decides how many requests a round has:
    ``requests`` in the burst, ``step_time`` (seconds: constant, a request, a prompt token),
    ``running`` (mean number running while anyone waited), output ``tokens_per_second`` in that
    time; and what follows: ``requests_per_second`` of the replayed part of the trace that the
    engine can take.
``predictor``
    Its buckets, and under ``errors`` how good it is on the replayed requests, and under ``noisy``
    how good the artificial one is: see :func:`whonext.serving.predictor.prediction_errors`.
``classes``
    ``name``, ``weight``, ``share`` of each.
``policies``
    By label (``fcfs``, ``sjf``, ``sjf predicted``, ...): ``policy`` (its words), ``told`` (what it
    is told about lengths), and for ``response``, ``ttft`` (time to first token), ``waiting`` (from
    arrival at the scheduler to first admission): ``mean``, ``ci95``, ``p50``, ``p99``,
    ``p99_ci95``; for ``weighted_response`` (mean of weight times response over mean weight):
    ``mean``, ``ci95``; ``per_class`` mean responses; ``against_fcfs``: difference of means and its
    interval, by measure; ``preemptions``, ``throughput`` (output tokens a second from first
    arrival to last finish), ``simulated`` with ``queue`` and ``step_clock`` mean responses and
    ``live``, the same mean of what really happened.
``rounds``
    One object a round: ``order`` (labels), ``slice`` (first request in the trace), ``stretch``
    (live seconds to a second of the trace), ``span`` seconds of arrivals, ``calibration`` (of the
    burst before it), ``arrival`` (ms),
    ``prompt``, ``output`` (tokens), ``kind``, ``predicted``, ``noisy``; ``servers``,
    ``step_time`` and ``service_time`` (the fits); and under ``runs`` by label: ``response``,
    ``ttft``, ``waiting`` (ms, in the order of ``arrival``), ``preemptions``, ``steps``,
    ``running`` (mean over steps while anyone waited), ``kv_usage`` (mean over all steps),
    ``seconds`` (first due to last finished), ``late`` (ms, the most that the client sent a request
    late), ``out_of_order`` (admissions that disobeyed the policy: 0), ``step_time`` (fitted to this
    run: how steady the machine was), ``throughput``, ``simulated``.
``intervals``
    How they were made, in words.

All times are in seconds unless in ms.
"""

from __future__ import annotations

import functools
from typing import Any

from tqdm.auto import tqdm

from whonext.experiments import experiment, kept
from whonext.experiments.live_record import Round, make_record
from whonext.experiments.live_requests import Plan, read_trace, take_slice
from whonext.experiments.live_session import Session, calibrate

__all__ = ["live"]


@experiment("live", seed=1)
def live(small: bool = False) -> dict[str, Any]:
    """Policies inside live vLLM on the same requests, beside what the simulator says of them."""
    plan = (
        Plan(rounds=1, requests=40, burst=16, load=2.0, labels=("fcfs", "wspt predicted"))
        if small
        else Plan()
    )
    trace = read_trace(small)
    session = Session(plan)
    rounds: list[Round] = []
    progress = tqdm(total=plan.rounds * len(plan.labels), unit="run", disable=small)
    try:
        for number in range(plan.rounds):
            # Measured anew for each round: the machine may be faster now, or slower.
            measured = kept(
                f"speed before round {number}, {plan.key()}",
                lambda: calibrate(session, plan, trace),
            )
            first = rounds[0].measured if rounds else measured
            requests = plan.requests_at(first["requests_per_second"])
            sliced = take_slice(plan, trace, number, requests, measured)
            turn = number % len(plan.labels)
            labels = plan.labels[turn:] + plan.labels[:turn]
            runs = {}
            for label in labels:
                progress.set_description(f"round {number + 1}, {label}")
                step = f"round {number}, {label}, {requests} requests, {plan.key()}"
                run = functools.partial(session.run, sliced, label, f"r{number}")
                runs[label] = kept(step, run)
                progress.update()
            rounds.append(Round(sliced, labels, runs, measured))
    finally:
        progress.close()
        session.close()
    return make_record(plan, trace, rounds)
