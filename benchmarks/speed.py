"""Jobs per second, ours against others', both sides in one run: ``make bench``.

Each pair is timed alternately, several times, and the median of the ratios is printed, because
the speed of the machine drifts. Times count the drawing of random numbers, not compilation. All
sides are asked for the mean response time; what else each keeps is printed beside it. Only ours
and the C loop keep the whole distribution of response, waiting and slowdown.
"""

from __future__ import annotations

import argparse
import ctypes
import heapq
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import simpy

from whonext import Exponential, Pareto, Workload, simulate

BINS = 64 * 104
HERE = Path(__file__).parent


class Books(ctypes.Structure):
    """The statistics of the C loop."""

    _fields_ = [("sums", ctypes.c_double * 8), ("histogram", ctypes.c_int64 * (3 * BINS))]


def c_library() -> ctypes.CDLL | None:
    """Compile the C loop, if there is a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    target = Path(tempfile.mkdtemp()) / "queue.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(HERE / "queue.c"), "-o", str(target), "-lm"], check=True)
    library = ctypes.CDLL(str(target))
    library.srpt.restype = library.fcfs.restype = ctypes.c_double
    return library


def ours(policy: str, law, load: float, servers: int, jobs: int) -> Callable[[], float]:
    """Jobs per second of the compiled queue on one core."""
    workload = Workload(law, load=load)

    def run() -> float:
        return simulate(policy, workload, servers, jobs, replications=1, cores=1).jobs_per_second

    return run


def c_loop(library, policy: str, alpha: float, load: float, servers: int, jobs: int):
    """Jobs per second of the C loop."""
    mean = alpha / (alpha - 1) if alpha else 1.0
    rate = ctypes.c_double(load * servers / mean)
    shape = (ctypes.c_int(servers),) if policy == "srpt" else ()

    def run() -> float:
        books = Books()
        began = time.perf_counter()
        getattr(library, policy)(
            ctypes.c_int64(jobs), *shape, rate, ctypes.c_double(alpha), 7, ctypes.byref(books)
        )
        return jobs / (time.perf_counter() - began)

    return run


def simpy_mm1(load: float, jobs: int) -> Callable[[], float]:
    """Jobs per second of an M/M/1 queue written with SimPy's Resource."""

    def run() -> float:
        env = simpy.Environment()
        server = simpy.Resource(env)
        rng = random.Random(1)
        total = 0.0

        def job():
            nonlocal total
            came = env.now
            with server.request() as turn:
                yield turn
                yield env.timeout(rng.expovariate(1))
            total += env.now - came

        def source():
            for _ in range(jobs):
                yield env.timeout(rng.expovariate(load))
                env.process(job())

        began = time.perf_counter()
        env.process(source())
        env.run()
        return jobs / (time.perf_counter() - began)

    return run


def ciw_mm1(load: float, jobs: int) -> Callable[[], float] | None:
    """Jobs per second of Ciw on an M/M/1 queue."""
    try:
        import ciw
    except ImportError:
        return None

    def run() -> float:
        network = ciw.create_network(
            arrival_distributions=[ciw.dists.Exponential(load)],
            service_distributions=[ciw.dists.Exponential(1)],
            number_of_servers=[1],
        )
        ciw.seed(1)
        began = time.perf_counter()
        ciw.Simulation(network).simulate_until_max_customers(jobs)
        return jobs / (time.perf_counter() - began)

    return run


