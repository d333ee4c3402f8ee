"""A load tool of the field, locust, sees a router as any server: no failure, streams whole, every request through to an engine."""

import json
import subprocess
import sys
from collections import Counter

from fleet import ROOT, size


def test_locust_sees_no_failure(laptop):
    seconds = size("load_tool_s")
    while any(rows["stream"] <= 5 or not rows["whole"] for rows in counted(laptop, seconds)):
        seconds *= 2  # a slow machine takes longer for as many
        assert seconds < 100, "hardly a request was made"


def counted(laptop, seconds: int) -> list[Counter]:
    """How many requests of each kind there were, by router: none of them failed."""
    users = ROOT / "tests/cluster/locust_users.py"
    processes = [subprocess.Popen([sys.executable, "-m", "locust", "--headless", "--json", "--only-summary", "-f", str(users), "-H", laptop.url(router),
                                   "-u", "6", "-r", "6", "-t", f"{seconds}s", "--stop-timeout", "30"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for router in ("router-east", "router-west")]
    counts = []
    for process in processes:
        out, log = process.communicate(timeout=seconds + 120)
        rows = {row["name"]: row for row in json.loads(out[out.index("["):])}
        print({name: (row["num_requests"], row["num_failures"]) for name, row in rows.items()})
        assert process.returncode == 0, log[-3000:]
        assert set(rows) <= {"whole", "stream", "first token"}
        assert all(row["num_failures"] == 0 for row in rows.values()), log[-3000:]
        counts.append(Counter({name: row["num_requests"] for name, row in rows.items()}))
        assert counts[-1]["stream"] == counts[-1]["first token"]
    return counts
