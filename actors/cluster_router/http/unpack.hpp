// Compressed request bodies: read for what routing needs to know; what is passed on stays compressed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace signalbox::http {

/// A Content-Encoding by name: its ways to say "not compressed", those that are understood, all others.
enum class Coding : std::uint8_t { identity, gzip, deflate, unknown };
Coding coding_of(std::string_view name);
/// Those that are understood, for Accept-Encoding.
inline constexpr std::string_view known_codings = "gzip, deflate";

enum class Unpacked : std::uint8_t { whole, malformed, too_large };
/// Decompresses `bytes` into `out`, of which `max_bytes` at most are made.
Unpacked unpack(Coding coding, std::string_view bytes, std::size_t max_bytes, std::string& out);

}  // namespace signalbox::http
