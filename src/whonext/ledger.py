"""The ledger: each published number beside ours, with a verdict.

A row is written once, here: where the number stands and which part of a record answers it. Values,
intervals and verdicts are computed from the record, so a new run may change a verdict; a test
notices when one does.

Verdicts
--------
reproduced
    The published number is ours, to the digits printed; or a statement that our run bears out.
within noise
    The published number comes from one short run, and lies where such a run of ours falls 95 times
    in 100.
differs
    It does not; the reason says in what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whonext.experiments import load_record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FIELDS", "Row", "notes", "rows", "to_frame", "to_markdown"]

#: What a row has, in this order.
FIELDS = (
    "id",
    "source",
    "place",
    "claim",
    "published",
    "ours",
    "ci95",
    "jobs",
    "verdict",
    "reason",
)

POST = "Post on queueing theory for LLM routers"


@dataclass(frozen=True)
class Row:
    """One published number or statement.

    Attributes
    ----------
    id
        Stable name of the row.
    source, place
        The document, and where in it.
    claim
        What is claimed, in our words.
    published
        The number or the words published.
    ours, ci95
        Our value with its 95 % interval, where it has one.
    jobs
        Jobs that our value rests on; ``None`` where it is a formula.
    verdict, reason
        See the module.
    """

    id: str
    source: str
    place: str
    claim: str
    published: float | str
    ours: float | None
    ci95: tuple[float, float] | None
    jobs: int | None
    verdict: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values, in the order of ``FIELDS``."""
        values = {name: getattr(self, name) for name in FIELDS}
        values["ci95"] = None if self.ci95 is None else list(self.ci95)
        return values


