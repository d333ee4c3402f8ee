#include "optimizer/solve/repair.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "optimizer/model/capped.hpp"

namespace signalbox::optimizer {
namespace {

/// Loads are kept this much, relatively, below the ceiling, so that summing them in another order does not
/// exceed it.
constexpr double safety = 1e-10;
/// Refused rates below this share of the demand are not worth a move.
constexpr double negligible = 1e-9;
constexpr double infinite = std::numeric_limits<double>::infinity();

class Repair {
 public:
  Repair(const Problem& problem, const Columns& columns, Flows& flows)
      : problem_(problem), columns_(columns), flows_(flows), room_(problem) {
    row_of_.resize(columns.pairs.size());
    for (std::size_t s = 0; s < problem.sources.size(); ++s)
      for (std::uint32_t k = columns.begin[s]; k < columns.begin[s + 1]; ++k)
        row_of_[k] = static_cast<std::uint32_t>(s);
    marginal_.resize(problem.engines.size());
    for (std::size_t e = 0; e < marginal_.size(); ++e) count_marginal(e);
  }

  void run(int rounds) {
    trim();
    serve_all();
    while (rounds-- > 0 && displace(refused())) serve_all();
  }

 private:
  double ceiling(std::size_t e) const { return problem_.engines[e].curve.ceiling * (1.0 - safety); }
  double open_shed(std::size_t s) const {
    return problem_.sources[s].demand_per_s * (1.0 - problem_.sources[s].floor_fraction);
  }
  /// What may still be refused at the lower cost; 0 once that is within rounding of the floor.
  double open_room(std::size_t s) const {
    const double room = open_shed(s) - flows_.shed_per_s[s];
    return room > negligible * problem_.sources[s].demand_per_s ? room : 0.0;
  }
  /// What refusing one more request, and what serving one refused request, is worth.
  double cost_of_refusing(std::size_t s) const {
    const Source& source = problem_.sources[s];
    return source.floor_fraction > 0.0 && open_room(s) <= 0.0 ? source.floor_shed_cost_s : source.shed_cost_s;
  }
  double saved_by_serving(std::size_t s) const {
    const Source& source = problem_.sources[s];
    return source.floor_fraction > 0.0 && flows_.shed_per_s[s] > open_shed(s) ? source.floor_shed_cost_s
                                                                              : source.shed_cost_s;
  }
  void count_marginal(std::size_t e) {
    const bool room = ceiling(e) - flows_.load[e] > 1e-9 * ceiling(e);
    marginal_[e] = room ? problem_.engines[e].curve.marginal(flows_.load[e]) : infinite;
  }
  /// How much more the pair can take until one request more there costs `level`.
  double rate_until(const Pair& pair, double level) const {
    const std::size_t e = pair.engine.at();
    const double load = problem_.engines[e].curve.load_at((level - pair.cost_s) / pair.work_s);
    return (std::min(load, ceiling(e)) - flows_.load[e]) / pair.work_s;
  }
  void move(std::uint32_t k, double rate) {  // from shed to the column; negative: back
    const std::uint32_t s = row_of_[k];
    flows_.flow_per_s[k] = std::max(0.0, flows_.flow_per_s[k] + rate);
    flows_.shed_per_s[s] = std::max(0.0, flows_.shed_per_s[s] - rate);
    const Pair& pair = columns_.pairs[k];
    flows_.load[pair.engine.at()] = std::max(0.0, flows_.load[pair.engine.at()] + rate * pair.work_s);
    count_marginal(pair.engine.at());
    if (room_.source() == s) room_.take(pair.engine.value, rate);
  }

  /// What the caps of a source, beside its flows, let go to this engine.
  double room(std::uint32_t s, EngineIndex e) {
    if (!room_.binds(s)) return infinite;
    if (room_.source() != s) {
      room_.open(s);
      for (std::uint32_t k = columns_.begin[s]; k < columns_.begin[s + 1]; ++k)
        room_.take(columns_.pairs[k].engine.value, flows_.flow_per_s[k]);
    }
    return room_.left(e.value);
  }

