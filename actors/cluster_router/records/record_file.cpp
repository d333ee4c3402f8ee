#include "actors/cluster_router/records/record_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

namespace signalbox::cluster_router {

using routing::FiledRecord;

namespace {

constexpr std::size_t name_places = 16;
constexpr std::uint64_t names_at = 4096, place_bytes = 256 * 1024,
                        records_at = names_at + name_places * place_bytes;
constexpr std::uint64_t head_step = 512;  // the two heads lie in two sectors

struct Head {
  std::array<char, 16> magic{'s', 'i', 'g', 'n', 'a', 'l', 'b', 'o', 'x', ' ', 'r', 'i', 'n', 'g', ' ', '1'};
  std::uint64_t record_bytes = sizeof(FiledRecord);
  std::uint64_t capacity = 0;
  std::uint64_t written = 0;  ///< records ever; the next one is at this, modulo the capacity
  std::uint64_t names = 0;    ///< sets of names ever
  std::uint64_t number = 0;   ///< of this head
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Head) == 64);

/// FNV-1a: tells what is torn, at a few instructions a byte.
std::uint64_t sum_of(const void* bytes, std::size_t size) {
  std::uint64_t out = 0xcbf29ce484222325;
  for (const std::uint8_t byte : std::span(static_cast<const std::uint8_t*>(bytes), size))
    out = (out ^ byte) * 0x100000001b3;
  return out;
}
std::uint64_t sum_of(const Head& head) { return sum_of(&head, offsetof(Head, checksum)); }

struct NamesHead {
  std::uint32_t fingerprint = 0;
  std::uint32_t bytes = 0;
  std::uint64_t checksum = 0;  ///< of the text
};

tl::unexpected<Error> io_error(std::string_view what, const std::string& path) {
  return fail(ErrorKind::io, fmt::format("{}: {}", what, std::strerror(errno)), path,
              "check the state folder's disk and rights");
}

/// As much as there is, up to `size` bytes; negative: an error.
ssize_t read_at(int fd, std::uint64_t offset, void* out, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n =
        ::pread(fd, static_cast<char*>(out) + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return n;
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

std::optional<Head> read_head(int fd) {
  std::optional<Head> newest;
  for (std::uint64_t i = 0; i < 2; ++i) {
    Head head;
    if (read_at(fd, i * head_step, &head, sizeof head) != sizeof head) continue;
    if (head.magic != Head{}.magic || head.record_bytes != sizeof(FiledRecord) || head.capacity == 0 ||
        head.checksum != sum_of(head))
      continue;
    if (!newest || head.number > newest->number) newest = head;
  }
  return newest;
}

std::optional<std::string> read_names(int fd, std::size_t place, std::uint32_t fingerprint) {
  NamesHead head;
  const std::uint64_t at = names_at + place * place_bytes;
  if (read_at(fd, at, &head, sizeof head) != sizeof head || head.fingerprint != fingerprint ||
      head.bytes > RecordFile::most_names_bytes)
    return std::nullopt;
  std::string text(head.bytes, '\0');
  if (read_at(fd, at + sizeof head, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      sum_of(text.data(), text.size()) != head.checksum)
    return std::nullopt;
  return text;
}

/// The file's lock, for as long as this lives.
class Locked {
 public:
  explicit Locked(int fd) : fd_(fd) {
    while (::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Locked() { ::flock(fd_, LOCK_UN); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  int fd_;
};

}  // namespace

RecordFile::RecordFile(RecordFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      capacity_(other.capacity_),
      names_(std::move(other.names_)) {}
RecordFile& RecordFile::operator=(RecordFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(capacity_, other.capacity_);
  std::swap(names_, other.names_);
  return *this;
}
RecordFile::~RecordFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<RecordFile> RecordFile::open(const std::string& path, std::uint64_t capacity) {
  for (const bool again : {false, true}) {
    RecordFile out(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), path);
    if (out.fd_ < 0) return io_error("cannot open", path);
    if (const auto begun = out.begin(capacity))
      return out;
    else if (again || begun.error().kind != ErrorKind::conflict)
      return tl::unexpected(begun.error());
    std::error_code error;
    std::filesystem::rename(path, path + ".before", error);
    if (error) return fail(ErrorKind::io, error.message(), path, "check the state folder's rights");
  }
  return fail(ErrorKind::io, "another process changes it", path);
}

Status RecordFile::begin(std::uint64_t capacity) {
  const Locked lock(fd_);
  struct stat about {};
  if (::fstat(fd_, &about) != 0) return io_error("cannot read", path_);
  capacity_ = capacity;
  if (about.st_size == 0) {
    Head head;
    head.capacity = capacity;
    head.number = 1;
    head.checksum = sum_of(head);
    if (::ftruncate(fd_, static_cast<off_t>(records_at + capacity * sizeof(FiledRecord))) != 0)
      return io_error("cannot make", path_);
    if (const Status written = write(0, &head, sizeof head); !written) {
      if (::ftruncate(fd_, 0) != 0) return io_error("cannot make", path_);
      return written;
    }
    return {};
  }
  const auto head = read_head(fd_);
  if (!head || head->capacity != capacity)
    return fail(ErrorKind::conflict, "another format or capacity", path_);
  for (std::size_t place = 0; place < name_places; ++place) {
    NamesHead names;
    if (read_at(fd_, names_at + place * place_bytes, &names, sizeof names) == sizeof names &&
        names.bytes > 0 && read_names(fd_, place, names.fingerprint))
      names_.insert(names.fingerprint);
  }
  return {};
}

Status RecordFile::write(std::uint64_t offset, const void* bytes, std::size_t size) const {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n =
        ::pwrite(fd_, static_cast<const char*>(bytes) + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return io_error("cannot write", path_);
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Status RecordFile::append(std::span<FiledRecord> records) {
  if (records.empty()) return {};
  if (records.size() > capacity_) records = records.last(capacity_);
  for (FiledRecord& record : records) seal(record);
  const Locked lock(fd_);
  auto head = read_head(fd_);
  if (!head)
    return fail(ErrorKind::io, "its head is gone", path_, "was the file cut off or written by others?");
  const std::uint64_t first = head->written % capacity_;
  head->written += records.size();
  ++head->number;
  head->checksum = sum_of(*head);
  if (const Status said = write(head->number % 2 * head_step, &*head, sizeof *head); !said) return said;
  const std::size_t before_end = std::min<std::size_t>(records.size(), capacity_ - first);
  if (const Status done =
          write(records_at + first * sizeof(FiledRecord), records.data(), before_end * sizeof(FiledRecord));
      !done)
    return done;
  return write(records_at, records.data() + before_end, (records.size() - before_end) * sizeof(FiledRecord));
}

Status RecordFile::keep_names(std::uint32_t fingerprint, std::string_view text) {
  if (names_.contains(fingerprint)) return {};
  const Locked lock(fd_);
  auto head = read_head(fd_);
  if (!head)
    return fail(ErrorKind::io, "its head is gone", path_, "was the file cut off or written by others?");
  text = text.substr(0, most_names_bytes);
  const NamesHead names{fingerprint, static_cast<std::uint32_t>(text.size()),
                        sum_of(text.data(), text.size())};
  const std::uint64_t at = names_at + head->names % name_places * place_bytes;
  NamesHead replaced;
  if (read_at(fd_, at, &replaced, sizeof replaced) == sizeof replaced) names_.erase(replaced.fingerprint);
  if (const Status done = write(at + sizeof names, text.data(), text.size()); !done) return done;
  if (const Status done = write(at, &names, sizeof names); !done) return done;
  ++head->names;
  ++head->number;
  head->checksum = sum_of(*head);
  if (const Status said = write(head->number % 2 * head_step, &*head, sizeof *head); !said) return said;
  names_.insert(fingerprint);
  return {};
}

Result<std::optional<RecordFile::Found>> RecordFile::find(const std::string& path,
                                                          const routing::DecisionId& id) {
  const RecordFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  if (file.fd_ < 0) return io_error("cannot open", path);
  const auto head = read_head(file.fd_);
  if (!head)
    return invalid("this is no ring file of decisions", path,
                   "a router's is decisions.ring in its state folder");
  std::vector<FiledRecord> chunk(2048);
  for (std::uint64_t left = std::min(head->written, head->capacity), end = head->written; left > 0;) {
    // A run that does not cross the ring's end: the last one before `end`.
    const std::uint64_t past = (end - 1) % head->capacity + 1;
    const std::uint64_t count = std::min({left, past, std::uint64_t{chunk.size()}});
    const ssize_t got = read_at(file.fd_, records_at + (past - count) * sizeof(FiledRecord), chunk.data(),
                                count * sizeof(FiledRecord));
    if (got < 0) return io_error("cannot read", path);
    for (std::size_t i = static_cast<std::size_t>(got) / sizeof(FiledRecord); i-- > 0;) {
      const FiledRecord& record = chunk[i];
      if (record.count != id.count || record.life != id.life || !is_sound(record)) continue;
      Found found{record, std::nullopt};
      for (std::size_t place = 0; place < name_places && !found.names; ++place)
        if (const auto text = read_names(file.fd_, place, record.names))
          found.names = routing::parse_names(*text);
      return std::optional(std::move(found));
    }
    left -= count;
    end -= count;
  }
  return std::optional<Found>();
}

}  // namespace signalbox::cluster_router
