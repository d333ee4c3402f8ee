#include "tools/recording/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "messages/bus/files.hpp"
#include "messages/codec/codec.hpp"

namespace signalbox::recording {
namespace {

constexpr std::size_t chunk_head_bytes = 8;  // arrival of its first message
constexpr std::size_t search_bytes = 1u << 20;

std::string_view as_text(View bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

Instant first_of(View stored) { return instant_of(get_number(stored.first(chunk_head_bytes))); }

}  // namespace

Result<Reader> Reader::open(const std::string& path) {
  Reader out;
  out.path_ = path;
  out.file_.reset(std::fopen(path.c_str(), "rbe"));
  if (!out.file_ && errno == ENOENT) return fail(ErrorKind::not_found, "no such file", path);
  if (!out.file_) return bus::fail_errno("cannot be opened", path);
  if (std::fseek(out.file_.get(), 0, SEEK_END) != 0) return bus::fail_errno("cannot be read", path);
  out.size_ = static_cast<std::uint64_t>(std::ftell(out.file_.get()));
  const auto not_one = [&](std::string what) {
    return invalid(std::move(what), path, "signalbox tap --record makes recordings");
  };
  const auto head = out.read(0, file_head_bytes);
  if (!head || !as_text(*head).starts_with(file_magic)) return not_one("not a recording");
  if ((*head)[file_magic.size()] != format_version)
    return not_one(fmt::format("a recording of format {}, this build reads format {}",
                               (*head)[file_magic.size()], format_version));
  const auto header = out.section(file_head_bytes);
  if (!header || header->first.kind != SectionKind::header) return not_one("its header is damaged");
  auto parsed = parse_header(as_text(header->second));
  if (!parsed) return tl::unexpected(std::move(parsed.error()).within(path));
  out.header_ = std::move(*parsed);
  const std::uint64_t chunks = file_head_bytes + section_head_bytes + header->second.size();
  if (!out.read_tail()) out.find_chunks(chunks);
  return out;
}

std::uint64_t Reader::messages() const {
  std::uint64_t out = 0;
  for (const IndexRow& row : index_) out += row.messages;
  return out;
}

Result<Bytes> Reader::read(std::uint64_t offset, std::size_t size) {
  if (offset > size_ || size > size_ - offset) return invalid("it ends there", path_);
  Bytes out(size);
  if (std::fseek(file_.get(), static_cast<long>(offset), SEEK_SET) != 0 ||
      std::fread(out.data(), 1, size, file_.get()) != size)
    return bus::fail_errno("cannot be read", path_);
  return out;
}

std::optional<std::pair<SectionHead, Bytes>> Reader::section(std::uint64_t offset) {
  const auto head_bytes = read(offset, section_head_bytes);
  if (!head_bytes) return std::nullopt;
  const auto head = parse_head(*head_bytes);
  if (!head) return std::nullopt;
  auto stored = read(offset + section_head_bytes, head->stored);
  if (!stored || !checksum_holds(*head, *stored)) return std::nullopt;
  return std::pair(*head, std::move(*stored));
}

bool Reader::read_tail() {
  if (size_ < tail_bytes) return false;
  const auto tail = read(size_ - tail_bytes, tail_bytes);
  if (!tail || as_text(View(*tail).subspan(8, end_magic.size())) != end_magic) return false;
  const auto index = section(get_number(View(*tail).first(8)));
  if (!index || index->first.kind != SectionKind::index) return false;
  index_ = parse_index(index->second);
  return true;
}

/// The offset of the next mark at or after this one; the file's size if there is none.
std::uint64_t Reader::next_mark(std::uint64_t offset) {
  while (offset + section_mark.size() <= size_) {
    const auto piece = read(offset, std::min<std::uint64_t>(search_bytes, size_ - offset));
    if (!piece) return size_;
    const auto found = std::search(piece->begin(), piece->end(), section_mark.begin(), section_mark.end());
    if (found != piece->end()) return offset + static_cast<std::uint64_t>(found - piece->begin());
    offset += std::max<std::uint64_t>(1, piece->size() - section_mark.size() + 1);
  }
  return size_;
}

void Reader::find_chunks(std::uint64_t offset) {
  std::uint64_t whole_until = offset;
  const auto note_gap = [&](std::uint64_t until) {
    if (until > whole_until)
      damage_.push_back(fmt::format("bytes {} to {} are damaged", whole_until, until - 1));
  };
  while (offset < size_) {
    const auto found = section(offset);
    if (!found) {
      offset = next_mark(offset + 1);
      continue;
    }
    note_gap(offset);
    const auto& [head, stored] = *found;
    if (head.kind == SectionKind::chunk && stored.size() >= chunk_head_bytes) {
      IndexRow row{offset, first_of(stored), first_of(stored), 0, 0};
      const auto plain = unpack(View(stored).subspan(chunk_head_bytes), head.unpacked);
      ChunkReader messages(plain ? *plain : Bytes(), row.first);
      while (!messages.done()) {
        const auto message = messages.next();
        if (!message) break;
        const auto envelope = codec::decode_envelope(message->envelope);
        row.last = message->arrived;
        row.kinds |= envelope ? kind_bit(envelope->kind) : 0;
        ++row.messages;
      }
      index_.push_back(row);
    }
    offset += section_head_bytes + stored.size();
    whole_until = offset;
  }
  note_gap(size_);
  damage_.push_back(fmt::format(
      "it has no index: its recorder was not ended in order; {} whole chunks were found", index_.size()));
}

void Reader::seek(Instant at) {
  const auto chunk =
      std::find_if(index_.begin(), index_.end(), [&](const IndexRow& row) { return row.last >= at; });
  next_chunk_ = static_cast<std::size_t>(chunk - index_.begin());
  chunk_ = {};
}

bool Reader::open_next_chunk() {
  while (next_chunk_ < index_.size()) {
    const IndexRow& row = index_[next_chunk_++];
    if ((row.kinds & kinds_) == 0) continue;
    const auto lost = [&](std::string_view why) {
      damage_.push_back(fmt::format("byte {}: a chunk of {} messages {}", row.offset, row.messages, why));
    };
    const auto found = section(row.offset);
    if (!found || found->first.kind != SectionKind::chunk || found->second.size() < chunk_head_bytes) {
      lost("is damaged");
      continue;
    }
    auto plain = unpack(View(found->second).subspan(chunk_head_bytes), found->first.unpacked);
    if (!plain) {
      lost("cannot be unpacked");
      continue;
    }
    chunk_ = ChunkReader(std::move(*plain), first_of(found->second));
    chunk_offset_ = row.offset;
    return true;
  }
  return false;
}

std::optional<RecordedMessage> Reader::next_recorded() {
  while (!chunk_.done() || open_next_chunk()) {
    if (chunk_.done()) continue;
    if (auto message = chunk_.next()) return message;
    damage_.push_back(fmt::format("byte {}: the rest of a chunk does not add up", chunk_offset_));
    chunk_ = {};
  }
  return std::nullopt;
}

std::optional<Replayed> Reader::next() {
  while (auto message = next_recorded()) {
    if (auto delivery = decode(*message)) return Replayed{message->arrived, std::move(*delivery)};
    ++undecoded_;
  }
  return std::nullopt;
}

Result<schema::DeliveryPtr> decode(const RecordedMessage& message) {
  auto envelope = codec::decode_envelope(message.envelope);
  if (!envelope) return tl::unexpected(std::move(envelope.error()));
  auto body = codec::decode(envelope->kind, message.body);
  if (!body) return tl::unexpected(std::move(body.error()));
  return std::make_shared<const schema::Delivery>(
      schema::Delivery{std::move(*envelope), message.topic, message.age, std::move(*body)});
}

}  // namespace signalbox::recording
