#include "tools/fleet_view/snapshot_diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace signalbox::fleet_view {
namespace {

using schema::RoutingSnapshot;
using Key = std::pair<std::string, std::string>;  ///< class, engine

bool same(double a, double b) {
  return std::abs(a - b) <= same_within * std::max({1.0, std::abs(a), std::abs(b)});
}

/// The rows of both sides by name; absent where a side has none.
template <class Row>
using Pairs = std::map<Key, std::array<std::optional<Row>, 2>>;

template <class Row, class KeyOf>
Pairs<Row> paired(const std::vector<Row>& before, const std::vector<Row>& after, KeyOf key_of) {
  Pairs<Row> out;
  for (const Row& row : before) out[key_of(row, 0)][0] = row;
  for (const Row& row : after) out[key_of(row, 1)][1] = row;
  return out;
}

template <class Row>
double number(const std::optional<Row>& row, double Row::*place) {
  return row ? (*row).*place : 0.0;
}
template <class Row>
Cell cell_of(const std::optional<Row>& row, double Row::*place) {
  return row ? Cell((*row).*place) : Cell();
}

class Difference {
 public:
  Difference(const RoutingSnapshot& before, const RoutingSnapshot& after, const RowNames& names)
      : sides_{&before, &after}, names_(names) {}

  Table terms() const {
    Table out{"changes", {{"term"}, {"before", 5}, {"after", 5}}, {}};
    const auto add = [&](std::string_view term, Cell before, Cell after) {
      if (before != after) out.rows.push_back({cell(term), std::move(before), std::move(after)});
    };
    const auto both = [&](std::string_view term, auto get) { add(term, get(*sides_[0]), get(*sides_[1])); };
    both("version", [](const RoutingSnapshot& s) { return cell(fmt::format("{}", s.version)); });
    both("kind", [](const RoutingSnapshot& s) { return cell(name_of(s.kind)); });
    both("policy", [](const RoutingSnapshot& s) { return cell(s.policy.brief()); });
    both("table", [](const RoutingSnapshot& s) { return cell(s.table.brief()); });
    both("objective", [](const RoutingSnapshot& s) { return cell(s.objective); });
    both("lower_bound", [](const RoutingSnapshot& s) { return cell(s.lower_bound); });
    both("gap", [](const RoutingSnapshot& s) { return cell(s.gap); });
    both("cause", [](const RoutingSnapshot& s) { return cell(s.cause); });
    return out;
  }

  Table weights() const {
    using Row = schema::WeightRow;
    Table out{"weights",
              {{"class"},
               {"engine"},
               {"before", 4},
               {"after", 4},
               {"change", 4},
               {"inflight_before", 2},
               {"inflight_after", 2}},
              {}};
    const auto key_of = [this](const Row& row, std::size_t side) {
      return Key(class_name(row.request_class, side), engine_name(row.engine, side));
    };
    for (const auto& [key, row] : paired(sides_[0]->weights, sides_[1]->weights, key_of)) {
      const double before = number(row[0], &Row::weight), after = number(row[1], &Row::weight);
      if (same(before, after)) continue;
      out.rows.push_back({key.first, key.second, before, after, after - before,
                          cell_of(row[0], &Row::planned_inflight), cell_of(row[1], &Row::planned_inflight)});
    }
    std::stable_sort(out.rows.begin(), out.rows.end(), [](const auto& a, const auto& b) {
      return std::abs(std::get<double>(a[4])) > std::abs(std::get<double>(b[4]));
    });
    return out;
  }

  Table admits() const {
    using Row = schema::AdmitRow;
    Table out{"admits",
              {{"class"}, {"admit_before", 3}, {"admit_after", 3}, {"rps_before", 2}, {"rps_after", 2}},
              {}};
    const auto key_of = [this](const Row& row, std::size_t side) {
      return Key(class_name(row.request_class, side), "");
    };
    for (const auto& [key, row] : paired(sides_[0]->admits, sides_[1]->admits, key_of)) {
      if (row[0] && row[1] && same(row[0]->admit, row[1]->admit) &&
          same(row[0]->planned_rps, row[1]->planned_rps))
        continue;
      out.rows.push_back({key.first, cell_of(row[0], &Row::admit), cell_of(row[1], &Row::admit),
                          cell_of(row[0], &Row::planned_rps), cell_of(row[1], &Row::planned_rps)});
    }
    return out;
  }

  Table prices() const {
    using Row = schema::PriceRow;
    Table out{"prices",
              {{"engine"},
               {"price_before", 4},
               {"price_after", 4},
               {"load_before", 3},
               {"load_after", 3},
               {"capacity_before", 3},
               {"capacity_after", 3},
               {"binding_before"},
               {"binding_after"}},
              {}};
    const auto key_of = [this](const Row& row, std::size_t side) {
      return Key(engine_name(row.engine, side), "");
    };
    const auto binding = [](const std::optional<Row>& row) {
      return row ? cell(name_of(row->binding)) : Cell();
    };
    for (const auto& [key, row] : paired(sides_[0]->prices, sides_[1]->prices, key_of)) {
      const bool unchanged = row[0] && row[1] && same(row[0]->price, row[1]->price) &&
                             same(row[0]->planned_load, row[1]->planned_load) &&
                             same(row[0]->capacity, row[1]->capacity) && row[0]->binding == row[1]->binding;
      if (unchanged) continue;
      out.rows.push_back({key.first, cell_of(row[0], &Row::price), cell_of(row[1], &Row::price),
                          cell_of(row[0], &Row::planned_load), cell_of(row[1], &Row::planned_load),
                          cell_of(row[0], &Row::capacity), cell_of(row[1], &Row::capacity), binding(row[0]),
                          binding(row[1])});
    }
    return out;
  }

 private:
  std::string engine_name(EngineIndex engine, std::size_t side) const {
    return names_.engine(sides_[side]->table, engine);
  }
  std::string class_name(ClassIndex request_class, std::size_t side) const {
    return names_.request_class(sides_[side]->policy, request_class);
  }
  std::array<const RoutingSnapshot*, 2> sides_;
  const RowNames& names_;
};

}  // namespace

std::vector<Table> difference(const RoutingSnapshot& before, const RoutingSnapshot& after,
                              const RowNames& names) {
  const Difference difference(before, after, names);
  return {difference.terms(), difference.weights(), difference.admits(), difference.prices()};
}

}  // namespace signalbox::fleet_view
