"""Traces: the public ones where their files are, one's own, and synthetic stand-ins."""

from __future__ import annotations

import json
import os
import re
import urllib.error
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from whonext import traces
from whonext.traces import (
    TRACES,
    TraceModel,
    fit,
    load_trace,
    read_csv,
    read_requests,
    spread_batches,
    synthetic,
    trace_workload,
)
from whonext.workload import Workload

HERE = Path(__file__).resolve().parents[2] / "shared" / "data"
FOLDER = Path(os.environ.get("WHONEXT_TRACES", HERE))

each_trace = pytest.mark.parametrize("name", TRACES)


def present(name: str) -> Path:
    """The file of a trace, or a skip that says what is missing."""
    path = FOLDER / TRACES[name].file
    if not path.is_file():
        pytest.skip(f"{path.name} is not here; set WHONEXT_TRACES to a folder that has it")
    return path


def refuses(message):
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


# The public files.

#: What the files hold: requests, seconds, mean prompt and mean output.
FACTS = {
    "azure-conversation": (19_366, 3_501.721937, 1154.6974, 211.1259),
    "azure-code": (8_819, 3_435.948056, 2047.8483, 27.8825),
    "mooncake-conversation": (12_031, 3_537.0, 12035.0613, 342.6189),
    "mooncake-synthetic": (3_993, 1_022.025, 15325.4766, 149.1190),
}


@each_trace
def test_public_traces(name):
    present(name)
    requests, seconds, prompt, output = FACTS[name]
    frame = load_trace(name, FOLDER)
    assert list(frame.columns) == ["arrival", "prompt", "output"]
    assert len(frame) == requests == TRACES[name].requests
    assert frame["arrival"].iloc[0] == pytest.approx(0.0, abs=1.0)
    assert (frame["arrival"].diff().iloc[1:] >= 0).all()
    assert frame["arrival"].iloc[-1] == pytest.approx(seconds, abs=3.0)
    assert frame["prompt"].dtype == frame["output"].dtype == np.int64
    assert frame["prompt"].mean() == pytest.approx(prompt, abs=1e-3)
    assert frame["output"].mean() == pytest.approx(output, abs=1e-3)
    assert frame.attrs == {"name": name, "origin": "file"}


def test_mooncake_batches_are_spread():
    present("mooncake-conversation")
    raw = load_trace("mooncake-conversation", FOLDER, spread="none")["arrival"]
    assert raw.nunique() == 1_180
    for spread in ("even", "random"):
        arrival = load_trace("mooncake-conversation", FOLDER, spread=spread)["arrival"]
        assert arrival.nunique() == 12_031
        late = arrival - raw
        assert (late > -1e-9).all()
        assert (late < 3.01).all()
    again = load_trace("mooncake-conversation", FOLDER)["arrival"]
    np.testing.assert_array_equal(arrival, again)  # random is what it is unless stated
    other = load_trace("mooncake-conversation", FOLDER, seed=1)["arrival"]
    assert not np.array_equal(arrival, other)
    gaps = np.diff(again)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(1.0, abs=0.1)  # no bursts left


def test_prefix_blocks():
    present("mooncake-synthetic")
    frame = load_trace("mooncake-synthetic", FOLDER, prefix_blocks=True)
    assert isinstance(frame["prefix_blocks"][0], tuple)
    counts = frame["prefix_blocks"].map(len)
    assert (counts == np.ceil(frame["prompt"] / 512)).mean() > 0.99
    present("azure-code")
    with pytest.raises(ValueError, match="has no column hash_ids; it has TIMESTAMP, Context"):
        load_trace("azure-code", FOLDER, prefix_blocks=True)


@pytest.mark.parametrize("name", ["azure-code", "mooncake-synthetic"])
def test_a_file_cut_short_is_refused(name, tmp_path):
    content = present(name).read_bytes()
    path = tmp_path / TRACES[name].file
    cut = content[: content.index(b"\n", 20_000) + 12]  # in the middle of a line
    path.write_bytes(cut)
    line = cut.count(b"\n") + 1
    with pytest.raises(
        ValueError, match=rf"^file={re.escape(str(path))}, line {line}: .* short\?$"
    ):
        load_trace(name, tmp_path)
    path.write_bytes(content[: content.rindex(b"\n", 0, 20_000)])  # after a whole line
    with pytest.raises(ValueError, match=r"is not the published file .*; read_requests reads"):
        load_trace(name, tmp_path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=rf"^file={re.escape(str(path))}.* (empty|no rows)"):
        load_trace(name, tmp_path)


