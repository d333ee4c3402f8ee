// A bounded reader of MessagePack. It looks at bytes in place and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "messages/base/result.hpp"

namespace signalbox::codec {

/// The first failure sticks: from then on every read gives nothing, so that callers check once at the end of a
/// group of reads, and always before they allocate.
class Cursor {
 public:
  enum class Kind : std::uint8_t {
    none,
    nil,
    boolean,
    unsigned_int,
    negative_int,
    real,
    text,
    binary,
    array,
    map,
    other
  };

  /// What stands at the front: `number` holds an integer's or boolean's bits, `real` a float; `size` the bytes
  /// of text or binary (which lie within the input), or the elements of an array or pairs of a map (each at
  /// least a byte of the input).
  struct Item {
    Kind kind = Kind::none;
    std::uint64_t number = 0;
    double real = 0;
    std::size_t size = 0;
  };

  /// `memory`: what charge() may add up to, in bytes.
  Cursor(std::span<const std::uint8_t> bytes, std::size_t memory) : bytes_(bytes), memory_(memory) {}

  /// Reads the front: scalars wholly, of the others the head. Text and binary continue with take(size).
  Item next();
  bool next_is_nil() const { return ok_ && at_ < bytes_.size() && bytes_[at_] == 0xc0; }
  std::span<const std::uint8_t> take(std::size_t size);
  /// Steps over one value with all that is in it, at most max_depth deep.
  void skip() { skip_rest(next()); }
  /// The same of a value whose head was read by next().
  void skip_rest(Item item);

  /// The head of that kind, or failure. `expected` names the value in the error.
  std::size_t size_of(Kind kind, std::string_view expected);
  /// Text or binary of at most `most` bytes.
  std::span<const std::uint8_t> blob(Kind kind, std::size_t most, std::string_view expected);
  /// An unsigned number of at most `most`.
  std::uint64_t number(std::uint64_t most);

  /// Accounts for memory that the caller is about to allocate; failure when the message asks for more than its
  /// length justifies.
  bool charge(std::size_t bytes);

  bool ok() const { return ok_; }
  bool at_end() const { return at_ == bytes_.size(); }
  void refuse(ErrorKind kind, std::string what);
  void refuse(std::string what) { refuse(ErrorKind::invalid, std::move(what)); }
  /// Puts a field's name in front of the failure's place.
  void within(std::string_view name);
  const Error& error() const { return error_; }

  static constexpr std::size_t max_depth = 8;

 private:
  std::size_t left() const { return bytes_.size() - at_; }
  std::uint64_t big_endian(std::size_t width);
  Item sized(Kind kind, std::size_t size);

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  std::size_t memory_;
  bool ok_ = true;
  Error error_;
};

}  // namespace signalbox::codec
