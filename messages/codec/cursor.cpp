#include "messages/codec/cursor.hpp"

#include <array>
#include <bit>

namespace signalbox::codec {

std::uint64_t Cursor::big_endian(std::size_t width) {
  if (!ok_ || left() < width) {
    refuse("it ends within a value");
    return 0;
  }
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < width; ++i) out = out << 8 | bytes_[at_++];
  return out;
}

Cursor::Item Cursor::sized(Kind kind, std::size_t size) {
  const std::size_t least = kind == Kind::map ? 2 * size : size;
  if (ok_ && least > left()) refuse("it claims more than it holds");
  return ok_ ? Item{kind, 0, 0, size} : Item{};
}

// The first bytes are MessagePack's: https://github.com/msgpack/msgpack/blob/master/spec.md
Cursor::Item Cursor::next() {
  const auto first = static_cast<std::uint8_t>(big_endian(1));
  if (!ok_) return {};
  if (first < 0x80) return {Kind::unsigned_int, first};
  if (first < 0x90) return sized(Kind::map, first & 0x0f);
  if (first < 0xa0) return sized(Kind::array, first & 0x0f);
  if (first < 0xc0) return sized(Kind::text, first & 0x1f);
  if (first >= 0xe0) return {Kind::negative_int, static_cast<std::uint64_t>(static_cast<std::int8_t>(first))};
  Item out;
  switch (first) {
    case 0xc0: return {Kind::nil};
    case 0xc2:
    case 0xc3: return {Kind::boolean, first & 1u};
    case 0xc4:
    case 0xc5:
    case 0xc6: return sized(Kind::binary, big_endian(std::size_t{1} << (first - 0xc4)));
    case 0xc7:
    case 0xc8:
    case 0xc9: return sized(Kind::other, big_endian(std::size_t{1} << (first - 0xc7)) + 1);
    case 0xca: out = {Kind::real, 0, std::bit_cast<float>(static_cast<std::uint32_t>(big_endian(4)))}; break;
    case 0xcb: out = {Kind::real, 0, std::bit_cast<double>(big_endian(8))}; break;
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: out = {Kind::unsigned_int, big_endian(std::size_t{1} << (first - 0xcc))}; break;
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: {
      const std::size_t width = std::size_t{1} << (first - 0xd0);
      const auto shift = static_cast<int>(64 - 8 * width);
      const auto value = static_cast<std::int64_t>(big_endian(width) << shift) >> shift;
      out = {value < 0 ? Kind::negative_int : Kind::unsigned_int, static_cast<std::uint64_t>(value)};
      break;
    }
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8: return sized(Kind::other, (std::size_t{1} << (first - 0xd4)) + 1);
    case 0xd9:
    case 0xda:
    case 0xdb: return sized(Kind::text, big_endian(std::size_t{1} << (first - 0xd9)));
    case 0xdc:
    case 0xdd: return sized(Kind::array, big_endian(std::size_t{2} << (first - 0xdc)));
    case 0xde:
    case 0xdf: return sized(Kind::map, big_endian(std::size_t{2} << (first - 0xde)));
    default: refuse("a byte that MessagePack never uses");
  }
  return ok_ ? out : Item{};
}

std::span<const std::uint8_t> Cursor::take(std::size_t size) {
  if (!ok_ || size > left()) {
    refuse("it ends within a value");
    return {};
  }
  at_ += size;
  return bytes_.subspan(at_ - size, size);
}

void Cursor::skip_rest(Item item) {
  std::array<std::size_t, max_depth> open;  // values still to come at each level
  std::size_t depth = 0;
  open[0] = 0;
  while (ok_) {
    if (item.kind == Kind::text || item.kind == Kind::binary || item.kind == Kind::other) {
      take(item.size);
    } else if ((item.kind == Kind::array || item.kind == Kind::map) && item.size > 0) {
      if (depth + 1 == max_depth) return refuse(ErrorKind::too_large, "it is nested too deeply");
      open[++depth] = item.kind == Kind::map ? 2 * item.size : item.size;
    }
    while (open[depth] == 0) {
      if (depth == 0) return;
      --depth;
    }
    --open[depth];
    item = next();
  }
}

std::size_t Cursor::size_of(Kind kind, std::string_view expected) {
  const Item item = next();
  if (ok_ && item.kind != kind) refuse(fmt::format("not {}", expected));
  return ok_ ? item.size : 0;
}

std::span<const std::uint8_t> Cursor::blob(Kind kind, std::size_t most, std::string_view expected) {
  const std::size_t size = size_of(kind, expected);
  if (ok_ && size > most) refuse(ErrorKind::too_large, fmt::format("{} bytes, at most {}", size, most));
  return take(size);
}

std::uint64_t Cursor::number(std::uint64_t most) {
  const Item item = next();
  if (ok_ && item.kind != Kind::unsigned_int) refuse("not an unsigned number");
  if (ok_ && item.number > most) refuse(fmt::format("{} is over {}", item.number, most));
  return ok_ ? item.number : 0;
}

bool Cursor::charge(std::size_t bytes) {
  if (bytes > memory_)
    refuse(ErrorKind::too_large, "it asks for more memory than its length justifies");
  else
    memory_ -= bytes;
  return ok_;
}

void Cursor::refuse(ErrorKind kind, std::string what) {
  if (!ok_) return;
  ok_ = false;
  error_ = Error{kind, std::move(what), {}, {}};
}

void Cursor::within(std::string_view name) {
  if (error_.where.starts_with('['))
    error_.where.insert(0, name);
  else
    error_ = std::move(error_).within(name);
}

}  // namespace signalbox::codec
