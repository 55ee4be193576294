"""The command ``whonext``.

Answers go to standard output, progress and errors to standard error. Bad input is answered by one
line and exit status 2; a check or a ledger row that fails, by status 1. Nothing heavy is imported
before a command is known, so that ``whonext --help`` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from whonext.estimates import JobsNeeded
    from whonext.results import Result, Summary
    from whonext.workload import Workload

__all__ = ["main"]

BAD_INPUT = 2
STOPPED = 130  # what a shell reports after Ctrl-C


class _UsageError(Exception):
    """The command line itself is wrong."""


class _Stopped(KeyboardInterrupt):
    """Ctrl-C, when something is kept to go on from."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, raised rather than printed with the usage."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{self.prog}: {message}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv
        Words after ``whonext``; those of the process by default.

    Returns
    -------
    int
        Exit status: 0, 1 where a check failed, 2 on bad input, 130 after Ctrl-C.
    """
    words: argparse.Namespace | None = None
    try:
        words = _parser().parse_args(argv)
        return int(words.run(words) or 0)
    except _UsageError as error:
        return _complain(str(error))
    except KeyboardInterrupt as stop:
        kept = f"; {stop}" if isinstance(stop, _Stopped) else ""
        print(f"whonext: stopped{kept}", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        line = _bad_input(error, words)
        if line is None:
            raise
        return _complain(f"whonext: {line}")


def _complain(line: str) -> int:
    print(" ".join(line.split()), file=sys.stderr)
    return BAD_INPUT


def _bad_input(error: Exception, words: argparse.Namespace | None) -> str | None:
    """Give the line that says what is wrong with the input; ``None`` for a fault of our own."""
    if isinstance(error, OSError):
        return f"file={error.filename}: {error.strerror}" if error.filename else str(error)
    if isinstance(error, ValueError | ModuleNotFoundError):
        return str(error)
    if isinstance(error, MemoryError):
        return str(error) or "the memory is full"
    texts = getattr(words, "policies", None) or [getattr(words, "policy", None)]
    for text in texts:
        module = sys.modules.get(str(text).split(":")[0])
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if module is not None and frame.filename == getattr(module, "__file__", None):
                where = f"{Path(frame.filename).name}, line {frame.lineno}"
                return f"policy={text!r}: {type(error).__name__}: {error} ({where})"
    if isinstance(error, RuntimeError) and any(":" in str(text) for text in texts):
        return str(error)
    return None


# ------------------------------------------------------------------------------------------------
# The words
# ------------------------------------------------------------------------------------------------

_LAWS = (
    "exp:1, det:1, lognormal:mean=1,sigma=1, pareto:alpha=1.5, "
    "bounded-pareto:alpha=1.5,low=1,high=1e6, hyperexp:p=0.9/0.1,mean=0.5/5.5, "
    "weibull:shape=0.5,mean=1, gamma:shape=2,mean=1, erlang:phases=2,mean=1, uniform:low=0,high=2, "
    "empirical:FILE"
)


def _parser() -> argparse.ArgumentParser:
    from whonext import __version__

    parser = _Parser(
        prog="whonext",
        description="Who goes next? Scheduling rules, simulated and held against theory.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_examples(
            "whonext simulate fcfs --load 0.8 --size exp:1 --jobs 1e7",
            "whonext theory srpt --load 0.8 --size pareto:alpha=1.5",
            "whonext compare fcfs sjf srpt --load 0.8 --size lognormal:mean=1,sigma=1.5",
            "whonext check mymodule:MyPolicy",
        ),
    )
    parser.add_argument("--version", action="version", version=f"whonext {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_simulate(commands)
    _add_theory(commands)
    _add_compare(commands)
    _add_policies(commands)
    _add_check(commands)
    _add_ledger(commands)
    _add_reproduce(commands)
    _add_traces(commands)
    return parser


def _examples(*lines: str) -> str:
    return "examples:\n" + "\n".join(f"  {line}" for line in lines)


def _command(commands: Any, name: str, run: Any, about: str, *examples: str) -> Any:
    parser = commands.add_parser(
        name,
        help=about[0].lower() + about[1:].partition(".")[0],
        description=textwrap.fill(about, 92),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_examples(*examples) if examples else None,
    )
    parser.set_defaults(run=run)
    return parser


_CLASSES_HELP = """