def plain_python_srpt(load: float, servers: int, jobs: int) -> Callable[[], float]:
    """Jobs per second of SRPT in plain Python with heapq: the loop one writes on a first day."""

    def run() -> float:
        rng = random.Random(1)
        now, served, waiting, total = 0.0, [], [], 0.0
        began = time.perf_counter()
        for _ in range(jobs):
            now += rng.expovariate(load * servers / 3)
            while served and served[0][0] <= now:
                finish, came = heapq.heappop(served)
                total += finish - came
                if waiting:
                    left, came = heapq.heappop(waiting)
                    heapq.heappush(served, (finish + left, came))
            size = rng.paretovariate(1.5)
            if len(served) < servers:
                heapq.heappush(served, (now + size, now))
                continue
            last = max(served)
            if now + size < last[0]:
                served.remove(last)
                heapq.heapify(served)
                heapq.heappush(served, (now + size, now))
                heapq.heappush(waiting, (last[0] - now, last[1]))
            else:
                heapq.heappush(waiting, (size, now))
        return jobs / (time.perf_counter() - began)

    return run


def compare(name: str, mine: Callable, theirs: Callable | None, rounds: int) -> None:
    """Time a pair alternately and print the median of the ratios."""
    if theirs is None:
        print(f"{name:<52} not installed here")
        return
    mine()
    theirs()
    pairs = [(mine(), theirs()) for _ in range(rounds)]
    ratios = sorted(a / b for a, b in pairs)
    a, b = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(
        f"{name:<52} {a / 1e6:8.2f} M/s {b / 1e6:10.3f} M/s   x {statistics.median(ratios):8.2f}"
        f"   [{ratios[0]:.2f}, {ratios[-1]:.2f}]",
        flush=True,
    )


def every_rule(jobs: int) -> None:
    """Our speed for every rule that has a kernel on one server."""
    from whonext.engines.queue import kernel_for
    from whonext.policies import registry

    laws = [(Exponential(1), 0.5), (Exponential(1), 0.8), (Pareto(1.5), 0.5), (Pareto(1.5), 0.8)]
    print("\nM jobs/s on one core, one server".ljust(25), *(f"{x.spec} at {r}" for x, r in laws))
    for name, rule in registry.items():
        if kernel_for(rule(), 1) is None:
            continue
        speeds = []
        for law, load in laws:
            try:
                run = ours(name, law, load, 1, jobs)
                run()
                speeds.append(f"{max(run(), run()) / 1e6:8.1f}")
            except ValueError:
                speeds.append("       -")
        print(f"{name:<25}", *speeds, flush=True)


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=float, default=4e6, help="jobs a timed run (4e6)")
    parser.add_argument("--rounds", type=int, default=5, help="pairs timed for a ratio (5)")
    parser.add_argument("--rules", action="store_true", help="also our speed for every rule")
    settings = parser.parse_args()
    jobs, rounds = int(settings.jobs), settings.rounds
    print(f"{platform.python_implementation()} {platform.python_version()}, one core")
    print(f"{'':<52} {'ours':>12} {'theirs':>14}   {'ratio':>10}   [least, most]")
    library = c_library()
    if library is None:
        print("no C compiler: the C loop is left out", file=sys.stderr)
    for policy, alpha, load, servers in (
        ("srpt", 1.5, 0.8, 3),
        ("srpt", 0.0, 0.8, 1),
        ("fcfs", 0.0, 0.8, 1),
        ("fcfs", 1.5, 0.5, 1),
    ):
        law = Pareto(alpha) if alpha else Exponential(1)
        compare(
            f"C loop, same statistics: {policy}-{servers} {law.spec} {load}",
            ours(policy, law, load, servers, jobs),
            c_loop(library, policy, alpha, load, servers, jobs) if library else None,
            rounds,
        )
    mm1 = ours("fcfs", Exponential(1), 0.8, 1, jobs)
    compare("SimPy, mean only: M/M/1 0.8", mm1, simpy_mm1(0.8, jobs // 100), rounds)
    compare("Ciw, all records: M/M/1 0.8", mm1, ciw_mm1(0.8, jobs // 200), rounds)
    compare(
        "plain Python and heapq, mean only: srpt-3 Pareto 0.8",
        ours("srpt", Pareto(1.5), 0.8, 3, jobs),
        plain_python_srpt(0.8, 3, jobs // 20),
        rounds,
    )
    if settings.rules:
        every_rule(jobs)


if __name__ == "__main__":
    main()