  /// Of each of these engines the columns with flow.
  void index_engines(const std::vector<char>& wanted) {
    begin_of_.assign(problem_.engines.size() + 1, 0);
    std::vector<std::uint32_t> found;
    for (std::uint32_t k = 0; k < columns_.pairs.size(); ++k) {
      const std::uint32_t e = columns_.pairs[k].engine.value;
      if (!wanted[e] || flows_.flow_per_s[k] <= 0.0) continue;
      found.push_back(k);
      ++begin_of_[e + 1];
    }
    std::partial_sum(begin_of_.begin(), begin_of_.end(), begin_of_.begin());
    columns_of_.resize(found.size());
    std::vector<std::uint32_t> next(begin_of_);
    for (const std::uint32_t k : found) columns_of_[next[columns_.pairs[k].engine.at()]++] = k;
  }
  std::span<const std::uint32_t> columns_of(std::size_t e) const {
    return std::span(columns_of_).subspan(begin_of_[e], begin_of_[e + 1] - begin_of_[e]);
  }

  /// Part of a column's flow that can be refused at one cost.
  struct Slice {
    double cost_per_work, rate;
    std::uint32_t column;
  };

  void trim() {
    std::vector<char> over(problem_.engines.size());
    for (std::size_t e = 0; e < over.size(); ++e) over[e] = flows_.load[e] > ceiling(e);
    if (std::find(over.begin(), over.end(), 1) == over.end()) return;
    index_engines(over);
    for (std::size_t e = 0; e < over.size(); ++e) {
      if (!over[e]) continue;
      slices_.clear();
      for (const std::uint32_t k : columns_of(e)) {
        const Source& source = problem_.sources[row_of_[k]];
        const double flow = flows_.flow_per_s[k], work = columns_.pairs[k].work_s;
        const double open = source.floor_fraction > 0.0 ? std::min(flow, open_room(row_of_[k])) : flow;
        if (open > 0.0) slices_.push_back({source.shed_cost_s / work, open, k});
        if (flow > open) slices_.push_back({source.floor_shed_cost_s / work, flow - open, k});
      }
      std::stable_sort(slices_.begin(), slices_.end(),
                       [](const Slice& a, const Slice& b) { return a.cost_per_work < b.cost_per_work; });
      for (const Slice& slice : slices_) {
        const double excess = flows_.load[e] - ceiling(e);
        if (excess <= 0.0) break;
        move(slice.column, -std::min(slice.rate, excess / columns_.pairs[slice.column].work_s));
      }
      flows_.load[e] = std::min(flows_.load[e], ceiling(e));
    }
  }

  void serve_all() {
    for (const std::uint32_t s : refused()) serve(s);
  }

  /// Gives refused demand to the row's engines that have room and cost less than refusing, cheapest first.
  void serve(std::uint32_t s) {
    const std::uint32_t first = columns_.begin[s], last = columns_.begin[s + 1];
    for (int step = 0; step < 32 && flows_.shed_per_s[s] > negligible * problem_.sources[s].demand_per_s;
         ++step) {
      std::uint32_t best = last;
      double cost = saved_by_serving(s), second = cost;
      for (std::uint32_t k = first; k < last; ++k) {
        const double c =
            columns_.pairs[k].cost_s + columns_.pairs[k].work_s * marginal_[columns_.pairs[k].engine.value];
        if (c >= second || room(s, columns_.pairs[k].engine) <= negligible * problem_.sources[s].demand_per_s)
          continue;
        if (c < cost)
          second = cost, cost = c, best = k;
        else
          second = std::min(second, c);
      }
      if (best == last) return;
      const Pair& pair = columns_.pairs[best];
      const double until_second = std::max(rate_until(pair, second), 0.05 * flows_.shed_per_s[s]);
      const double over = flows_.shed_per_s[s] - open_shed(s);
      const double tier =
          problem_.sources[s].floor_fraction > 0.0 && over > 0.0 ? over : flows_.shed_per_s[s];
      const double worth = rate_until(pair, saved_by_serving(s));
      if (!(worth > 0.0)) return;
      move(best, std::min({tier, until_second, worth, room(s, pair.engine)}));
    }
  }