@each_trace
def test_committed_models_are_what_fit_gives(name):
    present(name)
    if name != "azure-code":  # one whole fit is enough; the others are held to their distances
        model, frame = TraceModel.load(name), load_trace(name, FOLDER)
        for column in ("prompt", "output"):
            x, counts = np.unique(frame[column], return_counts=True)
            distance = np.abs(np.cumsum(counts) / len(frame) - model.cdf(column, x)).max()
            assert distance <= model.quality["ks"][column] + 1e-4
        return
    model, again = TraceModel.load(name), fit(load_trace(name, FOLDER), name)
    assert again.requests == model.requests
    assert again.rate == pytest.approx(model.rate, rel=1e-4)
    for column, distance in model.quality["ks"].items():
        assert again.quality["ks"][column] == pytest.approx(distance, abs=2e-3)


# Where the files are not.


def test_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("WHONEXT_TRACES", str(tmp_path / "named"))
    assert traces.find_folder() == tmp_path / "named"
    assert traces.find_folder(tmp_path) == tmp_path
    monkeypatch.delenv("WHONEXT_TRACES")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert traces.find_folder() == tmp_path / "whonext" / "traces"


def test_synthetic_stands_in_and_says_so(tmp_path):
    with pytest.warns(UserWarning, match=r"trace='azure-code': .* missing; a synthetic trace"):
        frame = load_trace("azure-code", tmp_path, fallback="synthetic")
    assert frame.attrs == {"name": "azure-code", "origin": "synthetic"}
    assert len(frame) == 8_819
    pd.testing.assert_frame_equal(frame, synthetic("azure-code"))


class Answer:
    def __init__(self, content):
        self.content = content

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def read(self):
        return self.content


def test_download(monkeypatch, tmp_path):
    name = "azure-code"
    content = present(name).read_bytes()
    asked = []

    def urlopen(address, timeout):
        asked.append(address)
        return Answer(content)

    monkeypatch.setattr(traces.urllib.request, "urlopen", urlopen)
    frame = load_trace(name, tmp_path / "new")
    assert len(frame) == 8_819
    assert asked == [TRACES[name].address]
    assert [path.name for path in (tmp_path / "new").iterdir()] == [TRACES[name].file]
    load_trace(name, tmp_path / "new")
    assert len(asked) == 1  # kept


def test_download_that_fails(monkeypatch, tmp_path):
    address = TRACES["azure-code"].address
    path = tmp_path / TRACES["azure-code"].file

    def no_network(*_, **__):
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr(traces.urllib.request, "urlopen", no_network)
    with refuses(
        f"trace='azure-code': {path} is missing, and {address} cannot be reached "
        "(no route to host); put the file there, name its folder in WHONEXT_TRACES, "
        "or take the synthetic trace"
    ):
        load_trace("azure-code", tmp_path)
    monkeypatch.setattr(traces.urllib.request, "urlopen", lambda *_, **__: Answer(b"<html>"))
    with pytest.raises(ValueError, match="gave another file"):
        load_trace("azure-code", tmp_path)
    assert list(tmp_path.iterdir()) == []  # nothing that is wrong is kept


def test_listing(tmp_path):
    (tmp_path / TRACES["azure-code"].file).write_text("")
    lines = traces.listing(tmp_path)
    assert [line["name"] for line in lines] == list(TRACES)
    assert [line["here"] for line in lines] == [False, True, False, False]
    assert set(lines[0]) == {"name", "requests", "file", "here", "licence", "source"}


# Synthetic traces.


