// The optimizer's end of `signalbox-solver`: a process of its own, so that a crash in a numerical library, a
// runaway solve or an exhausted memory costs one period and not the leader, and so that the process that
// verifies and signs holds no numerical code.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/time.hpp"
#include "optimizer/wire/wire.hpp"

namespace signalbox::optimizer {

/// Why a solve brought no plan.
enum class SolverFault : std::uint8_t { not_started, crashed, timed_out, bad_reply, refused };
std::string_view to_string(SolverFault fault);
std::string_view explain(SolverFault fault);

struct SolverFailure {
  SolverFault fault = SolverFault::crashed;
  std::string text;  ///< what happened, with numbers, for the operator
};

using SolverOutcome = tl::expected<Plan, SolverFailure>;

/// Sanitizers map terabytes of shadow: built with one, the child has no limit on its memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool limits_memory = false;
#else
inline constexpr bool limits_memory = true;
#endif

struct SolverChildOptions {
  std::string program;                          ///< path of signalbox-solver
  std::uint64_t memory_bytes = 2ull << 30;      ///< address space of the child
  double cpu_s_per_solve = 20.0;                ///< CPU that one solve may use before the kernel ends it
  Duration deadline = std::chrono::seconds(5);  ///< wall time of one solve, from submit() to the outcome
};

/// One child, at most one solve in flight. Not thread-safe; never blocks except in wait(). The child starts
/// with the first submit(), is started anew after a fault, and dies with this object.
class SolverChild {
 public:
  explicit SolverChild(SolverChildOptions options);
  ~SolverChild();
  SolverChild(const SolverChild&) = delete;
  SolverChild& operator=(const SolverChild&) = delete;

  /// Hands a solve to the child. A solve in flight is abandoned: its child is killed.
  void submit(SolveRequest request, Instant now);
  /// Moves bytes; the outcome, once, when there is one. Call it when fds() are ready and by the deadline.
  std::optional<SolverOutcome> poll(Instant now);
  bool busy() const { return request_.has_value(); }
  /// When poll() must be called even if no descriptor is ready.
  std::optional<Instant> deadline() const;
  /// Descriptors to wait for: `read` always while busy, `write` while the problem is not wholly sent; -1:
  /// none.
  struct Descriptors {
    int read = -1, write = -1;
  };
  Descriptors descriptors() const;
  /// Sleeps until a descriptor is ready or `longest` passed: for callers with a thread of their own.
  void wait(Duration longest) const;
  pid_t pid() const { return pid_; }
  /// How many children were started.
  std::uint64_t starts() const { return starts_; }

 private:
  bool start();
  void stop();
  bool send_some();
  std::optional<SolverOutcome> receive_some();
  SolverOutcome fail_solve(SolverFault fault, std::string text);
  std::string describe_end();

  SolverChildOptions options_;
  pid_t pid_ = -1;
  int to_child_ = -1, from_child_ = -1;
  std::uint64_t starts_ = 0, next_id_ = 1;
  std::optional<SolveRequest> request_;
  Instant deadline_ = end_of_time;
  std::vector<std::uint8_t> outgoing_, incoming_;
  std::size_t sent_ = 0;
  std::optional<SolverFailure> failed_start_;
};

}  // namespace signalbox::optimizer
