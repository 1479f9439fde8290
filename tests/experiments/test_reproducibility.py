"""A real study gives the same bytes whatever the hash seed, the number of workers and the order in which arms run."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SCRIPT = """
import sys
import experiments
from experiments import cli
experiments.__path__.append({here!r})
sys.argv = ["stagecraft", *sys.argv[1:]]
if __name__ == "__main__":
    cli.main()
"""


def run(script: Path, store: Path, hash_seed: int, *options: str) -> None:
    subprocess.run(
        [sys.executable, str(script), "run", "e99", "--scale", "full", "--store", str(store), "--no-report", *options],
        check=True,
        capture_output=True,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
    )


def contents(store: Path) -> dict[str, str]:
    """Digest of every scientific file; times and versions live in the ledgers and records."""
    return {
        str(file.relative_to(store)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(store.glob("artifacts/*/*/*"))
        if file.name not in ("record.json", "ledger.json")
    }


def test_hash_seed_workers_and_choice_of_arms_change_no_byte(tmp_path):
    script = tmp_path / "drive.py"
    script.write_text(SCRIPT.format(here=str(HERE)))
    run(script, tmp_path / "one", 1, "--workers", "1")
    run(script, tmp_path / "two", 2, "--workers", "2", "--only", "taught")
    everything, part = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert any(name.endswith("model.safetensors") for name in part)
    assert part.items() <= everything.items()