  /// The sources that are refused something, the dearest first.
  std::vector<std::uint32_t> refused() const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t s = 0; s < problem_.sources.size(); ++s)
      if (flows_.shed_per_s[s] > negligible * problem_.sources[s].demand_per_s) out.push_back(s);
    std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
      return saved_by_serving(a) > saved_by_serving(b);
    });
    return out;
  }

  /// What refusing a second of the work on an engine costs at least: who would give way first.
  double least_given_up(std::size_t e) const {
    double least = infinite;
    for (const std::uint32_t k : columns_of(e))
      if (flows_.flow_per_s[k] > 0.0)
        least = std::min(
            least, (cost_of_refusing(row_of_[k]) - columns_.pairs[k].cost_s) / columns_.pairs[k].work_s);
    return least;
  }

  /// A full engine serves whoever is dearer to refuse. True if any place changed hands.
  bool displace(const std::vector<std::uint32_t>& refused) {
    if (refused.empty()) return false;
    bool moved = false;
    std::vector<char> wanted(problem_.engines.size());
    for (const std::uint32_t s : refused)
      for (std::uint32_t k = columns_.begin[s]; k < columns_.begin[s + 1]; ++k)
        wanted[columns_.pairs[k].engine.value] = 1;
    index_engines(wanted);
    given_up_.resize(wanted.size());
    for (std::size_t e = 0; e < wanted.size(); ++e)
      if (wanted[e] != 0) given_up_[e] = least_given_up(e);
    for (const std::uint32_t s : refused)
      for (std::uint32_t k = columns_.begin[s]; k < columns_.begin[s + 1]; ++k) {
        const Pair& mine = columns_.pairs[k];
        const std::size_t e = mine.engine.at();
        if ((saved_by_serving(s) - mine.cost_s) / mine.work_s <= given_up_[e]) continue;
        if (flows_.shed_per_s[s] <= negligible * problem_.sources[s].demand_per_s) break;
        for (const std::uint32_t other : columns_of(e)) moved |= take_place(s, k, other);
        given_up_[e] = least_given_up(e);
      }
    return moved;
  }

  /// Source s, part of which is refused, takes the place of another column on its engine if that is cheaper to refuse.
  bool take_place(std::uint32_t s, std::uint32_t k, std::uint32_t other) {
    const std::uint32_t r = row_of_[other];
    if (r == s || flows_.flow_per_s[other] <= 0.0) return false;
    if (flows_.shed_per_s[s] <= negligible * problem_.sources[s].demand_per_s) return false;
    const Pair& mine = columns_.pairs[k];
    const Pair& theirs = columns_.pairs[other];
    const double gain = (saved_by_serving(s) - mine.cost_s) / mine.work_s -
                        (cost_of_refusing(r) - theirs.cost_s) / theirs.work_s;
    if (gain <= 0.0) return false;
    const double theirs_most = problem_.sources[r].floor_fraction > 0.0 && open_room(r) > 0.0
                                   ? open_room(r)
                                   : flows_.flow_per_s[other];
    const double over = flows_.shed_per_s[s] - open_shed(s);
    const double mine_most =
        problem_.sources[s].floor_fraction > 0.0 && over > 0.0 ? over : flows_.shed_per_s[s];
    const double work = std::min({flows_.flow_per_s[other] * theirs.work_s, theirs_most * theirs.work_s,
                                  std::min(mine_most, room(s, mine.engine)) * mine.work_s});
    move(other, -work / theirs.work_s);
    move(k, work / mine.work_s);
    return work > negligible * flows_.load[mine.engine.at()];
  }

  const Problem& problem_;
  const Columns& columns_;
  Flows& flows_;
  std::vector<std::uint32_t> row_of_;
  std::vector<std::uint32_t> begin_of_, columns_of_;
  std::vector<double> given_up_;  ///< by engine
  std::vector<double> marginal_;  ///< by engine: of one more second of work; infinite where there is no room
  std::vector<Slice> slices_;
  CapRoom room_;  ///< of the source that was last asked for
};

}  // namespace

void repair(const Problem& problem, const Columns& columns, Flows& flows, int rounds) {
  Repair(problem, columns, flows).run(rounds);
}

double objective_of(const Problem& problem, const Columns& columns, const Flows& flows) {
  const bool churn = !problem.reference_per_s.empty() && problem.churn_cost_s > 0.0;
  double sum = 0.0;
  for (std::size_t e = 0; e < problem.engines.size(); ++e)
    if (flows.load[e] > 0.0) sum += problem.engines[e].curve.cost(flows.load[e]);
  for (std::size_t k = 0; k < columns.pairs.size(); ++k) {
    sum += columns.pairs[k].cost_s * flows.flow_per_s[k];
    if (churn) sum += problem.churn_cost_s * std::max(0.0, columns.reference_per_s[k] - flows.flow_per_s[k]);
  }
  for (std::size_t s = 0; s < problem.sources.size(); ++s) {
    const Source& source = problem.sources[s];
    const double open = source.demand_per_s * (1.0 - source.floor_fraction);
    sum += source.shed_cost_s * std::min(flows.shed_per_s[s], open) +
           source.floor_shed_cost_s * std::max(0.0, flows.shed_per_s[s] - open);
  }
  return sum;
}

}  // namespace signalbox::optimizer