@each_trace
def test_synthetic_traces(name):
    model = TraceModel.load(name)
    frame = synthetic(name, 20_000, seed=3)
    assert list(frame.columns) == ["arrival", "prompt", "output"]
    assert len(frame) == 20_000
    assert frame["arrival"][0] == 0.0
    assert (frame["arrival"].diff().iloc[1:] > 0).all()
    for column in ("prompt", "output"):
        low, high = model.ranges[column]
        assert frame[column].dtype == np.int64
        assert frame[column].between(low, high).all()
    pd.testing.assert_frame_equal(frame, synthetic(name, 20_000, seed=3))
    assert not frame.equals(synthetic(name, 20_000, seed=4))
    assert len(synthetic(name)) == model.requests == TRACES[name].requests
    assert TraceModel.from_dict(json.loads(json.dumps(model.to_dict()))) == model


def test_synthetic_traces_follow_their_models():
    """Chi-square for tokens, a normal score for rank correlation; 1e-5 for all together."""
    p = []
    for name in TRACES:
        model, n = TraceModel.load(name), 20_000
        frame = synthetic(name, n, seed=7)
        for column in ("prompt", "output"):
            law, high = getattr(model, column), model.ranges[column][1]
            inside = np.floor(law.quantile(np.linspace(0.05, 0.95, 19)))
            edges = np.append(np.unique(inside[inside < high]), high)
            expected = np.diff(model.cdf(column, edges), prepend=0.0) * n
            counts = np.histogram(frame[column], np.append(-1, edges + 0.5))[0]
            p.append(stats.chisquare(counts, expected).pvalue)
        rank = stats.spearmanr(frame["prompt"], frame["output"]).statistic
        score = (np.arctanh(rank) - np.arctanh(model.quality["spearman"]["model"])) * np.sqrt(n / 2)
        p.append(2 * stats.norm.sf(abs(score)))
    assert min(p) > 1e-5 / len(p), p


@each_trace
def test_models_state_how_close_they_are(name):
    quality = TraceModel.load(name).quality
    assert max(quality["ks"].values()) < 0.05
    assert quality["spearman"]["model"] == pytest.approx(quality["spearman"]["trace"], abs=0.01)
    assert set(quality["dispersion"]) == {"1 s", "10 s", "60 s"}


def test_fit_finds_a_known_model(tmp_path):
    known = synthetic("mooncake-synthetic", 2_000, seed=1)
    model = fit(known, "again")
    assert model.rate == pytest.approx(1_999 / known["arrival"].iloc[-1], rel=1e-4)
    assert max(model.quality["ks"].values()) < 0.03
    assert model.correlation == pytest.approx(
        TraceModel.load("mooncake-synthetic").correlation, abs=0.08
    )
    model.save(tmp_path / "model.json")
    again = TraceModel.from_dict(json.loads((tmp_path / "model.json").read_text()))
    assert again == model
    pd.testing.assert_frame_equal(again.sample(50, 2), model.sample(50, 2))
    with refuses("trace=50 requests: a fit needs 100 or more"):
        fit(known.head(50))


def test_unknown_names():
    known = "azure-conversation, azure-code, mooncake-conversation, mooncake-synthetic"
    for act in (load_trace, synthetic, traces.download):
        with refuses(f"trace='gpt': unknown; known are {known}"):
            act("gpt")
    with refuses("fallback='guess': must be one of None, synthetic"):
        load_trace("azure-code", fallback="guess")
    with refuses("requests=0: must be a whole number, 1 or more"):
        synthetic("azure-code", 0)


# One's own requests.


@pytest.fixture
def file(tmp_path):
    def write(content, name="mine.csv"):
        path = tmp_path / name
        path.write_text(content)
        return path

    return write


def test_own_csv(file):
    path = file("when,in,out,who\n1500,10,3,a\n\n2500,20,0,b\n2500,5,7,c")
    frame = read_requests(
        path, arrival="when", prompt="in", output="out", unit="ms", extra={"who": "kind"}
    )
    assert frame["arrival"].tolist() == [0.0, 1.0, 1.0]
    assert frame["prompt"].tolist() == [10, 20, 5]
    assert frame["output"].tolist() == [3, 0, 7]
    assert frame["kind"].tolist() == ["a", "b", "c"]


