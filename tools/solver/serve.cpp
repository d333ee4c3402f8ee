#include "tools/solver/serve.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "optimizer/solve/solve.hpp"
#include "optimizer/wire/wire.hpp"

namespace signalbox::optimizer {
namespace {

/// Reads exactly this many bytes; false at the end of the stream or on an error.
bool read_all(std::uint8_t* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(STDIN_FILENO, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n, size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_all(const std::uint8_t* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(STDOUT_FILENO, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n, size -= static_cast<std::size_t>(n);
  }
  return true;
}

SolveReply answer(const std::vector<std::uint8_t>& bytes) {
  auto request = decode_request(bytes);
  if (!request) return {0, tl::unexpected(request.error())};
  return {request->id, solve(request->problem, request->options, request->warm)};
}

void inject(InjectedFault fault, SolveReply& reply) {
  if (fault == InjectedFault::crash) std::abort();
  while (fault == InjectedFault::hang) ::pause();
  if (fault == InjectedFault::nan && reply.plan && !reply.plan->price.empty())
    reply.plan->price[0] = std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

int serve(InjectedFault fault) {
  std::uint8_t prefix[4];
  std::vector<std::uint8_t> bytes;
  while (read_all(prefix, sizeof prefix)) {
    const std::uint32_t length = read_length(prefix);
    if (length > max_message_bytes)
      return std::fprintf(stderr, "signalbox-solver: a message of %u bytes is over the limit\n", length), 1;
    bytes.resize(length);
    if (!read_all(bytes.data(), length))
      return std::fprintf(stderr, "signalbox-solver: the input ended within a message\n"), 1;
    SolveReply reply = answer(bytes);
    inject(fault, reply);
    const auto out = encode(reply);
    const auto size = length_prefix(out.size());
    if (!write_all(size.data(), size.size()) || !write_all(out.data(), out.size())) return 1;
  }
  return 0;
}

}  // namespace signalbox::optimizer
