// Reads a recording, whole or damaged.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messages/base/result.hpp"
#include "messages/schema/catalog.hpp"
#include "tools/recording/header.hpp"
#include "tools/recording/layout.hpp"

namespace signalbox::recording {

/// A message of a recording, decoded.
struct Replayed {
  Instant arrived;
  schema::DeliveryPtr delivery;
};

class Reader {
 public:
  /// Reads header and index; where the index is missing, the whole file is looked through for chunks. Errors: not_found,
  /// io, invalid for what is no recording of this format.
  static Result<Reader> open(const std::string& path);

  const Header& header() const { return header_; }
  const std::vector<IndexRow>& index() const { return index_; }
  /// Arrival of the first and of the last message; equal to the header's `began` if there is none.
  Instant first() const { return index_.empty() ? header_.began : index_.front().first; }
  Instant last() const { return index_.empty() ? header_.began : index_.back().last; }
  std::uint64_t messages() const;

  /// Only chunks that hold one of these kinds are read from now on; the others' messages are left out.
  void only_kinds(std::uint64_t kinds) { kinds_ = kinds; }
  /// Goes to the first message of the chunk in which this time lies.
  void seek(Instant at);
  /// The next message as recorded; nothing at the end. Damaged parts are skipped and noted.
  std::optional<RecordedMessage> next_recorded();
  /// The next one that can be decoded.
  std::optional<Replayed> next();

  /// What could not be read so far, a clause each: "byte 1234: a chunk of 42 messages".
  const std::vector<std::string>& damage() const { return damage_; }
  /// Messages that could not be decoded by this build so far.
  std::uint64_t undecoded() const { return undecoded_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Result<Bytes> read(std::uint64_t offset, std::size_t size);
  /// The section at this offset, if there is a whole one.
  std::optional<std::pair<SectionHead, Bytes>> section(std::uint64_t offset);
  bool read_tail();
  void find_chunks(std::uint64_t offset);
  std::uint64_t next_mark(std::uint64_t offset);
  bool open_next_chunk();

  std::unique_ptr<std::FILE, Close> file_;
  std::string path_;
  std::uint64_t size_ = 0;
  Header header_;
  std::vector<IndexRow> index_;
  std::uint64_t kinds_ = ~0ull;
  std::size_t next_chunk_ = 0;
  ChunkReader chunk_;
  std::uint64_t chunk_offset_ = 0;
  std::vector<std::string> damage_;
  std::uint64_t undecoded_ = 0;
};

/// A recorded message, decoded. Errors: as the codec's.
Result<schema::DeliveryPtr> decode(const RecordedMessage& message);

}  // namespace signalbox::recording
