"""At twice what the fleet can do only those requests are refused that the policy gives up first."""

import collections

from fleet import example, wait_for
from load import Load, chat, unlike


def test_only_sheddable_requests_are_refused(new_fleet):
    config = example("laptop.toml")
    for engine in config["engine"]:
        engine["capacity_scale"] = engine.get("capacity_scale", 1.0) * 0.25
        engine["simulated"]["speed"] *= 0.25  # so that twice the capacity is a load that this machine can send
    fleet = new_fleet(config).up()
    urls = [fleet.url("router-east"), fleet.url("router-west")]
    batch = {"x-signalbox-tenant": "batch_nightly", "x-signalbox-criticality": "sheddable"}
    standard = Load(lambda n: chat(urls[n % 2], "m-small", unlike(n), 32), 4, seed=1)
    sheddable = Load(lambda n: chat(urls[n % 2], "m-small", unlike(n + 10**6), 32, headers=batch), 60, seed=2)
    wait_for("requests are refused", lambda: [a for a in sheddable.so_far() if a.status in (429, 503)], 60)
    wait_for("more load flows", lambda n=len(standard.so_far()): len(standard.so_far()) >= n + 40, 60)
    kept, shed = standard.stop(), sheddable.stop()
    assert not [a for a in kept if not a.good], [a for a in kept if not a.good][:3]
    reasons = collections.Counter(a.reason for a in shed if not a.good)
    assert set(reasons) <= {"shed_by_plan", "shed_by_limit", "queue_full", "queue_timeout"}, reasons
    assert sum(a.good for a in shed) > 0, "not everything that may be refused is"
