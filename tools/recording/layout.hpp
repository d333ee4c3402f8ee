// The file format of recordings.
//
//   file     "SBXREC", format version (1 byte), zero; a header section; chunk sections; an index section; a tail
//   section  mark (4 bytes), kind (1 byte), bytes stored (4), bytes when unpacked (4), checksum of these two and what
//            is stored (8), what is stored
//   header   text (header.hpp)
//   chunk    messages, packed by zstd; a chunk can be read without any other
//   message  arrival since the message before, zigzag; age; topic; envelope; body   (numbers as LEB128)
//   topic    0 and a string, numbered from 1 within the chunk; or that number
//   index    a row of fixed size for each chunk (IndexRow)
//   tail     offset of the index section (8 bytes), "SBXEND", two zeros
//
// Numbers of fixed size are little-endian. A recorder that dies leaves no index: the chunks are then found by their
// marks. A damaged section is skipped to the next mark whose checksum holds, so that damage costs the chunk that it is in.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "messages/base/result.hpp"
#include "messages/base/time.hpp"

namespace signalbox::recording {

using Bytes = std::vector<std::uint8_t>;
using View = std::span<const std::uint8_t>;

inline constexpr std::string_view file_magic = "SBXREC";
inline constexpr std::uint8_t format_version = 1;
inline constexpr std::size_t file_head_bytes = 8;
inline constexpr std::array<std::uint8_t, 4> section_mark{0xf5, 'S', 'B', 'X'};
inline constexpr std::size_t section_head_bytes = 4 + 1 + 4 + 4 + 8;
inline constexpr std::string_view end_magic = "SBXEND";
inline constexpr std::size_t tail_bytes = 16;

/// A chunk is closed when it holds this much, or when it is this old.
inline constexpr std::size_t chunk_bytes = 256u << 10;
inline constexpr Duration chunk_age = std::chrono::seconds(1);
/// Longest section that is believed: a chunk may end with one message of the longest kind.
inline constexpr std::uint32_t most_section_bytes = 32u << 20;

/// Times beyond a century are no times; sums of a few stay within range.
inline constexpr std::uint64_t most_time_ns = 1ull << 61;
/// An instant of a file; zero for what is none.
constexpr Instant instant_of(std::uint64_t ns) {
  return instant_at(Duration(ns > most_time_ns ? 0 : static_cast<std::int64_t>(ns)));
}

enum class SectionKind : std::uint8_t { header = 'H', chunk = 'C', index = 'I' };

/// A message as it was recorded: what the recorder had checked, without its proof.
struct RecordedMessage {
  Instant arrived;  ///< at the recorder, by its clock
  Duration age{};   ///< on arrival
  std::string topic;
  Bytes envelope;
  Bytes body;
};

struct IndexRow {
  std::uint64_t offset = 0;  ///< of the chunk's section
  Instant first;
  Instant last;
  std::uint32_t messages = 0;
  std::uint64_t kinds = 0;  ///< bit k: a message of kind k is in it (kinds from 64 on: bit 0)
};
inline constexpr std::size_t index_row_bytes = 36;

constexpr std::uint64_t kind_bit(std::uint16_t kind) { return kind < 64 ? 1ull << kind : 1ull; }

void put_number(Bytes& out, std::uint64_t value, std::size_t width);
std::uint64_t get_number(View bytes);

/// A section, ready to be written.
Bytes section_of(SectionKind kind, View stored, std::size_t unpacked);

struct SectionHead {
  SectionKind kind;
  std::uint32_t stored = 0;
  std::uint32_t unpacked = 0;
  std::uint64_t checksum = 0;
};
/// Nothing if this is no head of a section.
std::optional<SectionHead> parse_head(View head);
bool checksum_holds(const SectionHead& head, View stored);

Bytes pack(View plain);
/// Errors: invalid.
Result<Bytes> unpack(View packed, std::size_t size);

Bytes index_bytes(const std::vector<IndexRow>& rows);
std::vector<IndexRow> parse_index(View bytes);

/// Collects the messages of one chunk.
class ChunkWriter {
 public:
  void add(Instant arrived, Duration age, std::uint16_t kind, std::string_view topic, View envelope,
           View body);
  bool empty() const { return row_.messages == 0; }
  bool due(Instant now) const {
    return !empty() && (plain_.size() >= chunk_bytes || now - row_.first >= chunk_age);
  }
  /// The section of what was collected, and its row of the index without the offset; starts over.
  std::pair<Bytes, IndexRow> take();

 private:
  Bytes plain_;
  std::map<std::string, std::uint64_t, std::less<>> topics_;
  IndexRow row_;
};

/// The messages of a chunk, one after the other.
class ChunkReader {
 public:
  ChunkReader() = default;
  ChunkReader(Bytes plain, Instant first) : plain_(std::move(plain)), arrived_(first) {}
  bool done() const { return at_ >= plain_.size(); }
  /// Nothing if the chunk's bytes do not add up.
  std::optional<RecordedMessage> next();

 private:
  std::optional<std::uint64_t> number();
  std::optional<View> block();

  Bytes plain_;
  std::size_t at_ = 0;
  Instant arrived_{};
  std::vector<std::string> topics_;
};

}  // namespace signalbox::recording
