#include "tools/api_keys/key_file.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cluster-config/load/load.hpp"

namespace signalbox::api_keys {
namespace {

constexpr std::size_t most_bytes = 64u << 20;
constexpr std::string_view key_prefix = "sb-";

tl::unexpected<Error> io_error(const std::string& path) {
  return fail(ErrorKind::io, std::strerror(errno), path);
}

/// The line after the entry that begins in `line`, counted from 1.
std::size_t end_of_entry(const config::ApiKeys& keys, int line, std::size_t lines) {
  std::size_t end = lines + 1;
  for (const config::ApiKey& key : keys.keys)
    if (key.place.line > line) end = std::min(end, static_cast<std::size_t>(key.place.line));
  return end;
}

}  // namespace

std::string new_key() {
  std::array<unsigned char, 32> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  std::array<char, 64> text;
  sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(),
                    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  return std::string(key_prefix) + text.data();
}

Result<KeyFile> KeyFile::open(const std::string& path, bool create) {
  KeyFile out;
  out.path_ = path;
  if (create && ::access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    randombytes_buf(out.keys_.salt.data(), out.keys_.salt.size());
    out.text_ = config::api_keys_head(out.keys_);
    return out;
  }
  auto text = config::read_text_file(path, most_bytes);
  if (!text) return tl::unexpected(text.error());
  auto parsed = config::parse_api_keys(*text);
  if (!parsed.keys) {
    std::string report = config::render(parsed.mistakes, path);
    while (report.ends_with('\n')) report.pop_back();
    return invalid(std::move(report));
  }
  out.text_ = *std::move(text);
  out.keys_ = *std::move(parsed.keys);
  return out;
}

Status KeyFile::add(config::ApiKey entry, std::string_view key) {
  entry.hash = keys_.hash(key);
  for (const config::ApiKey& known : keys_.keys) {
    if (known.name == entry.name)
      return fail(ErrorKind::conflict, fmt::format("there is a key '{}'", entry.name), path_,
                  "choose another name, or revoke that key first");
    if (known.hash == entry.hash)
      return fail(ErrorKind::conflict, fmt::format("this key is there as '{}'", known.name), path_);
  }
  return write(text_ + config::api_key_entry(entry));
}

Status KeyFile::remove(const std::string& name) {
  const auto found = std::ranges::find(keys_.keys, name, &config::ApiKey::name);
  if (found == keys_.keys.end())
    return fail(ErrorKind::not_found, fmt::format("there is no key '{}'", name), path_,
                "`signalbox apikey list` shows those that there are");
  const auto lines = static_cast<std::size_t>(std::ranges::count(text_, '\n')) + 1;
  const auto first = static_cast<std::size_t>(found->place.line),
             end = end_of_entry(keys_, found->place.line, lines);
  std::string kept;
  std::size_t number = 1;
  for (std::size_t at = 0; at < text_.size(); ++number) {
    const std::size_t next = std::min(text_.find('\n', at), text_.size() - 1) + 1;
    if (number < first || number >= end) kept += text_.substr(at, next - at);
    at = next;
  }
  return write(kept);
}

Status KeyFile::write(const std::string& text) {
  // A file that its reader would refuse is never written.
  auto parsed = config::parse_api_keys(text);
  if (!parsed.keys) return fail(ErrorKind::internal, config::render(parsed.mistakes, path_), path_);
  struct stat before {};
  const mode_t mode = ::stat(path_.c_str(), &before) == 0 ? before.st_mode & 07777 : 0600;
  const std::string fresh = path_ + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return io_error(fresh);
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fchmod(fd, mode) == 0 && ::fsync(fd) == 0;
  const bool closed = ::close(fd) == 0;
  if (!written || !closed || ::rename(fresh.c_str(), path_.c_str()) != 0) {
    const auto error = io_error(path_);
    ::unlink(fresh.c_str());
    return error;
  }
  text_ = text;
  keys_ = *std::move(parsed.keys);
  return {};
}

}  // namespace signalbox::api_keys
