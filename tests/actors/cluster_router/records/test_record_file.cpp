// The ring file of decisions: what is found again, after which damage.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>

#include "actors/cluster_router/records/record_file.hpp"
#include "messages/base/rng.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/results.hpp"

using namespace signalbox;
using cluster_router::RecordFile;
using routing::FiledRecord;

namespace {

constexpr std::uint64_t records_at = 4096 + 16 * 256 * 1024;

FiledRecord record(std::uint64_t life, std::uint64_t count) {
  FiledRecord out;
  out.life = life, out.count = count, out.names = 5;
  out.status = static_cast<std::uint16_t>(count % 600);
  return out;
}

struct RingFile {
  explicit RingFile(std::uint64_t places = 100) : capacity(places) {}
  RecordFile open() {
    auto opened = RecordFile::open(path, capacity);
    BOOST_REQUIRE_MESSAGE(opened.has_value(), tests::error_of(opened));
    return *std::move(opened);
  }
  void add(RecordFile& file, std::uint64_t life, std::uint64_t from, std::uint64_t to) {
    std::vector<FiledRecord> some;
    for (std::uint64_t n = from; n < to; ++n) some.push_back(record(life, n));
    BOOST_REQUIRE(file.append(some).has_value());
  }
  bool has(std::uint64_t life, std::uint64_t count) {
    const auto found = RecordFile::find(path, {life, count});
    BOOST_REQUIRE_MESSAGE(found.has_value(), tests::error_of(found));
    if (*found) BOOST_TEST((*found)->record.status == count % 600);
    return found->has_value();
  }
  void damage(std::uint64_t at, std::size_t bytes, char with) {
    const int fd = ::open(path.c_str(), O_WRONLY);
    const std::string junk(bytes, with);
    BOOST_REQUIRE(::pwrite(fd, junk.data(), bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes));
    ::close(fd);
  }

