// Which capped groups of a row get too much.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "optimizer/model/capped.hpp"

namespace signalbox::optimizer {

/// A row's flows under caps that lie in one another, by decomposition: balanced without the caps first; the groups that then exceed
/// theirs by most, all together, are at them in the optimum as well (Fujishige 1980, for separable convex costs). So each of them is
/// balanced by itself, with what it may get, and the rest anew.
class Overfull {
 public:
  static constexpr std::uint64_t none = UINT64_MAX;
  static std::size_t level_of(std::uint64_t group) { return group >> 32; }
  static std::uint32_t number_of(std::uint64_t group) { return static_cast<std::uint32_t>(group); }

  explicit Overfull(const Problem& problem) {
    for (const ShareCap& cap : problem.caps)
      use_.emplace_back(cap.group.empty() ? 0 : *std::ranges::max_element(cap.group) + 1);
  }

  /// Moves the members whose groups, of the first `levels` caps, get more than `room` has left for them to the end, group by group,
  /// and says how many are before them. Where groups within a group exceed by more together than it does itself, they are taken and
  /// not it. A Member has engine, flow and, for scratch, group.
  template <class Member>
  std::size_t set_apart(std::span<Member> part, const CapRoom& room, std::size_t levels, double least) {
    const auto use = [&](std::size_t l, const Member& m) -> Use& { return use_[l][room.group(l, m.engine)]; };
    for (std::size_t l = 0; l < levels; ++l)
      for (const Member& m : part) use(l, m) = {};
    for (std::size_t l = 0; l < levels; ++l)
      for (const Member& m : part) use(l, m).flow += m.flow;
    for (std::size_t l = 0; l < levels; ++l)
      for (const Member& m : part) {
        Use& group = use(l, m);
        if (group.seen) continue;
        const double itself = group.flow - room.left_of(l, room.group(l, m.engine));
        group = {group.flow, group.inner, std::max(itself, group.inner),
                 itself > least && itself >= group.inner, true};
        if (l + 1 < levels && group.excess > least) use(l + 1, m).inner += group.excess;
      }
    for (Member& m : part) {
      m.group = none;
      for (std::size_t l = levels; l-- > 0 && use(l, m).excess > least;)
        if (use(l, m).itself) {
          m.group = (std::uint64_t{l} << 32) | room.group(l, m.engine);
          break;
        }
    }
    const auto rest =
        std::stable_partition(part.begin(), part.end(), [](const Member& m) { return m.group == none; });
    std::stable_sort(rest, part.end(), [](const Member& a, const Member& b) { return a.group < b.group; });
    return static_cast<std::size_t>(rest - part.begin());
  }

  /// The first group of what was set apart.
  template <class Member>
  static std::span<Member> first_group(std::span<Member> apart) {
    const auto same = [&](const Member& m) { return m.group == apart.front().group; };
    return apart.first(
        static_cast<std::size_t>(std::find_if_not(apart.begin(), apart.end(), same) - apart.begin()));
  }

 private:
  struct Use {
    double flow = 0, inner = 0, excess = 0;  ///< inner: by how much the groups in it exceed
    bool itself = false, seen = false;
  };
  std::vector<std::vector<Use>> use_;  ///< by level and group
};

}  // namespace signalbox::optimizer
