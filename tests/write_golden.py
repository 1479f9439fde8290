"""Write tests/golden/digests.json: new classes and raised revisions only; anything else that changed is refused."""

import json
import runpy
import sys
from pathlib import Path

tests = runpy.run_path(str(Path(__file__).parent / "test_golden.py"))
measured = {name: tests["measured"](name) for name in tests["NAMES"]}
golden = json.loads(tests["GOLDEN"].read_text()) if tests["GOLDEN"].exists() else {}
unannounced = [
    name
    for name, now in measured.items()
    if name in golden and now != golden[name] and now["revision"] == golden[name]["revision"]
]
if unannounced:
    sys.exit(f"behaviour changed under the same revision, raise it first: {', '.join(unannounced)}")
tests["GOLDEN"].write_text(json.dumps(measured, indent=2, sort_keys=True) + "\n")
