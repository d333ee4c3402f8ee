#include "actors/engine_proxy/events/kv_batch.hpp"

#include <string_view>

#include "messages/base/digest.hpp"
#include "messages/codec/cursor.hpp"

namespace signalbox::engine_proxy {
namespace {

using codec::Cursor;
using Kind = Cursor::Kind;

constexpr std::uint64_t largest_block = 1u << 20;

struct Event {
  std::string_view type;
  std::uint64_t blocks = 0;
  std::uint64_t block_tokens = 0;
  bool gpu = true;         ///< in the engine's own memory, not in a slower tier
  bool main_group = true;  ///< of the attention whose prefix is reused as a whole
};

std::string_view text_of(Cursor& cursor, const Cursor::Item& item) {
  const auto bytes = cursor.take(item.size);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

enum class Field : std::uint8_t { type, blocks, block_size, medium, group, kind, other };

Field field_of(std::string_view name) {
  if (name == "type") return Field::type;
  if (name == "block_hashes") return Field::blocks;
  if (name == "block_size") return Field::block_size;
  if (name == "medium") return Field::medium;
  if (name == "group_idx") return Field::group;
  if (name == "kv_cache_spec_kind") return Field::kind;
  return Field::other;
}

Field stored_field(std::size_t place) {
  switch (place) {
    case 1: return Field::blocks;
    case 4: return Field::block_size;
    case 6: return Field::medium;
    case 9: return Field::group;
    case 10: return Field::kind;
    default: return Field::other;
  }
}
Field removed_field(std::size_t place) {
  return place == 1 ? Field::blocks : place == 2 ? Field::medium : place == 3 ? Field::group : Field::other;
}

/// One field's value. What is nil is not said; what has another shape than it should is as good as not said.
void take_field(Cursor& cursor, Field field, Event& event) {
  const Cursor::Item item = cursor.next();
  const bool text = item.kind == Kind::text;
  const std::string_view word = text ? text_of(cursor, item) : std::string_view();
  if (!text) cursor.skip_rest(item);
  switch (field) {
    case Field::type: event.type = word; break;
    case Field::blocks: event.blocks = item.kind == Kind::array ? item.size : 0; break;
    case Field::block_size:
      if (item.kind == Kind::unsigned_int && item.number <= largest_block) event.block_tokens = item.number;
      break;
    case Field::medium: event.gpu = !text || word == "GPU"; break;
    case Field::group: event.main_group &= item.kind != Kind::unsigned_int || item.number == 0; break;
    case Field::kind: event.main_group &= !text || word == "full_attention" || word == "mla_attention"; break;
    case Field::other: break;
  }
}

std::optional<Event> read_event(Cursor cursor) {
  Event event;
  const Cursor::Item head = cursor.next();
  if (head.kind == Kind::map) {
    for (std::size_t i = 0; i < head.size && cursor.ok(); ++i) {
      const Cursor::Item key = cursor.next();
      if (key.kind == Kind::text) {
        take_field(cursor, field_of(text_of(cursor, key)), event);
      } else {
        cursor.skip_rest(key);
        cursor.skip();
      }
    }
  } else if (head.kind == Kind::array && head.size > 0) {
    take_field(cursor, Field::type, event);
    for (std::size_t i = 1; i < head.size && cursor.ok(); ++i)
      take_field(cursor, event.type == "BlockStored" ? stored_field(i) : removed_field(i), event);
  }
  if (!cursor.ok() || event.type.empty()) return std::nullopt;
  return event;
}

void apply(const Event& event, KvCounts& out) {
  if (event.type == "AllBlocksCleared") {
    ++out.clears;
    out.stored_since_clear = out.removed_since_clear = 0;
  } else if (event.type == "BlockStored") {
    if (!event.gpu || !event.main_group) return;
    out.stored += event.blocks;
    out.stored_since_clear += event.blocks;
    if (event.block_tokens > 0) out.block_tokens = static_cast<std::uint32_t>(event.block_tokens);
  } else if (event.type == "BlockRemoved") {
    if (!event.gpu || !event.main_group) return;
    out.removed += event.blocks;
    out.removed_since_clear += event.blocks;
  } else {
    ++out.skipped;
  }
}

void read_events(Cursor& cursor, KvCounts& out) {
  const Cursor::Item list = cursor.next();
  if (list.kind != Kind::array) return cursor.refuse("a batch without a list of events");
  for (std::size_t i = 0; i < list.size && cursor.ok(); ++i) {
    // Read from a copy, so that an event of a strange shape ends only itself.
    const Cursor event = cursor;
    cursor.skip();
    if (!cursor.ok()) return;
    if (const auto read = read_event(event))
      apply(*read, out);
    else
      ++out.skipped;
  }
}

}  // namespace

Result<KvCounts> read_kv_batch(std::span<const std::uint8_t> bytes) {
  Cursor cursor(bytes, 0);
  KvCounts out;
  const Cursor::Item head = cursor.next();
  bool events = false;
  if (head.kind == Kind::array && head.size >= 2) {
    cursor.skip();  // the time
    read_events(cursor, out);
    events = true;
    for (std::size_t i = 2; i < head.size && cursor.ok(); ++i) cursor.skip();
  } else if (head.kind == Kind::map) {
    for (std::size_t i = 0; i < head.size && cursor.ok(); ++i) {
      const Cursor::Item key = cursor.next();
      const bool here = key.kind == Kind::text && text_of(cursor, key) == "events";
      if (key.kind != Kind::text) cursor.skip_rest(key);
      here ? read_events(cursor, out) : cursor.skip();
      events |= here;
    }
  }
  if (!cursor.ok()) return tl::unexpected(cursor.error());
  if (!events || !cursor.at_end()) return invalid("this is no batch of KV events");
  out.fingerprint = digest_of(bytes).fingerprint();
  return out;
}

}  // namespace signalbox::engine_proxy
