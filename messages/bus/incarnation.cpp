#include "messages/bus/incarnation.hpp"

#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "messages/bus/files.hpp"

namespace signalbox::bus {

namespace {

std::uint64_t wall_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

}  // namespace

Result<Life> next_incarnation(const std::string& dir, const ProcessName& id) {
  const std::string path = fmt::format("{}/{}.incarnation", dir, id);
  std::uint64_t last = 0;
  if (auto text = read_whole(path)) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), last);
    if (error != std::errc{} || *end != '\n')
      return invalid("not a boot counter", path,
                     "remove the file: the counter then starts at the wall clock");
  } else if (text.error().kind != ErrorKind::not_found) {
    return tl::unexpected(std::move(text.error()));
  }
  Life out{{last == 0 ? wall_seconds() : last + 1, 0}, {}};
  randombytes_buf(&out.incarnation.random, sizeof out.incarnation.random);
  out.kept = write_durably(path, fmt::format("{}\n", out.incarnation.counter));
  return out;
}

}  // namespace signalbox::bus
