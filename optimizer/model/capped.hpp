// Caps on shares of a source's requests, and what a problem costs at least under them.
//
// The caps bind flows of one source only, so the dual keeps one price per engine: at given prices each source fills its engines by cost,
// up to the caps. Where these lie in one another - an engine in a rack in a cluster - the flows that keep them are a
// polymatroid, and filling the cheapest first is optimal (Edmonds 1970).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "optimizer/model/problem.hpp"

namespace signalbox::optimizer {

/// Whether each group of `inner` lies in one group of `outer`; both are of the same engines.
bool lies_in(const ShareCap& inner, const ShareCap& outer);
/// These caps without those whose groups do not contain the ones before them: what a problem may hold.
std::vector<ShareCap> nested(std::vector<ShareCap> caps);

/// What a problem's caps leave of one source at a time, in requests/s.
class CapRoom {
 public:
  static constexpr std::uint32_t nobody = UINT32_MAX;

  explicit CapRoom(const Problem& problem);

  std::size_t levels() const { return problem_->caps.size(); }
  /// Whether the source is bound: its caps have room for all of its demand.
  bool binds(std::size_t source) const { return !binds_.empty() && binds_[source] != 0; }
  std::size_t source() const { return source_; }

  /// From now on of this source, none of whose requests are placed.
  void open(std::size_t source);
  /// What may still go to the engine; infinite for nobody and if the source is not bound.
  double left(std::uint32_t engine) const;
  void take(std::uint32_t engine, double rate) { take_from(0, engine, rate); }
  /// Places requests in the engine's groups of this level and above.
  void take_from(std::size_t level, std::uint32_t engine, double rate);

  std::uint32_t group(std::size_t level, std::uint32_t engine) const {
    return problem_->caps[level].group[engine];
  }
  double left_of(std::size_t level, std::uint32_t group) const { return left_[level][group]; }

 private:
  bool fits(std::size_t source);

  const Problem* problem_;
  std::vector<char> binds_;                ///< by source; empty without caps
  std::vector<std::vector<double>> left_;  ///< by level and group
  std::size_t source_ = SIZE_MAX;
  bool bound_ = false;  ///< the source at hand is
};

/// What a source's demand costs at least at given prices.
struct CappedRow {
  double cost = 0;  ///< seconds of latency per second
  double last = 0;  ///< of the dearest request that is placed or refused, seconds
};

/// Prices are by EngineIndex; of engines without a ceiling they do not matter.
class CappedRows {
 public:
  explicit CappedRows(const Problem& problem) : problem_(problem), room_(problem) {}
  CappedRow value(std::size_t source, std::span<const double> price);
  bool binds(std::size_t source) const { return room_.binds(source); }

 private:
  struct Way {
    double cost_s, most_per_s;
    std::uint32_t engine;
  };
  static bool dearer(const Way& a, const Way& b);
  double add_pair(std::uint32_t pair, std::span<const double> price);

  const Problem& problem_;
  CapRoom room_;
  std::vector<Way> ways_;
};

}  // namespace signalbox::optimizer
