#include "tools/recording/writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "messages/bus/files.hpp"

namespace signalbox::recording {

Result<Writer> Writer::create(const std::string& path, const Header& header) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST)
    return fail(ErrorKind::conflict, "exists already", path, "name another file, or remove this one");
  if (fd < 0) return bus::fail_errno("cannot be created", path);
  Writer out;
  out.path_ = path;
  out.file_.reset(::fdopen(fd, "wb"));
  Bytes head(file_magic.begin(), file_magic.end());
  head.push_back(format_version);
  head.push_back(0);
  if (const Status status = out.put(head); !status) return tl::unexpected(status.error());
  const std::string text = to_text(header);
  const View bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  if (const Status status = out.put(section_of(SectionKind::header, bytes, bytes.size())); !status)
    return tl::unexpected(status.error());
  if (std::fflush(out.file_.get()) != 0) return bus::fail_errno("cannot be written", path);
  return out;
}

Status Writer::write(Instant arrived, Duration age, std::uint16_t kind, std::string_view topic, View envelope,
                     View body) {
  if (const Status status = tick(arrived); !status) return status;
  chunk_.add(arrived, age, kind, topic, envelope, body);
  ++stats_.messages;
  return {};
}

Status Writer::tick(Instant now) { return chunk_.due(now) ? put_chunk() : Status(); }

Status Writer::put_chunk() {
  auto [bytes, row] = chunk_.take();
  row.offset = stats_.bytes;
  index_.push_back(row);
  if (const Status status = put(bytes); !status) return status;
  if (std::fflush(file_.get()) != 0) return bus::fail_errno("cannot be written", path_);
  return {};
}

Status Writer::put(View bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
    return bus::fail_errno("cannot be written", path_);
  stats_.bytes += bytes.size();
  return {};
}

Status Writer::close() {
  if (!chunk_.empty())
    if (const Status status = put_chunk(); !status) return status;
  const std::uint64_t offset = stats_.bytes;
  const Bytes rows = index_bytes(index_);
  if (const Status status = put(section_of(SectionKind::index, rows, rows.size())); !status) return status;
  Bytes tail;
  put_number(tail, offset, 8);
  tail.insert(tail.end(), end_magic.begin(), end_magic.end());
  tail.resize(tail_bytes);
  if (const Status status = put(tail); !status) return status;
  if (std::fflush(file_.get()) != 0) return bus::fail_errno("cannot be written", path_);
  return {};
}

}  // namespace signalbox::recording
