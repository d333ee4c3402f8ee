#include "actors/cluster_router/http/unpack.hpp"

#include <zlib.h>

#include <algorithm>

#include "actors/cluster_router/http/head.hpp"

namespace signalbox::http {
namespace {

constexpr std::size_t first_bytes = 16 * 1024;

/// zlib's stream; ended on every path.
struct Inflater {
  z_stream stream{};
  bool ready = false;
  explicit Inflater(int window_bits) { ready = inflateInit2(&stream, window_bits) == Z_OK; }
  ~Inflater() {
    if (ready) inflateEnd(&stream);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

}  // namespace

Coding coding_of(std::string_view name) {
  if (name.empty() || same_name(name, "identity")) return Coding::identity;
  if (same_name(name, "gzip") || same_name(name, "x-gzip")) return Coding::gzip;
  return same_name(name, "deflate") ? Coding::deflate : Coding::unknown;
}

Unpacked unpack(Coding coding, std::string_view bytes, std::size_t max_bytes, std::string& out) {
  out.clear();
  Inflater inflater(coding == Coding::gzip ? MAX_WBITS + 16 : MAX_WBITS);
  if (!inflater.ready) return Unpacked::malformed;
  z_stream& z = inflater.stream;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  for (int state = Z_OK; state != Z_STREAM_END;) {
    const std::size_t made = out.size();
    if (made >= max_bytes) return Unpacked::too_large;
    out.resize(std::min(max_bytes, std::max(first_bytes, 2 * made)));
    z.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    z.avail_out = static_cast<uInt>(out.size() - made);
    state = inflate(&z, Z_NO_FLUSH);
    const bool stuck = z.avail_in == 0 && z.avail_out > 0;
    out.resize(out.size() - z.avail_out);
    if (state != Z_STREAM_END && (state != Z_OK || stuck)) return Unpacked::malformed;
  }
  // Bytes behind the end would be another member, or rubbish that engines read in ways of their own.
  return z.avail_in == 0 ? Unpacked::whole : Unpacked::malformed;
}

}  // namespace signalbox::http