def rows(records: dict[str, dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """Give the ledger as a list of dictionaries with the keys of ``FIELDS``.

    Parameters
    ----------
    records
        Records by name, in place of those in ``results/``.

    Raises
    ------
    ValueError
        Where a record is missing.
    """
    found: list[Row] = []
    for name, build in _BUILDERS.items():
        record = records[name] if records and name in records else load_record(name)
        found += build(record["data"])
    return [row.to_dict() for row in found]


def to_frame(records: dict[str, dict[str, Any]] | None = None) -> pd.DataFrame:
    """Give the ledger as a table, indexed by ``id``."""
    import pandas as pd

    return pd.DataFrame(rows(records), columns=list(FIELDS)).set_index("id")


def to_markdown(records: dict[str, dict[str, Any]] | None = None) -> str:
    """Give the ledger as Markdown tables, one a source, for the book's page."""
    lines: list[str] = []
    source = None
    for row in rows(records):
        if row["source"] != source:
            source = row["source"]
            lines += ["", f"## {source}", "", *notes(records)[source], ""]
            lines += ["| Place | Claim | Published | Ours | Jobs | Verdict | Why |"]
            lines += ["|---|---|---|---|---|---|---|"]
        ours = "" if row["ours"] is None else f"{row['ours']:.4g}"
        if row["ci95"]:
            low, high = row["ci95"]
            ours += f" [{low:.4g}, {high:.4g}]"
        jobs = "" if row["jobs"] is None else f"{row['jobs']:,}"
        cells = [row["place"], row["claim"], str(row["published"]), ours, jobs]
        cells += [f"**{row['verdict']}**", row["reason"]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines).strip() + "\n"


def notes(records: dict[str, dict[str, Any]] | None = None) -> dict[str, list[str]]:
    """Give what a reader must know before the rows of a source: paragraphs, by source."""
    record = (records or {}).get("ledger-router-post") or load_record("ledger-router-post")
    data = record["data"]
    found = data["inference"]
    fit = [f"{t['sigma']:g}" for t in found["tried"] if not t["outside"]]
    misfit = [f"{t['sigma']:g}" for t in found["tried"] if t["outside"]]
    text = (
        f"Each published number comes from one run of {data['requests']:,} requests, the first "
        f"{data['dropped']:,} dropped; ours from {data['runs']:,} such runs. The source does not "
        "state how widely its lognormal sizes are spread. Its FCFS number points at "
        f"sigma = {found['from_fcfs_by_pollaczek_khinchine']:.3g} by Pollaczek-Khinchine and its "
        f"c-mu number at {found['from_c_mu_by_cobham']:.3g} by Cobham's formula, each give or take "
        f"the noise of one run. We take {data['sigma']:g} for all three classes"
    )
    if misfit:
        text += (
            f": of the values tried, {' and '.join(fit)} leave all {found['numbers']} numbers "
            f"within the noise of one run, {' and '.join(misfit)} do not"
        )
    return {POST: [f"{text}."]}


# ------------------------------------------------------------------------------------------------
# Judging
# ------------------------------------------------------------------------------------------------


def _judge(printed: str, figure: dict[str, Any]) -> str:
    """Judge the mean of one short run of the source, given many such runs of ours."""
    published, unit = float(printed), 10.0 ** -len(printed.partition(".")[2])
    low, high = figure["ci95"]
    precise = (high - low) / 2 <= unit
    if precise and abs(published - figure["mean"]) <= unit:
        return "reproduced"
    one_low, one_high = figure["one_run"]
    return "within noise" if one_low <= published <= one_high else "differs"


def _bears_out(formula: float, figure: dict[str, Any]) -> bool:
    """Whether a simulated mean agrees with a formula: within 3.9 standard errors, once in 1e-4."""
    low, high = figure["ci95"]
    return abs(figure["mean"] - formula) <= 2 * (high - low) / 2


def _range(bounds: Sequence[float], scale: float = 1.0) -> str:
    return f"{bounds[0] * scale:.4g} to {bounds[1] * scale:.4g}"


# ------------------------------------------------------------------------------------------------
# The post on LLM routers
# ------------------------------------------------------------------------------------------------

_RULE_WORDS = {
    "fcfs": "FCFS",
    "c-mu": "c-mu",
    "wspt": "WSPT",
    "wspt, noise 1": "WSPT with predictions off by a lognormal factor of sigma 1",
    "wspt, noise 1.5": "WSPT with predictions off by a lognormal factor of sigma 1.5",
}
_STATISTIC_WORDS = {
    "objective": "mean of weight times response time",
    "interactive": "mean response time of the interactive class",
    "batch": "mean response time of the batch class",
    "p99": "99th percentile of the interactive class",
}
_PLACES = {
    ("fcfs", "objective"): "Figure 1",
    ("c-mu", "objective"): "Figure 1",
    ("wspt", "objective"): "Figure 1",
    ("wspt, noise 1", "objective"): "Figure 4",
    ("wspt, noise 1.5", "objective"): "Figure 4",
}


def _router_post(data: dict[str, Any]) -> list[Row]:
    return [
        *_post_figures(data),
        *_post_reductions(data),
        *_post_readings(data),
        *_post_statements(data),
    ]


def _post_figures(data: dict[str, Any]) -> list[Row]:
    from whonext.experiments.router_post import PUBLISHED

    found = []
    for rule, numbers in PUBLISHED.items():
        for statistic, printed in numbers.items():
            figure = data["figures"][rule][statistic]
            exact = data["exact"].get(rule, {}).get(statistic)
            reason = (
                f"one run of the source's length gives {_range(figure['one_run'])}, with sizes of "
                f"spread {data['sigma']:g} (inferred)"
            )
            if exact is not None:
                reason += f"; exact value {exact:.4g}"
            if rule.startswith("wspt, noise"):
                reason += _same_jobs(printed, PUBLISHED["wspt"][statistic], data["figures"][rule])
            place = "Figure 3" if statistic == "p99" else "Figure 2"
            found.append(
                Row(
                    id=f"post-{rule}-{statistic}".replace(", ", "-").replace(" ", "-"),
                    source=POST,
                    place=_PLACES.get((rule, statistic), place),
                    claim=f"load {data['load']:g}, {_RULE_WORDS[rule]}: "
                    f"{_STATISTIC_WORDS[statistic]}",
                    published=float(printed),
                    ours=figure["mean"],
                    ci95=tuple(figure["ci95"]),
                    jobs=data["jobs"],
                    verdict=_judge(printed, figure),
                    reason=reason,
                )
            )
    return found


def _same_jobs(printed: str, exact: str, figures: dict[str, Any]) -> str:
    """Say whether two published numbers can come from the same jobs."""
    ratio = float(printed) / float(exact)
    low, high = figures["objective over exact"]["one_run"]
    if low <= ratio <= high:
        return ""
    return (
        f"; on the same jobs the noise costs a factor of {low:.4g} to {high:.4g}, so the post's "
        f"{ratio:.4g} ({printed} over {exact}) means that its points are runs on different jobs, "
        "or that its classes are not all spread alike"
    )


def _percent(figure: dict[str, Any]) -> dict[str, Any]:
    """From a share that is kept to the per cent that are cut."""
    flip = {"mean": 100 * (1 - figure["mean"])}
    for name in ("ci95", "one_run"):
        low, high = figure[name]
        flip[name] = [100 * (1 - high), 100 * (1 - low)]
    return flip


def _post_reductions(data: dict[str, Any]) -> list[Row]:
    found = []
    for rule, published in (("c-mu", "76"), ("wspt", "78")):
        figure = _percent(data["figures"][rule]["objective over fcfs"])
        found.append(
            Row(
                id=f"post-{rule}-cut",
                source=POST,
                place="Figure 1",
                claim=f"per cent of the objective that {_RULE_WORDS[rule]} cuts from FCFS's",
                published=float(published),
                ours=figure["mean"],
                ci95=tuple(figure["ci95"]),
                jobs=data["jobs"],
                verdict=_judge(published, figure),
                reason=f"one run of its length, both rules on the same jobs, gives "
                f"{_range(figure['one_run'])} per cent",
            )
        )
    return found


def _post_readings(data: dict[str, Any]) -> list[Row]:
    """What the post reads off its figures."""
    figures = data["figures"]
    noisy = figures["wspt, noise 1.5"]["objective"]
    plain = figures["c-mu"]["objective"]
    gain = {
        name: figures["fcfs"][name]["mean"] / figures["c-mu"][name]["mean"]
        for name in ("interactive", "p99")
    }
    moved = {
        name: figures["fcfs"][name]["mean"] - figures["c-mu"][name]["mean"]
        for name in ("interactive", "p99")
    }
    below = noisy["mean"] < plain["mean"]
    srpt = data["identities"]["srpt_objective"]
    beaten = [rule for rule in ("fcfs", "c-mu", "wspt") if srpt < data["exact"][rule]["objective"]]
    return [
        Row(
            id="post-noise-1.5-below-c-mu",
            source=POST,
            place="Figure 4",
            claim="WSPT with noise of sigma 1.5 still does better than the c-mu rule",
            published="26.6, better than c-mu",
            ours=noisy["mean"],
            ci95=tuple(noisy["ci95"]),
            jobs=data["jobs"],
            verdict="reproduced" if below else "differs",
            reason=f"{noisy['mean']:.4g} against {plain['mean']:.4g} for c-mu on the same jobs; "
            "the post's own numbers, 26.6 and 25.4, say the opposite of its words",
        ),
        Row(
            id="post-tail-gains-more",
            source=POST,
            place="Figure 3",
            claim="priority helps the tail of the interactive class more than its mean",
            published="more",
            ours=gain["p99"] / gain["interactive"],
            ci95=None,
            jobs=data["jobs"],
            verdict="reproduced" if gain["p99"] > gain["interactive"] else "differs",
            reason=f"in units of time it does ({moved['p99']:.3g} against "
            f"{moved['interactive']:.3g}), as a factor it does not: the mean falls by a factor of "
            f"{gain['interactive']:.3g}, the 99th percentile by {gain['p99']:.3g} "
            "(published: 5.12 and 3.46)",
        ),
        Row(
            id="post-srpt-lowest",
            source=POST,
            place="Figure 1",
            claim="SRPT has by far the lowest objective of FCFS, c-mu, WSPT and itself",
            published="far below",
            ours=srpt,
            ci95=None,
            jobs=None,
            verdict="reproduced" if len(beaten) == 3 else "differs",
            reason=f"exact, against {data['exact']['wspt']['objective']:.4g} for WSPT, which may "
            "not interrupt; here the short class is the one of high weight",
        ),
    ]


def _statement(
    name: str,
    place: str,
    claim: str,
    right: bool,
    reason: str,
    *,
    published: float | str,
    ours: float,
    ci95: tuple[float, float] | None = None,
    jobs: int | None = None,
) -> Row:
    return Row(
        id=f"post-{name}",
        source=POST,
        place=place,
        claim=claim,
        published=published,
        ours=ours,
        ci95=ci95,
        jobs=jobs,
        verdict="reproduced" if right else "differs",
        reason=reason,
    )


def _post_statements(data: dict[str, Any]) -> list[Row]:
    """What the post states without a number of its own: our run beside the formula's value."""
    found = data["identities"]
    little, pk, cobham = (found[name] for name in ("little", "pollaczek_khinchine", "cobham"))
    moved, smith = found["conservation"]["largest_relative_change"], found["smith"]
    orders = found["cost_of_each_order"]
    growth = found["growth_of_the_last_wait"][-1]
    return [
        _statement(
            "little",
            "Vocabulary",
            "Little's law: the mean number is the arrival rate times the mean time",
            abs(little["number"] / little["rate_times_time"] - 1) < 1e-9,
            "measured on one window from empty to empty, where both sides are one area",
            published=round(little["rate_times_time"], 4),
            ours=little["number"],
            jobs=little["jobs"],
        ),
        _statement(
            "pollaczek-khinchine",
            "Vocabulary",
            "Pollaczek-Khinchine: E[W] = lambda E[S^2] / (2 (1 - rho)), here at load 0.85",
            _bears_out(pk["formula"], pk),
            "the formula's value, and FCFS simulated",
            published=round(pk["formula"], 4),
            ours=pk["mean"],
            ci95=tuple(pk["ci95"]),
            jobs=data["jobs"],
        ),
        _statement(
            "cobham",
            "The c-mu rule",
            "the formula for the mean wait under priorities, here for the batch class",
            _bears_out(cobham["formula"], cobham),
            "the formula's value, and the c-mu rule simulated",
            published=round(cobham["formula"], 4),
            ours=cobham["mean"],
            ci95=tuple(cobham["ci95"]),
            jobs=data["jobs"],
        ),
        _statement(
            "conservation",
            "The c-mu rule",
            "the work in the system is the same under every rule that does not idle",
            moved < 1e-9,
            "largest relative change of the mean work in any run, FCFS to c-mu and to WSPT, on the "
            "same jobs",
            published=0,
            ours=moved,
            jobs=data["jobs"],
        ),
        _statement(
            "c-mu-best-order",
            "The c-mu rule",
            "no order of the classes has a smaller objective than that of c-mu",
            orders[0][1:] == [0, 1, 2],
            f"the least of all {len(orders)} orders by Cobham's formula, the next best having "
            f"{orders[1][0]:.4g}; rules other than a fixed order of classes were not tried",
            published="optimal",
            ours=orders[0][0],
        ),
        _statement(
            "smiths-rule",
            "WSPT",
            "no order of a list of jobs has a smaller weighted sum of completion times",
            smith["beaten"] == 0,
            f"lists on which another order did better, of {smith['instances']} random lists of "
            f"{smith['jobs']} jobs with all {smith['orders']} orders tried",
            published="optimal",
            ours=float(smith["beaten"]),
            jobs=smith["instances"] * smith["jobs"],
        ),
        _statement(
            "growth",
            "The c-mu rule",
            "the wait of low-priority classes grows roughly like 1 / (1 - rho)^2",
            abs(growth - 2) < 0.25,
            "power of 1 / (1 - rho) near load 1, by Cobham's formula: only the last class's wait "
            "grows without bound, and of its two factors only one vanishes, because the classes "
            "above it leave room",
            published=2,
            ours=growth,
        ),
    ]


_BUILDERS: dict[str, Callable[[dict[str, Any]], list[Row]]] = {"ledger-router-post": _router_post}