a file for --classes:
  [[class]]
  name = "chat"
  share = 0.8        # of the arrivals; the shares sum to 1
  size = "exp:1"
  weight = 4         # cost of a job for each unit of time inside; 1 if left out

  [[class]]
  name = "batch"
  share = 0.2
  size = "lognormal:mean=3,sigma=1"
"""


def _add_workload(parser: Any, *, trace: bool) -> None:
    parser.epilog += _CLASSES_HELP
    group = parser.add_argument_group("jobs")
    group.add_argument(
        "--servers", type=_whole, default=1, metavar="N", help="servers of speed 1 (default: 1)"
    )
    group.add_argument(
        "--load", type=_number, metavar="RHO", help="arrival rate times mean size, per server"
    )
    group.add_argument(
        "--arrival-rate", type=_number, metavar="RATE", help="arrivals a unit of time, not --load"
    )
    group.add_argument("--size", metavar="LAW", help=f"law of the sizes: {_LAWS}")
    group.add_argument(
        "--classes",
        metavar="FILE",
        help="job classes in place of --size: a TOML file with a [[class]] for each, with the "
        "keys name, share, size and weight",
    )
    if trace:
        group.add_argument(
            "--trace",
            metavar="FILE.csv",
            help="jobs of your own in place of --size: columns arrival, size and, if you like, "
            "kind, weight, prediction, cost",
        )
    group.add_argument(
        "--arrivals",
        metavar="HOW",
        help="poisson (default), renewal:LAW, batch:MEAN, diurnal:amplitude=A,period=P",
    )
    group.add_argument(
        "--prediction",
        metavar="HOW",
        help="what is predicted of a size: exact (default), lognormal:sigma=S, class-mean",
    )
    group.add_argument(
        "--cost", metavar="NAME", help="what a job is charged at: one (default), size, prediction"
    )


def _add_run(parser: Any) -> None:
    group = parser.add_argument_group("run")
    group.add_argument(
        "--jobs",
        type=_whole,
        metavar="N",
        help="jobs in all, 1e7 allowed (default: 1e6); four times as many halve the intervals",
    )
    group.add_argument("--seed", type=_whole, default=0, metavar="S", help="default: 0")
    group.add_argument(
        "--replications",
        type=_whole,
        default=10,
        metavar="R",
        help="independent parts, from whose spread the intervals come (default: 10)",
    )
    group.add_argument(
        "--warmup",
        type=_whole,
        metavar="N",
        help="jobs at the start of each part that are not counted (default: a tenth)",
    )
    group.add_argument(
        "--cores", type=_whole, metavar="N", help="processes; the answer does not depend on it"
    )
    group.add_argument(
        "--engine",
        default="auto",
        metavar="NAME",
        help="queue (compiled), reference (SimPy, any rule), or auto (default)",
    )
    group.add_argument(
        "--horizon", type=_number, metavar="T", help="stop the clock at T; allows a load above 1"
    )
    group.add_argument(
        "--resume",
        metavar="FILE",
        help="keep each part here as it is done; after Ctrl-C or worse, the same command goes on "
        "(compare: FILE.1, FILE.2, … for its rules)",
    )


def _add_json(parser: Any) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")


_POLICY_HELP = "a rule (see: whonext policies), or module:Class for one of your own"


def _add_simulate(commands: Any) -> None:
    parser = _command(
        commands,
        "simulate",
        _simulate,
        "Simulate one rule. Times come with 95 % intervals, or with the reason why not.",
        "whonext simulate fcfs --servers 1 --load 0.8 --size exp:1 --jobs 1e7",
        "whonext simulate wspt --load 0.85 --classes classes.toml --json",
        "whonext simulate mymodule:MyPolicy --servers 4 --load 0.9 --size pareto:alpha=2.5",
        "whonext simulate srpt --trace mine.csv",
        "whonext simulate srpt --load 0.8 --size exp:1 --precision 0.01",
    )
    parser.add_argument("policy", metavar="POLICY", help=_POLICY_HELP)
    _add_workload(parser, trace=True)
    _add_run(parser)
    parser.add_argument_group("how many jobs for ±1 % of P99.9?").add_argument(
        "--precision",
        type=_number,
        metavar="PART",
        help="say how many jobs would bring the intervals of the mean, p99 and p99.9 of the "
        "response time down to this part of them, with this run as the pilot: 0.01 is ±1 %%",
    )
    _add_json(parser)


def _add_theory(commands: Any) -> None:
    parser = _command(
        commands,
        "theory",
        _theory,
        "Give the exact mean times of a rule, or say why there is no formula.",
        "whonext theory fcfs --load 0.8 --size lognormal:mean=1,sigma=1.5",
        "whonext theory c-mu --load 0.85 --classes classes.toml --json",
    )
    parser.add_argument("policy", metavar="POLICY", help=_POLICY_HELP)
    _add_workload(parser, trace=False)
    _add_json(parser)


def _add_compare(commands: Any) -> None:
    parser = _command(
        commands,
        "compare",
        _compare,
        "Simulate several rules on the same jobs. Differences are to the first, pair by pair, so "
        "that the noise of the jobs cancels.",
        "whonext compare fcfs sjf srpt --load 0.8 --size lognormal:mean=1,sigma=1.5",
        "whonext compare fcfs mymodule:MyPolicy --servers 2 --trace mine.csv",
    )
    parser.add_argument("policies", metavar="POLICY", nargs="+", help=_POLICY_HELP)
    _add_workload(parser, trace=True)
    _add_run(parser)
    _add_json(parser)


def _add_policies(commands: Any) -> None:
    parser = _command(commands, "policies", _policies, "List the rules, with a line on each.")
    _add_json(parser)


def _add_check(commands: Any) -> None:
    parser = _command(
        commands,
        "check",
        _check,
        "Put a rule of your own through the conformance kit: what it sees, whether it repeats "
        "itself, whether every job gets out, whether the engines agree on it.",
        "whonext check mymodule:MyPolicy",
        "whonext check mymodule:MyPolicy:d=3",
    )
    parser.add_argument("policy", metavar="POLICY", help=_POLICY_HELP)
    parser.add_argument(
        "--tables", type=_whole, default=30, metavar="N", help="random job tables (default: 30)"
    )
    parser.add_argument("--seed", type=_whole, default=0, metavar="S", help="default: 0")
    _add_json(parser)


def _add_ledger(commands: Any) -> None:
    parser = _command(
        commands,
        "ledger",
        _ledger,
        "List published numbers beside ours, each with a verdict.",
        "whonext ledger",
        "whonext ledger --json",
    )
    _add_json(parser)


def _add_reproduce(commands: Any) -> None:
    parser = _command(
        commands,
        "reproduce",
        _reproduce,
        "Re-run an experiment of the book and rewrite its record in results/.",
        "whonext reproduce --list",
        "whonext reproduce ledger-router-post",
        "whonext reproduce ledger-router-post --small",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="experiments; none lists them")
    parser.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument(
        "--small",
        action="store_true",
        help="a short run, to see it work: printed, and the record left as it is",
    )


def _add_traces(commands: Any) -> None:
    parser = _command(
        commands, "traces", _traces, "List the public traces, and where each is found."
    )
    _add_json(parser)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _whole(text: str) -> int:
    value = _number(text)
    if not math.isfinite(value) or value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(value)


# ------------------------------------------------------------------------------------------------
# The commands
# ------------------------------------------------------------------------------------------------


def _workload(words: argparse.Namespace) -> Workload:
    from whonext.workload import Workload

    sources = {"--size": words.size, "--classes": words.classes}
    sources["--trace"] = getattr(words, "trace", None)
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        allowed = [name for name in sources if hasattr(words, name[2:])]
        found = " and ".join(given) or "none"
        raise _UsageError(f"whonext: give exactly one of {', '.join(allowed)}; {found} given")
    options = {
        name: getattr(words, name)
        for name in ("load", "arrival_rate", "arrivals", "prediction", "cost")
        if getattr(words, name) is not None
    }
    if words.size is not None:
        return Workload(words.size, **options)
    if words.classes is not None:
        return Workload.from_toml(words.classes, **options)
    from whonext.traces import read_csv

    if "arrivals" in options or "arrival_rate" in options:
        raise _UsageError("whonext: a trace has its own arrivals; --load stretches them")
    return Workload.from_frame(read_csv(words.trace), **options)


def _settings(words: argparse.Namespace, workload: Workload) -> dict[str, Any]:
    jobs = words.jobs
    if jobs is None:
        jobs = 1_000_000 if workload.fixed is None else len(workload.fixed)
    return {
        "servers": words.servers,
        "jobs": jobs,
        "seed": words.seed,
        "replications": words.replications,
        "warmup": words.warmup,
        "cores": words.cores,
        "engine": words.engine,
        "horizon": words.horizon,
        "resume": words.resume,
    }


@contextlib.contextmanager
def _keeping(words: argparse.Namespace, workload: Workload) -> Iterator[dict[str, Any]]:
    """Give the settings of a run, which keeps what is done when Ctrl-C stops it.

    Where no file is named it is kept in a temporary one, which goes when the run is over.
    """
    settings = _settings(words, workload)
    folder = None
    if words.resume is None and words.horizon is None and workload.fixed is None:
        folder = tempfile.mkdtemp(prefix="whonext-")
        settings["resume"] = str(Path(folder) / "run")
    try:
        yield settings
    except KeyboardInterrupt:
        done, parts = _count_kept(words, settings["resume"])
        if not done:
            raise
        folder = None
        raise _Stopped(
            f"{done} of {parts} parts are kept: the same command goes on from there with "
            f"--resume {settings['resume']}"
        ) from None
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _count_kept(words: argparse.Namespace, path: str | None) -> tuple[int, int]:
    """How many replications are kept, and of how many."""
    from whonext.resume import replications_kept

    if path is None:
        return 0, 1
    rules = getattr(words, "policies", None)
    files = [path] if rules is None else [f"{path}.{k}" for k in range(1, len(rules) + 1)]
    return sum(map(replications_kept, files)), words.replications * len(files)


def _simulate(words: argparse.Namespace) -> None:
    from whonext.policies import parse_policy
    from whonext.simulation import simulate

    policy = parse_policy(words.policy)
    workload = _workload(words)
    with _keeping(words, workload) as settings:
        result = simulate(policy, workload, **settings)
    plan = _plan(result, words.precision) if words.precision is not None else {}
    if words.json:
        needed = {name: vars(each) for name, each in plan.items()}
        _print_json(result.to_dict() | ({"jobs_needed": needed} if plan else {}))
        return
    _print_result(result)
    if plan:
        print(f"\njobs for ±{100 * words.precision:.4g} % of the response time's")
    for name, each in plan.items():
        if each.jobs is None or each.range95 is None:
            print(f"{name}: {each.reason}")
        else:
            low, high = each.range95
            print(f"{name}: {each.jobs:,}, 95 % interval [{low:,}, {high:,}]")


def _plan(result: Result, precision: float) -> dict[str, JobsNeeded]:
    """Jobs needed for the mean and two quantiles, by name."""
    from whonext.estimates import jobs_needed

    quantiles = {"mean": None, "p99": 0.99, "p99.9": 0.999}
    return {name: jobs_needed(result, precision, p) for name, p in quantiles.items()}


def _theory(words: argparse.Namespace) -> None:
    from whonext.theory import answer

    found = answer(words.policy, _workload(words), words.servers)
    if words.json:
        _print_json(found.to_dict())
        return
    print(f"{found.policy} on {_servers(found.servers)} at load {found.load:.5g}, {found.size}")
    if found.reason:
        print(f"no value: {found.reason}")
        return
    rows = [["", "response", "waiting"]]
    rows.append(["all jobs", _digits(found.response_mean), _digits(found.waiting_mean)])
    if len(found.per_class) > 1:
        for name, each in found.per_class.items():
            rows.append([name, _digits(each.response_mean), _digits(each.waiting_mean)])
    _print_table(rows)
    print(f"source: {found.source}; chapter: {found.chapter}")


def _compare(words: argparse.Namespace) -> None:
    from whonext.policies import parse_policy
    from whonext.simulation import compare

    policies = [parse_policy(text) for text in words.policies]
    workload = _workload(words)
    with _keeping(words, workload) as settings:
        comparison = compare(policies, workload, **settings)
    if words.json:
        _print_json(comparison.to_dict())
        return
    results = list(comparison.results.values())
    print(f"{_servers(words.servers)} at load {_digits(results[0].load)}, {results[0].size}")
    print(f"{results[0].jobs:,} jobs, the same for every rule; mean response time\n")
    differences = comparison.differences()
    first = results[0].policy
    rows = [["", "mean", "95 % interval", "p50", "p99", f"less {first}", "95 % interval"]]
    for name, result in comparison.results.items():
        summary = result.response
        gap = differences.get(name)
        rows.append(
            [name, _digits(summary.mean), _range(summary.ci95)]
            + [_quantile(summary, p) for p in (0.5, 0.99)]
            + ([_digits(gap.value), _range(gap.ci95)] if gap else ["", ""])
        )
    _print_table(rows)
    _print_reasons(
        (name, summary.reason)
        for name, summary in ((r.policy, r.response) for r in comparison.results.values())
    )


def _policies(words: argparse.Namespace) -> None:
    from whonext.policies import registry

    lines: list[dict[str, Any]] = [
        {
            "name": name,
            "meaning": (rule.__doc__ or "").strip().partition("\n")[0],
            "preemptive": bool(rule.preemptive),
            "parameters": _parameters(rule),
        }
        for name, rule in registry.items()
    ]
    if words.json:
        _print_json(lines)
        return
    width = max(len(line["name"]) for line in lines)
    for line in lines:
        taken = f"  ({', '.join(line['parameters'])})" if line["parameters"] else ""
        print(f"{line['name']:<{width}}  {line['meaning']}{taken}")
    print(f"{'module:Class':<{width}}  A rule of your own; parameters as in sjf:by=prediction.")


def _parameters(rule: type) -> list[str]:
    from dataclasses import fields, is_dataclass

    if not is_dataclass(rule):
        return []
    return [f"{f.name}={f.default}" for f in fields(rule) if f.init]


def _check(words: argparse.Namespace) -> int:
    from whonext.check import check_policy
    from whonext.policies import parse_policy

    report = check_policy(parse_policy(words.policy), tables=words.tables, seed=words.seed)
    if words.json:
        _print_json(report.to_dict())
    else:
        print(report)
    return 0 if report.passed else 1


def _ledger(words: argparse.Namespace) -> None:
    from whonext import ledger

    rows = ledger.rows()
    if words.json:
        _print_json(rows)
        return
    table = [["id", "published", "ours", "95 % interval", "verdict"]]
    for row in rows:
        ours = row["ours"]
        table.append(
            [row["id"], str(row["published"]), _digits(ours), _range(row["ci95"]), row["verdict"]]
        )
    _print_table(table)
    print("\nwhonext ledger --json says where each number stands, and the reason of each verdict.")


def _reproduce(words: argparse.Namespace) -> None:
    from whonext import experiments

    if words.list or not words.names:
        known = experiments.registry()
        width = max(len(name) for name in known)
        for name, each in known.items():
            print(f"{name:<{width}}  {each.about}")
        return
    for name in words.names:
        experiments.find(name)  # all names are right before any long run begins
    for name in words.names:
        record = experiments.run(name, small=words.small)
        if words.small:
            _print_json(record)
        else:
            path = experiments.save_record(record)
            print(f"{name}: {record['seconds']:.0f} s, written to {path}")


def _traces(words: argparse.Namespace) -> None:
    from whonext import traces

    found = traces.listing()
    if words.json:
        _print_json(found)
        return
    rows = [["name", "requests", "here", "licence", "source"]]
    for line in found:
        here = "yes" if line["here"] else "no"
        rows.append([line["name"], f"{line['requests']:,}", here, line["licence"], line["source"]])
    _print_table(rows, left=(0, 3, 4))


# ------------------------------------------------------------------------------------------------
# Printing
# ------------------------------------------------------------------------------------------------


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, allow_nan=False, default=_plain))


def _plain(value: Any) -> Any:
    """Turn what numpy made into what JSON has."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _print_result(result: Result) -> None:
    load = "" if result.load is None else f" at load {result.load:.5g}"
    came = "" if result.realised_load is None else f" (came: {result.realised_load:.5g})"
    print(f"{result.policy} on {_servers(result.servers)}{load}{came}, {result.size}")
    parts = len(result.tallies)
    speed = f"{result.jobs_per_second / 1e6:.3g} M jobs/s" if result.jobs_per_second else ""
    print(
        f"{result.jobs:,} jobs in {parts} part{'s' * (parts != 1)}, the first {result.warmup:,} "
        f"of each not counted; {result.seconds:.2f} s, {speed}"
    )
    if result.left_inside:
        print(f"{result.left_inside:,} counted jobs were still inside at the end")
    print()
    rows = [["", "mean", "95 % interval", "p50", "p90", "p99", "p99.9"]]
    reasons: list[tuple[str, str | None]] = []

    def add(name: str, summary: Summary) -> None:
        quantiles = [_quantile(summary, p) for p in (0.5, 0.9, 0.99, 0.999)]
        rows.append([name, _digits(summary.mean), _range(summary.ci95), *quantiles])
        reasons.append((name, summary.reason))

    for measure in ("response", "waiting", "slowdown"):
        add(measure, getattr(result, measure))
    if len(result.per_class) > 1:
        for name, each in result.per_class.items():
            add(f"{name}: response", each.response)
            add(f"{name}: waiting", each.waiting)
    number = result.number_in_system
    rows.append(["number in system", _digits(number.value), _range(number.ci95), *[""] * 4])
    reasons.append(("number in system", number.reason))
    if len(result.per_class) > 1:
        cost = result.weighted_cost
        rows.append(["weighted cost", _digits(cost.value), _range(cost.ci95), *[""] * 4])
    _print_table(rows)
    _print_reasons(reasons)


def _print_reasons(reasons: Iterable[tuple[str, str | None]]) -> None:
    """Each reason once, after the names it holds for."""
    names_of: dict[str, list[str]] = {}
    for name, reason in reasons:
        if reason:
            names_of.setdefault(reason, []).append(name)
    if names_of:
        print()
    for reason, names in names_of.items():
        print(f"{', '.join(names)}: {reason}")


def _print_table(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Print columns: words to the left, numbers to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"


def _range(bounds: Sequence[float] | None) -> str:
    return "-" if not bounds else f"[{bounds[0]:.5g}, {bounds[1]:.5g}]"


def _quantile(summary: Summary, p: float) -> str:
    return _digits(summary.quantile(p)) if summary.count else "-"


def _servers(servers: int) -> str:
    return f"{servers} server{'s' * (servers != 1)}"
