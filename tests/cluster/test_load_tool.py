"""A load tool of the field, locust, sees a router as any server: no failure, streams whole, every request through to an engine."""

import json
import subprocess
import sys

from fleet import ROOT, size


def test_locust_sees_no_failure(laptop):
    seconds = size("load_tool_s")
    users = ROOT / "tests/cluster/locust_users.py"
    processes = [subprocess.Popen([sys.executable, "-m", "locust", "--headless", "--json", "--only-summary", "-f", str(users), "-H", laptop.url(router),
                                   "-u", "6", "-r", "6", "-t", f"{seconds}s", "--stop-timeout", "30"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                 for router in ("router-east", "router-west")]
    for process in processes:
        out, log = process.communicate(timeout=seconds + 120)
        rows = {row["name"]: row for row in json.loads(out[out.index("["):])}
        print({name: (row["num_requests"], row["num_failures"]) for name, row in rows.items()})
        assert process.returncode == 0, log[-3000:]
        assert set(rows) == {"whole", "stream", "first token"}
        assert all(row["num_failures"] == 0 for row in rows.values()), log[-3000:]
        assert rows["stream"]["num_requests"] == rows["first token"]["num_requests"] > 5