def test_own_dates(file):
    path = file(
        "arrival,prompt,output\n2023-11-16 18:17:03.9799600,1,2\n2023-11-16T18:17:05Z,3,4\n"
    )
    assert read_requests(path, unit="date")["arrival"].tolist() == pytest.approx([0.0, 1.02004])
    path.write_text("arrival,prompt,output\n2023-11-16 18:17:03,1,2\n2023-11-,3,4\n")
    with refuses(
        f"file={path}, line 3: arrival='2023-11-' is not a date such as 2023-11-16 18:15:46.68"
    ):
        read_requests(path, unit="date")


def test_own_json_lines_and_frames(file):
    path = file('{"arrival": 3, "prompt": 5, "output": 6}\n\n', "mine.jsonl")
    assert read_requests(path)["prompt"].tolist() == [5]
    frame = pd.DataFrame({"arrival": [5, 7], "prompt": [1, 2], "output": [3, 4]})
    assert read_requests(frame, unit="min")["arrival"].tolist() == [0.0, 120.0]
    with refuses("frame, row 1: prompt=-2 must be a whole number of tokens, 0 or more"):
        read_requests(frame.assign(prompt=[1, -2]))


def test_requests_out_of_order_are_sorted_with_a_warning(file):
    path = file("arrival,prompt,output\n5,1,1\n3,2,2\n5,3,3\n4,4,4\n")
    with pytest.warns(UserWarning, match=r"mine.csv: 2 requests come before the one above them"):
        frame = read_requests(path)
    assert frame["arrival"].tolist() == [0, 1, 2, 2]
    assert frame["prompt"].tolist() == [2, 4, 1, 3]


BAD_FILES = {
    "": "file={}: is empty; a header and one line a row are expected",
    "arrival,prompt,output\n": "file={}: has no rows",
    "arrival,prompt\n1,2\n": "file={}: has no column output; it has arrival, prompt",
    "arrival,prompt,output\n1,2,3\n2,3": "file={}, line 3: '2,3' has 2 of 3 columns; "
    "was the file cut short?",
    "arrival,prompt,output\n1,2,3\nsoon,3,4": "file={}, line 3: arrival='soon' is not a number",
    "arrival,prompt,output\n1,2,3\n\n2,3,": "file={}, line 4: output='' is not a number",
    "arrival,prompt,output\n1,-2,3\n": "file={}, line 2: prompt='-2' must be a whole number of "
    "tokens, 0 or more",
    "arrival,prompt,output\n1,2,3.5\n": "file={}, line 2: output='3.5' must be a whole number of "
    "tokens, 0 or more",
    "arrival,prompt,output\nnan,2,3\n": "file={}, line 2: arrival='nan' must be a finite number",
    "arrival,prompt,output\n1,inf,3\n": "file={}, line 2: prompt='inf' must be a finite number",
}


@pytest.mark.parametrize("content", BAD_FILES)
def test_bad_files(file, content):
    path = file(content)
    with refuses(BAD_FILES[content].format(path)):
        read_requests(path)


GOOD_LINE = '{"arrival": 1, "prompt": 2, "output": 3}\n'
BAD_LINES = {
    "": "file={}: has no rows",
    GOOD_LINE + GOOD_LINE[:30]: "file={}, line 2: '" + GOOD_LINE[:30] + "' is not JSON; "
    "was the file cut short?",
    GOOD_LINE + "[1]\n": "file={}, line 2: '[1]' is not a JSON object",
    '{"arrival": 1}\n': "file={}, line 1: has no column prompt or output; it has arrival",
    '{"arrival": null, "prompt": 2, "output": 3}\n': "file={}, line 1: arrival=None must be "
    "a finite number",
    '{"arrival": 1, "prompt": 2, "output": -3}\n': "file={}, line 1: output=-3 must be a whole "
    "number of tokens, 0 or more",
}


@pytest.mark.parametrize("content", BAD_LINES)
def test_bad_json_lines(file, content):
    path = file(content, "mine.jsonl")
    with refuses(BAD_LINES[content].replace("file={}", f"file={path}")):
        read_requests(path)


def test_files_that_are_none(tmp_path):
    with refuses(f"file={tmp_path / 'no.csv'}: cannot be read (No such file or directory)"):
        read_requests(tmp_path / "no.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x81")
    with refuses(f"file={tmp_path / 'binary.csv'}: is not a text file"):
        read_requests(tmp_path / "binary.csv")
    with refuses("unit='days': must be one of s, ms, us, ns, min, h, date"):
        read_requests(tmp_path / "no.csv", unit="days")


