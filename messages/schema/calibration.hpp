// What plans expected, beside what came.
#pragma once

#include <string>
#include <vector>

#include "messages/schema/field.hpp"
#include "messages/schema/info.hpp"

namespace signalbox::schema {

/// What was expected of one class on one engine, and what came: means over the requests of the window.
struct CalibrationRow {
  static constexpr bool columnar = true;
  ClassIndex request_class;
  EngineIndex engine;
  std::uint64_t requests = 0;
  double expected_first_byte_s = 0;
  double first_byte_s = 0;
  double expected_latency_s = 0;
  double latency_s = 0;
  static constexpr auto fields() {
    using T = CalibrationRow;
    return std::tuple{
        field(1, "class", &T::request_class, "row of the class"),
        field(2, "engine", &T::engine, "row of the engine"),
        field(3, "requests", &T::requests, "requests served").unit("requests"),
        field(4, "expected_first_byte_s", &T::expected_first_byte_s, "time to the first byte, by the plans")
            .unit("s")
            .within(0, 1e9),
        field(5, "first_byte_s", &T::first_byte_s, "as it came").unit("s").within(0, 1e9),
        field(6, "expected_latency_s", &T::expected_latency_s, "end-to-end time, by the plans")
            .unit("s")
            .within(0, 1e9),
        field(7, "latency_s", &T::latency_s, "as it came").unit("s").within(0, 1e9)};
  }
};

/// The same of an engine's load, in engine seconds per second.
struct CalibratedLoadRow {
  static constexpr bool columnar = true;
  EngineIndex engine;
  double expected_load = 0;
  double load = 0;
  static constexpr auto fields() {
    using T = CalibratedLoadRow;
    return std::tuple{
        field(1, "engine", &T::engine, "row of the engine"),
        field(2, "expected_load", &T::expected_load, "engine time that plans expected to be asked of it")
            .unit("s/s")
            .within(0, 1e6),
        field(3, "load", &T::load, "engine time of the requests that it served").unit("s/s").within(0, 1e6)};
  }
};

/// How plans of late compare with what came of them.
struct Calibration {
  static constexpr MessageInfo info{24,
                                    1,
                                    "calibration",
                                    "calibration/<optimizer>/",
                                    "latencies and loads that plans expected, and those that came",
                                    {Role::global_optimizer},
                                    Protection::mac,
                                    60s,
                                    8 << 20};

  Digest policy;
  Digest table;
  Duration window{};
  double ratio = 1;
  std::uint64_t windows_off = 0;
  double headroom = 1;
  std::vector<CalibrationRow> rows;
  std::vector<CalibratedLoadRow> loads;
  static constexpr auto fields() {
    using T = Calibration;
    return std::tuple{
        field(1, "policy", &T::policy, "hash of the policy whose classes the rows index"),
        field(2, "table", &T::table, "hash of the fleet table that the rows index"),
        field(3, "window", &T::window, "the time that the rows cover").unit("s").within(0, 1e5),
        field(4, "ratio", &T::ratio, "end-to-end time of all requests over what was expected")
            .unit("ratio")
            .within(0, 1e9),
        field(5, "windows_off", &T::windows_off, "windows in a row in which it was over 1.2"),
        field(6, "headroom", &T::headroom, "plans load engines up to this share of the policy's ceiling")
            .unit("share")
            .within(0, 1),
        field(7, "rows", &T::rows, "by class and engine").at_most(500'000),
        field(8, "loads", &T::loads, "by engine").at_most(20'000)};
  }
};

}  // namespace signalbox::schema
