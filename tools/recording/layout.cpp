#include "tools/recording/layout.hpp"

#include <fmt/format.h>
#include <sodium.h>
#include <zstd.h>

#include <algorithm>

namespace signalbox::recording {
namespace {

constexpr int packing_level = 3;
constexpr std::size_t known_topics = 4096;  // numbered per chunk; later ones are spelt out

/// Against damage, not against forgery: the key is no secret.
std::uint64_t checksum_of(View sizes, View stored) {
  constexpr std::array<std::uint8_t, crypto_generichash_KEYBYTES> key{'s', 'i', 'g', 'n', 'a',
                                                                      'l', 'b', 'o', 'x'};
  crypto_generichash_state state;
  std::array<std::uint8_t, crypto_generichash_BYTES_MIN> out;
  crypto_generichash_init(&state, key.data(), key.size(), out.size());
  crypto_generichash_update(&state, sizes.data(), sizes.size());
  crypto_generichash_update(&state, stored.data(), stored.size());
  crypto_generichash_final(&state, out.data(), out.size());
  return get_number(View(out).first(8));
}

Bytes sizes_of(SectionKind kind, std::uint32_t stored, std::uint32_t unpacked) {
  Bytes out;
  out.push_back(static_cast<std::uint8_t>(kind));
  put_number(out, stored, 4);
  put_number(out, unpacked, 4);
  return out;
}

void put_varint(Bytes& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
  out.push_back(static_cast<std::uint8_t>(value));
}

void put_block(Bytes& out, View bytes) {
  put_varint(out, bytes.size());
  out.insert(out.end(), bytes.begin(), bytes.end());
}

constexpr std::uint64_t zigzag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace

void put_number(Bytes& out, std::uint64_t value, std::size_t width) {
  for (std::size_t i = 0; i < width; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

std::uint64_t get_number(View bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) out = out << 8 | bytes[i];
  return out;
}

Bytes section_of(SectionKind kind, View stored, std::size_t unpacked) {
  const Bytes sizes =
      sizes_of(kind, static_cast<std::uint32_t>(stored.size()), static_cast<std::uint32_t>(unpacked));
  Bytes out(section_mark.begin(), section_mark.end());
  out.insert(out.end(), sizes.begin(), sizes.end());
  put_number(out, checksum_of(sizes, stored), 8);
  out.insert(out.end(), stored.begin(), stored.end());
  return out;
}

std::optional<SectionHead> parse_head(View head) {
  if (head.size() < section_head_bytes) return std::nullopt;
  if (!std::equal(section_mark.begin(), section_mark.end(), head.begin())) return std::nullopt;
  const auto kind = static_cast<SectionKind>(head[4]);
  if (kind != SectionKind::header && kind != SectionKind::chunk && kind != SectionKind::index)
    return std::nullopt;
  SectionHead out{kind, static_cast<std::uint32_t>(get_number(head.subspan(5, 4))),
                  static_cast<std::uint32_t>(get_number(head.subspan(9, 4))),
                  get_number(head.subspan(13, 8))};
  if (out.stored > most_section_bytes || out.unpacked > most_section_bytes) return std::nullopt;
  return out;
}

bool checksum_holds(const SectionHead& head, View stored) {
  return stored.size() == head.stored &&
         checksum_of(sizes_of(head.kind, head.stored, head.unpacked), stored) == head.checksum;
}

Bytes pack(View plain) {
  Bytes out(ZSTD_compressBound(plain.size()));
  const std::size_t size = ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), packing_level);
  out.resize(ZSTD_isError(size) ? 0 : size);
  return out;
}

Result<Bytes> unpack(View packed, std::size_t size) {
  Bytes out(size);
  const std::size_t got = ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size());
  if (ZSTD_isError(got) || got != size) return invalid("a chunk that cannot be unpacked");
  return out;
}

