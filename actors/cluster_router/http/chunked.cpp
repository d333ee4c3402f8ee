#include "actors/cluster_router/http/chunked.hpp"

#include <algorithm>
#include <charconv>

#include "actors/cluster_router/http/characters.hpp"

namespace signalbox::http {
namespace {

constexpr std::uint8_t max_size_digits = 12;       // 2^48 bytes
constexpr std::uint16_t max_skipped_bytes = 8192;  // of extensions and trailers together

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

ChunkedDecoder::At ChunkedDecoder::after_size(char c) {
  if (c == '\r') return At::size_lf;
  if (c == ' ' || c == '\t') return ++skipped_ < max_skipped_bytes ? At::size_space : At::failed;
  return c == ';' ? At::extension : At::failed;
}

ChunkedDecoder::At ChunkedDecoder::step(char c) {
  switch (at_) {
    case At::size: left_ = 0, digits_ = 0; [[fallthrough]];
    case At::size_digits:
      if (const int digit = hex_value(c); digit >= 0) {
        left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
        return ++digits_ > max_size_digits ? At::failed : At::size_digits;
      }
      return at_ == At::size ? At::failed : after_size(c);
    case At::size_space: return c == '\r' ? At::failed : after_size(c);  // space leads to an extension only
    case At::extension:
      if (c == '\r') return At::size_lf;
      return is_value(c) && ++skipped_ < max_skipped_bytes ? At::extension : At::failed;
    case At::size_lf:
      if (c != '\n') return At::failed;
      return left_ == 0 ? At::trailer : At::data;
    case At::data_cr: return c == '\r' ? At::data_lf : At::failed;
    case At::data_lf: return c == '\n' ? At::size : At::failed;
    case At::trailer:
      if (c == '\r') return At::end_lf;
      return is_token(c) && ++skipped_ < max_skipped_bytes ? At::trailer_name : At::failed;
    case At::trailer_name:
      if (c == ':') return At::trailer_line;
      return is_token(c) && ++skipped_ < max_skipped_bytes ? At::trailer_name : At::failed;
    case At::trailer_line:
      if (c == '\r') return At::trailer_lf;
      return is_value(c) && ++skipped_ < max_skipped_bytes ? At::trailer_line : At::failed;
    case At::trailer_lf: return c == '\n' ? At::trailer : At::failed;
    case At::end_lf: return c == '\n' ? At::ended : At::failed;
    case At::data:
    case At::ended:
    case At::failed: break;
  }
  return At::failed;
}

ChunkedDecoder::Step ChunkedDecoder::next(std::string_view bytes) {
  Step out;
  while (out.consumed < bytes.size() && at_ != At::ended && at_ != At::failed) {
    if (at_ == At::data) {
      const std::size_t size =
          static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - out.consumed));
      out.data = bytes.substr(out.consumed, size);
      out.consumed += size;
      left_ -= size;
      if (left_ == 0) at_ = At::data_cr;
      break;
    }
    at_ = step(bytes[out.consumed++]);
  }
  out.state = at_ == At::ended ? State::ended : at_ == At::failed ? State::failed : State::more;
  return out;
}

std::size_t write_chunk_head(std::uint64_t size, std::array<char, 20>& out) {
  char* end = std::to_chars(out.data(), out.data() + 16, size, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return static_cast<std::size_t>(end - out.data());
}

}  // namespace signalbox::http
