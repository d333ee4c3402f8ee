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

  /// For each group of what was set apart: takes what is left for it, and visits its members, its level and how much that is.
  template <class Member, class Visit>
  static void for_each_group(std::span<Member> apart, CapRoom& room, Visit visit) {
    while (!apart.empty()) {
      const auto same = [&](const Member& m) { return m.group == apart.front().group; };
      const auto end = std::find_if_not(apart.begin(), apart.end(), same);
      const std::span<Member> group = apart.first(static_cast<std::size_t>(end - apart.begin()));
      apart = apart.subspan(group.size());
      const std::size_t level = group.front().group >> 32;
      const auto number = static_cast<std::uint32_t>(group.front().group);
      const double most = std::max(0.0, room.left_of(level, number));
      room.take_from(level, group.front().engine, most);
      visit(group, level, most);
    }
  }

 private:
  struct Use {
    double flow = 0, inner = 0, excess = 0;  ///< inner: by how much the groups in it exceed
    bool itself = false, seen = false;
  };
  std::vector<std::vector<Use>> use_;  ///< by level and group
};

}  // namespace signalbox::optimizer
