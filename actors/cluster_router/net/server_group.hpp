// Servers of several loops behind one port: one of them accepts, and each new connection goes to the one that has the fewest.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace signalbox::net {

class HttpServer;
class Loop;

class ServerGroup {
 public:
  struct Member {
    HttpServer& server;
    Loop& loop;
    std::atomic<std::size_t> connections{0};  ///< those on their way to it included
  };

  /// Before any of them accepts; it stays where it is.
  Member& add(HttpServer& server, Loop& loop) {
    members_.push_back(std::unique_ptr<Member>(new Member{server, loop}));
    return *members_.back();
  }
  /// The member that has the fewest connections; equals take turns. By the accepting loop only.
  Member& fewest() {
    Member* best = nullptr;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member& member = *members_[(turn_ + i) % members_.size()];
      if (best == nullptr || member.connections.load(std::memory_order_relaxed) <
                                 best->connections.load(std::memory_order_relaxed))
        best = &member;
    }
    ++turn_;
    return *best;
  }
  std::size_t connections() const {
    std::size_t sum = 0;
    for (const auto& member : members_) sum += member->connections.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  std::vector<std::unique_ptr<Member>> members_;
  std::size_t turn_ = 0;
};

}  // namespace signalbox::net
