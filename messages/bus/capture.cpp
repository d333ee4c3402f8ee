#include "messages/bus/capture.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "messages/bus/files.hpp"
#include "messages/bus/frames.hpp"

namespace signalbox::bus {

namespace {

constexpr std::string_view magic = "SBXCAP\x01";
constexpr std::size_t head_bytes = 8;  // magic with its version, padded
constexpr std::size_t checksum_bytes = crypto_shorthash_BYTES;
constexpr std::uint32_t most_record_bytes = 32u << 20;

void put_number(std::vector<std::uint8_t>& out, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

std::uint64_t get_number(FrameView bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) out = out << 8 | bytes[i];
  return out;
}

/// Against damage, not against forgery: the key is no secret.
std::array<std::uint8_t, checksum_bytes> checksum(FrameView bytes) {
  constexpr std::array<std::uint8_t, crypto_shorthash_KEYBYTES> key{'s', 'i', 'g', 'n', 'a',
                                                                    'l', 'b', 'o', 'x'};
  std::array<std::uint8_t, checksum_bytes> out;
  crypto_shorthash(out.data(), bytes.data(), bytes.size(), key.data());
  return out;
}

/// A record's frames, or nothing if its lengths do not add up.
std::optional<CapturedMessage> parse_record(FrameView rest) {
  if (rest.size() < 9) return std::nullopt;
  CapturedMessage out;
  out.arrived = instant_at(Duration(static_cast<std::int64_t>(get_number(rest.first(8)))));
  const std::size_t count = rest[8];
  rest = rest.subspan(9);
  for (std::size_t i = 0; i < count; ++i) {
    if (rest.size() < 4) return std::nullopt;
    const std::size_t size = get_number(rest.first(4));
    if (rest.size() - 4 < size) return std::nullopt;
    out.frames.emplace_back(rest.begin() + 4, rest.begin() + 4 + static_cast<std::ptrdiff_t>(size));
    rest = rest.subspan(4 + size);
  }
  if (!rest.empty()) return std::nullopt;
  return out;
}

}  // namespace

Result<CaptureWriter> CaptureWriter::create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST)
    return fail(ErrorKind::conflict, "exists already", path, "name another file, or remove this one");
  if (fd < 0) return fail_errno("cannot be created", path);
  CaptureWriter out;
  out.path_ = path;
  out.file_.reset(::fdopen(fd, "wb"));
  std::string head(magic);
  head.resize(head_bytes, '\0');
  if (std::fwrite(head.data(), 1, head.size(), out.file_.get()) != head.size())
    return fail_errno("cannot be written", path);
  return out;
}

Status CaptureWriter::write(Frames frames, Instant arrived) {
  std::vector<std::uint8_t> record(4);
  put_number(record, static_cast<std::uint64_t>(arrived.time_since_epoch().count()), 8);
  record.push_back(static_cast<std::uint8_t>(frames.size()));
  for (const FrameView frame : frames) {
    put_number(record, frame.size(), 4);
    record.insert(record.end(), frame.begin(), frame.end());
  }
  const std::size_t size = record.size() - 4;
  if (size > most_record_bytes || frames.size() > UINT8_MAX)
    return fail(ErrorKind::too_large, "a message too large to capture", path_);
  for (std::size_t i = 0; i < 4; ++i) record[i] = static_cast<std::uint8_t>(size >> (8 * i));
  const auto sum = checksum(record);
  record.insert(record.end(), sum.begin(), sum.end());
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size())
    return fail_errno("cannot be written", path_);
  return {};
}

Status CaptureWriter::flush() {
  if (std::fflush(file_.get()) != 0) return fail_errno("cannot be written", path_);
  return {};
}

Result<CaptureReader> CaptureReader::open(const std::string& path) {
  CaptureReader out;
  out.path_ = path;
  out.file_.reset(std::fopen(path.c_str(), "rbe"));
  if (!out.file_) return fail_errno("cannot be opened", path);
  std::array<char, head_bytes> head{};
  if (std::fread(head.data(), 1, head.size(), out.file_.get()) != head.size() ||
      std::string_view(head.data(), magic.size()) != magic)
    return invalid("not a capture of this version", path, "signalbox tap --record makes one");
  out.offset_ = head_bytes;
  return out;
}

Result<std::optional<CapturedMessage>> CaptureReader::next() {
  const auto damaged = [&](std::string what) {
    return invalid(std::move(what), fmt::format("{}: byte {}", path_, offset_), "what came before is good");
  };
  std::vector<std::uint8_t> record(4);
  const std::size_t got = std::fread(record.data(), 1, 4, file_.get());
  if (got == 0 && std::feof(file_.get()) != 0) return std::optional<CapturedMessage>();
  if (got != 4) return damaged("it ends within a record");
  const std::size_t size = get_number(record);
  if (size > most_record_bytes) return damaged("a record of an impossible length");
  record.resize(4 + size + checksum_bytes);
  if (std::fread(record.data() + 4, 1, size + checksum_bytes, file_.get()) != size + checksum_bytes)
    return damaged("it ends within a record");
  const FrameView all(record);
  const auto sum = checksum(all.first(4 + size));
  if (!std::equal(sum.begin(), sum.end(), all.begin() + 4 + static_cast<std::ptrdiff_t>(size)))
    return damaged("a record whose checksum does not fit");
  auto message = parse_record(all.subspan(4, size));
  if (!message) return damaged("a record whose lengths do not add up");
  offset_ += record.size();
  return message;
}

}  // namespace signalbox::bus
