"""Limits on how a class is divided, on real processes: the plan keeps them where they bind, and a policy that the fleet cannot keep is refused."""

from fleet import EXAMPLES, example, wait_for
from load import Load, bad, chat, unlike

LIMITS = "  load(engine) <= 0.85 * capacity\n"
# What the east asks of m-large goes to the west's one engine, which is the fastest, as far as nothing forbids it.
BINDING = LIMITS + "  weight(engine) <= 0.6\n  weight(region) <= 0.7\n  spread chat >= 3 engines\n"


def small_fleet() -> dict:
    """The laptop fleet without what is there twice."""
    config = example("laptop.toml")
    config["bus"] = config["bus"][:1]
    config["process"] = [p for p in config["process"] if p["id"] != "optimizer-2"]
    return config


def policy(version: int, limits: str) -> str:
    text = (EXAMPLES / "laptop.policy").read_text()
    changed = text.replace("version 1 ", f"version {version} ", 1).replace(LIMITS, limits)
    assert limits in changed
    return changed


def region_of(fleet, engine: str) -> str:
    home = next(row["cluster"] for row in fleet.config["engine"] if row["name"] == engine)
    return next(row["region"] for row in fleet.config["cluster"] if row["name"] == home)


def rows(fleet) -> dict[tuple[str, str], dict[str, float]]:
    """(cluster, class) -> engine -> weight, of the plan in force."""
    out = {}
    for row in fleet.inspect("snapshot")["weights"]:
        out.setdefault((row["cluster"], row["class"]), {})[row["engine"]] = row["weight"]
    return out


def by_region(fleet, row: dict[str, float]) -> dict[str, float]:
    out = {}
    for engine, weight in row.items():
        out[region_of(fleet, engine)] = out.get(region_of(fleet, engine), 0.0) + weight
    return out


def in_force(fleet) -> list[tuple]:
    return [(row["name"], row["version"], row["hash"]) for row in fleet.inspect("policy")["policy"]]


def versions(fleet) -> set[str]:
    """Of the snapshots in force."""
    return {row["version"] for row in fleet.inspect("snapshot")["snapshots"]}


def keeps(fleet, version: int) -> dict | None:
    """The rows of a plan of that policy, if they keep the binding limits; they are looked at as they are published."""
    if [row["version"] for row in fleet.inspect("policy")["policy"]] != [version]:
        return None
    found = rows(fleet)
    if len(found) != 8 or any(abs(sum(row.values()) - 1) > 1e-3 for row in found.values()):
        return None
    for row in found.values():
        if max(row.values()) > 0.6 + 1e-3 or max(by_region(fleet, row).values()) > 0.7 + 1e-3:
            return None
    return found if all(min(found[c, "chat"].get(e, 0) for e in ("e1", "e2", "w1")) >= 0.05 - 1e-3 for c in ("east", "west")) else None


def test_limits_bind_and_a_policy_that_cannot_be_kept_is_refused(new_fleet):
    fleet = new_fleet(small_fleet(), policy=policy(1, LIMITS)).up()
    url = fleet.url("router-east")
    load = Load(lambda n: chat(url, ("m-large", "m-small")[n % 2], unlike(n), 16), 6.0)
    fleet.on_down.append(load.stop)
    wait_for("the fastest engine gets more than the limits will allow", lambda: rows(fleet).get(("east", "chat"), {}).get("w1", 0) > 0.75, 120)

    file = fleet.folder / "fleet.policy"
    file.write_text(policy(2, BINDING))
    assert "version 2 is in force" in fleet.signalbox("order", "reload", "keeper", "--wait", "30").stdout
    wait_for("the plan keeps the limits", lambda: keeps(fleet, 2), 120)
    said = wait_for("the plan says where they bind", lambda: [
        row for row in fleet.inspect("weights", "--cluster", "east")["limits"] if row["class"] == "chat" and row["engine"] == "w1" and row["held"] == "yes" and (row["price_s"] or 0) > 0], 120)
    assert {row["limit"] for row in said} <= {"weight_cap", "domain_cap", "spread"}, said

    before = wait_for("the policy is heard", lambda: in_force(fleet), 60)
    file.write_text(policy(3, BINDING.replace("3 engines", "3 engines, 4 racks")))
    refused = fleet.signalbox("order", "reload", "keeper", "--wait", "30", check=False)
    assert refused.returncode == 1
    assert "spreads class 'chat' over 4 engines; 3 may serve it" in refused.stdout, refused.stdout
    file.write_text(policy(4, BINDING.replace("weight(engine) <= 0.6", "weight(engine) <= 0.3")))
    refused = fleet.signalbox("order", "reload", "keeper", "--wait", "30", check=False)
    assert refused.returncode == 1 and "take only" in refused.stdout, refused.stdout
    file.write_text(policy(4, BINDING + "  capacity(batch, cluster west) >= 1 * demand\n"))
    refused = fleet.signalbox("order", "reload", "keeper", "--wait", "30", check=False)
    assert refused.returncode == 1 and "wants 20000 tok/s for class 'batch'" in refused.stdout, refused.stdout
    assert wait_for("the policy is heard", lambda: in_force(fleet), 60) == before

    plans = versions(fleet)
    wait_for("plans go on under the old policy", lambda: versions(fleet) - plans and keeps(fleet, 2), 120)
    file.write_text(policy(5, LIMITS))
    assert "version 5 is in force" in fleet.signalbox("order", "reload", "keeper", "--wait", "30").stdout
    wait_for("nothing holds it back any more", lambda: rows(fleet).get(("east", "chat"), {}).get("w1", 0) > 0.75, 120)
    answers = load.so_far()
    assert len(bad(answers)) <= 0.1 * len(answers), bad(answers)[:5]  # a machine short of CPU refuses a few