def test_own_jobs(file):
    path = file("arrival,size,kind,note\n0,1.5,chat,x\n1,2,batch,y\n")
    frame = read_csv(path)
    assert list(frame.columns) == ["arrival", "size", "kind"]
    workload = Workload.from_frame(frame)
    assert workload.names == ("chat", "batch")
    assert workload.table(2).size.tolist() == [1.5, 2.0]
    path.write_text("arrival,size,kind,cost\n0,1,0,3\n1,1,1,4\n")
    assert Workload.from_frame(read_csv(path)).table(2).cost.tolist() == [3.0, 4.0]
    for content, message in {
        "arrival,length\n0,1\n": f"file={path}: has no column size; it has arrival, length",
        "arrival,size\n0,1\n1,big\n": f"file={path}, line 3: size='big' is not a number",
        "arrival,size\n0,1\n1": f"file={path}, line 3: '1' has 1 of 2 columns; "
        "was the file cut short?",
    }.items():
        path.write_text(content)
        with refuses(message):
            read_csv(path)


def test_spread_batches():
    times = np.array([0.0, 0.0, 3.0, 3.0, 3.0, 6.0])
    np.testing.assert_allclose(spread_batches(times, "even"), [0, 1.5, 3, 4, 5, 6])
    np.testing.assert_array_equal(spread_batches(times, "none"), times)
    spread = spread_batches(times, "random", seed=2)
    assert (np.diff(spread) > 0).all()
    assert spread[-1] == 6.0  # alone at its stamp, it stays
    np.testing.assert_array_equal(np.floor(spread / 3.0), np.floor(times / 3.0))
    assert spread_batches(np.array([1.0, 1.0]), "random").tolist() == [1.0, 1.0]
    with refuses("spread='odd': must be one of random, even, none"):
        spread_batches(times, "odd")


# From tokens to jobs.

TRACE = pd.DataFrame({"arrival": [0.0, 1.0], "prompt": [1000, 100], "output": [10, 40]})


def test_trace_workload():
    table = trace_workload(TRACE).table(9)
    np.testing.assert_allclose(table.size, [0.35, 1.01])
    assert table.arrival.tolist() == [0.0, 1.0]
    assert table.cost.tolist() == [1.0, 1.0]
    table = trace_workload(
        TRACE.assign(kind=["long", "short"]),
        prefill_per_token=0.001,
        decode_per_token=0,
        overhead=1,
        cost="prompt-and-twice-output",
        prediction="lognormal:sigma=1",
    ).table(9)
    np.testing.assert_allclose(table.size, [2.0, 1.1])
    assert table.cost.tolist() == [1020.0, 180.0]
    assert table.kind.tolist() == [0, 1]
    assert not np.array_equal(table.prediction, table.size)
    kv = trace_workload(TRACE, service="kv-token-time", step=1.0, cost="kv-token-steps").table(9)
    assert kv.size.tolist() == kv.cost.tolist() == [10_055.0, 4_820.0]
    own = trace_workload(TRACE, service=lambda prompt, output: prompt + 0.0 * output, load=0.5)
    assert own.table(9).size.tolist() == [1000.0, 100.0]
    assert own.load_on(3) == 0.5


def test_bad_trace_workloads():
    with refuses("trace: has no column output; it has arrival, prompt"):
        trace_workload(TRACE.drop(columns="output"))
    with refuses("service='gpu': must be one of linear, kv-token-time"):
        trace_workload(TRACE, service="gpu")
    with refuses("cost='euro': must be one of one, tokens, prompt, prompt-and-twice-output, "
                 "kv-token-steps"):  # fmt: skip
        trace_workload(TRACE, cost="euro")
    with refuses("parameter of linear='speed': must be one of prefill_per_token, "
                 "decode_per_token, overhead"):  # fmt: skip
        trace_workload(TRACE, speed=1.0)
    with refuses("decode_per_token=-1: must be a finite number, 0 or more"):
        trace_workload(TRACE, decode_per_token=-1)
    with refuses("size=0 in row 0: must be above 0"):
        trace_workload(TRACE, prefill_per_token=0, decode_per_token=0)
