// The chunked transfer coding (RFC 9112, 7.1), strictly: CR LF everywhere, bounded sizes, extensions and
// trailers skipped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace signalbox::http {

/// Takes a chunked body apart, at whatever boundaries its bytes arrive.
class ChunkedDecoder {
 public:
  enum class State : std::uint8_t { more, ended, failed };
  struct Step {
    std::size_t consumed = 0;  ///< bytes of the input that are done with
    std::string_view data;     ///< a piece of the body inside the input; may be empty
    State state = State::more;
  };
  /// Reads up to and including one piece of data. Call again with the rest while `consumed` > 0 and the state
  /// is `more`.
  Step next(std::string_view bytes);

 private:
  enum class At : std::uint8_t {
    size,
    size_digits,
    size_space,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer,
    trailer_name,
    trailer_line,
    trailer_lf,
    end_lf,
    ended,
    failed
  };
  At step(char c);
  At after_size(char c);

  At at_ = At::size;
  std::uint8_t digits_ = 0;
  std::uint16_t skipped_ = 0;  ///< bytes of extensions or trailers so far
  std::uint64_t left_ = 0;     ///< bytes left in the current chunk
};

/// The line before a chunk of `size` > 0 bytes, "1f\r\n", written to `out`; returns its length.
std::size_t write_chunk_head(std::uint64_t size, std::array<char, 20>& out);
inline constexpr std::string_view chunk_tail = "\r\n";
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

}  // namespace signalbox::http