Bytes index_bytes(const std::vector<IndexRow>& rows) {
  Bytes out;
  for (const IndexRow& row : rows) {
    put_number(out, row.offset, 8);
    put_number(out, static_cast<std::uint64_t>(row.first.time_since_epoch().count()), 8);
    put_number(out, static_cast<std::uint64_t>(row.last.time_since_epoch().count()), 8);
    put_number(out, row.messages, 4);
    put_number(out, row.kinds, 8);
  }
  return out;
}

std::vector<IndexRow> parse_index(View bytes) {
  std::vector<IndexRow> out;
  const auto instant = [](View at) { return instant_of(get_number(at)); };
  for (; bytes.size() >= index_row_bytes; bytes = bytes.subspan(index_row_bytes))
    out.push_back({get_number(bytes.first(8)), instant(bytes.subspan(8, 8)), instant(bytes.subspan(16, 8)),
                   static_cast<std::uint32_t>(get_number(bytes.subspan(24, 4))),
                   get_number(bytes.subspan(28, 8))});
  return out;
}

void ChunkWriter::add(Instant arrived, Duration age, std::uint16_t kind, std::string_view topic,
                      View envelope, View body) {
  if (empty()) row_.first = row_.last = arrived;
  put_varint(plain_, zigzag((arrived - row_.last).count()));
  put_varint(plain_, static_cast<std::uint64_t>(std::max<std::int64_t>(0, age.count())));
  if (const auto known = topics_.find(topic); known != topics_.end()) {
    put_varint(plain_, known->second);
  } else {
    put_varint(plain_, 0);
    put_block(plain_, {reinterpret_cast<const std::uint8_t*>(topic.data()), topic.size()});
    if (topics_.size() < known_topics) topics_.emplace(topic, topics_.size() + 1);
  }
  put_block(plain_, envelope);
  put_block(plain_, body);
  row_.last = arrived;
  ++row_.messages;
  row_.kinds |= kind_bit(kind);
}

std::pair<Bytes, IndexRow> ChunkWriter::take() {
  Bytes stored;
  put_number(stored, static_cast<std::uint64_t>(row_.first.time_since_epoch().count()), 8);
  const Bytes packed = pack(plain_);
  stored.insert(stored.end(), packed.begin(), packed.end());
  std::pair out{section_of(SectionKind::chunk, stored, plain_.size()), row_};
  plain_.clear();
  topics_.clear();
  row_ = {};
  return out;
}

std::optional<std::uint64_t> ChunkReader::number() {
  std::uint64_t out = 0;
  for (unsigned shift = 0; shift < 64 && at_ < plain_.size(); shift += 7) {
    const std::uint8_t byte = plain_[at_++];
    out |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return out;
  }
  return std::nullopt;
}

std::optional<View> ChunkReader::block() {
  const auto size = number();
  if (!size || *size > plain_.size() - at_) return std::nullopt;
  const View out = View(plain_).subspan(at_, *size);
  at_ += *size;
  return out;
}

std::optional<RecordedMessage> ChunkReader::next() {
  RecordedMessage out;
  const auto step = number();
  const auto age = number();
  const auto topic = number();
  if (!step || !age || !topic || *age > most_time_ns) return std::nullopt;
  const std::int64_t since = unzigzag(*step);
  if (std::max(since, -since) > static_cast<std::int64_t>(most_time_ns)) return std::nullopt;
  if (arrived_ > instant_at(Duration(most_time_ns))) return std::nullopt;
  arrived_ += Duration(since);
  out.arrived = arrived_;
  out.age = Duration(static_cast<std::int64_t>(*age));
  if (*topic == 0) {
    const auto text = block();
    if (!text) return std::nullopt;
    out.topic.assign(text->begin(), text->end());
    if (topics_.size() < known_topics) topics_.push_back(out.topic);
  } else {
    if (*topic > topics_.size()) return std::nullopt;
    out.topic = topics_[*topic - 1];
  }
  const auto envelope = block();
  const auto body = envelope ? block() : std::nullopt;
  if (!body) return std::nullopt;
  out.envelope.assign(envelope->begin(), envelope->end());
  out.body.assign(body->begin(), body->end());
  return out;
}

}  // namespace signalbox::recording