  tests::Folder folder;
  std::string path = folder / "decisions.ring";
  std::uint64_t capacity;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_latest_decisions_are_found_and_older_ones_are_gone) {
  RingFile ring;
  RecordFile file = ring.open();
  BOOST_TEST(!ring.has(1, 0));
  std::uint64_t n = 0;
  Rng rng(4);
  while (n < 1000) {  // in pieces, across the end of the ring
    const std::uint64_t more = std::min<std::uint64_t>(1000 - n, 1 + rng.below(70));
    ring.add(file, 1, n, n + more);
    n += more;
    BOOST_TEST(ring.has(1, n - 1));
    BOOST_TEST(ring.has(1, n - std::min<std::uint64_t>(n, 100)));
    if (n > 100) BOOST_TEST(!ring.has(1, n - 101));
  }
  ring.add(file, 1, 2000, 2250);  // more at once than it has places
  BOOST_TEST(!ring.has(1, 2149));
  BOOST_TEST(ring.has(1, 2150));
  BOOST_TEST(ring.has(1, 2249));
}

BOOST_AUTO_TEST_CASE(a_restart_goes_on_where_the_last_life_ended) {
  RingFile ring;
  {
    RecordFile file = ring.open();
    ring.add(file, 1, 0, 60);
  }
  RecordFile file = ring.open();
  ring.add(file, 2, 0, 60);
  BOOST_TEST(ring.has(2, 0));
  BOOST_TEST(ring.has(2, 59));
  BOOST_TEST(ring.has(1, 20));
  BOOST_TEST(!ring.has(1, 19));
}

BOOST_AUTO_TEST_CASE(two_processes_of_a_handover_write_without_a_loss) {
  RingFile ring;
  RecordFile old = ring.open(), next = ring.open();
  for (std::uint64_t n = 0; n < 40; ++n) {
    ring.add(old, 1, n, n + 1);
    ring.add(next, 2, n, n + 1);
  }
  for (std::uint64_t n = 0; n < 40; ++n) BOOST_TEST((ring.has(1, n) && ring.has(2, n)));
}

BOOST_AUTO_TEST_CASE(the_later_of_two_records_of_a_decision_counts) {
  RingFile ring;
  RecordFile file = ring.open();
  std::vector<FiledRecord> both{record(1, 7), record(1, 7)};
  both[1].took_us = 900;
  BOOST_REQUIRE(file.append(both).has_value());
  BOOST_TEST((*RecordFile::find(ring.path, {1, 7}))->record.took_us == 900u);
  ring.damage(records_at + sizeof(FiledRecord) + 40, 3, '\x5a');
  BOOST_TEST((*RecordFile::find(ring.path, {1, 7}))->record.took_us ==
             0u);  // torn: the earlier one is what is known
}

BOOST_AUTO_TEST_CASE(no_damage_makes_up_a_record_or_ends_the_reader) {
  Rng rng(11);
  for (int round = 0; round < 200; ++round) {
    RingFile ring(50);
    RecordFile file = ring.open();
    ring.add(file, 1, 0, 80);
    const std::uint64_t at =
        rng.chance(0.2) ? rng.below(1100) : records_at + rng.below(50 * sizeof(FiledRecord));
    ring.damage(at, 1 + rng.below(300), static_cast<char>(rng.below(256)));
    if (rng.chance(0.2))
      std::filesystem::resize_file(ring.path, rng.below(records_at + 50 * sizeof(FiledRecord)));
    for (std::uint64_t n = 0; n < 80; ++n) {
      const auto found = RecordFile::find(ring.path, {1, n});
      if (!found || !*found) continue;
      BOOST_TEST((*found)->record.count == n);
      BOOST_TEST((*found)->record.status == n);
    }
    // Writing goes on, or says why not.
    std::vector<FiledRecord> more{record(3, 1)};
    if (file.append(more)) BOOST_TEST(ring.has(3, 1));
  }
}

BOOST_AUTO_TEST_CASE(one_torn_head_is_replaced_by_the_one_before) {
  RingFile ring;
  RecordFile file = ring.open();
  ring.add(file, 1, 0, 10);
  ring.add(file, 1, 10, 20);
  ring.damage(512, 64, '\0');
  ring.damage(40, 4, '\x7f');
  BOOST_TEST(!RecordFile::find(ring.path, {1, 15}).has_value());  // both heads: no ring file
  RecordFile again = ring.open();                                 // is set aside, and a new one begun
  BOOST_TEST(std::filesystem::exists(ring.path + ".before"));
  ring.add(again, 2, 0, 1);
  BOOST_TEST(ring.has(2, 0));
}

BOOST_AUTO_TEST_CASE(names_are_kept_for_as_long_as_there_is_room) {
  RingFile ring;
  RecordFile file = ring.open();
  BOOST_REQUIRE(file.keep_names(5, "cluster here\nclass 3 chat m-large\nengine e0\nengine e1\n").has_value());
  std::vector<FiledRecord> one{record(1, 0)};
  one[0].request_class = 0, one[0].attempts = 1, one[0].engines[0] = 1;
  BOOST_REQUIRE(file.append(one).has_value());
  const auto found = RecordFile::find(ring.path, {1, 0});
  BOOST_REQUIRE((*found)->names.has_value());
  const auto message = routing::as_message((*found)->record, &*(*found)->names);
  BOOST_TEST(message.engine_name.str() == "e1");
  BOOST_TEST(message.class_name == "chat");
  BOOST_TEST(message.model.str() == "m-large");
  for (std::uint32_t n = 100; n < 116; ++n) BOOST_REQUIRE(file.keep_names(n, "cluster here\n").has_value());
  BOOST_TEST(!(*RecordFile::find(ring.path, {1, 0}))->names.has_value());
  BOOST_REQUIRE(file.keep_names(5, "cluster here\n").has_value());
  BOOST_TEST((*RecordFile::find(ring.path, {1, 0}))->names.has_value());
}

BOOST_AUTO_TEST_CASE(it_takes_no_more_room_than_was_written) {
  RingFile ring(1'000'000);
  RecordFile file = ring.open();
  ring.add(file, 1, 0, 1000);
  struct stat about {};
  BOOST_REQUIRE(::stat(ring.path.c_str(), &about) == 0);
  BOOST_TEST(about.st_size == static_cast<off_t>(records_at + 1'000'000 * 128));
  BOOST_TEST(about.st_blocks * 512 < 1'000'000);
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_written_is_an_error_and_no_signal) {
  RingFile ring;
  std::filesystem::create_directory(ring.path);
  BOOST_TEST(!RecordFile::open(ring.path, 100).has_value());
  std::filesystem::remove(ring.path);
  RecordFile file = ring.open();
  // As on a full disk: the system takes no byte more.
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ::getrlimit(RLIMIT_FSIZE, &usual);
  const rlimit tight{records_at + 10 * sizeof(FiledRecord), usual.rlim_max};
  BOOST_REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
  std::vector<FiledRecord> some;
  for (std::uint64_t n = 0; n < 20; ++n) some.push_back(record(1, n));
  const Status refused = file.append(some);
  ::setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, before);
  BOOST_TEST(!refused.has_value());
  ring.add(file, 1, 20, 30);  // room was made
  BOOST_TEST(ring.has(1, 25));
}
