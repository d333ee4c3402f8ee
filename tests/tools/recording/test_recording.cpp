#include <boost/test/unit_test.hpp>
#include <fstream>

#include "messages/codec/codec.hpp"
#include "tests/messages/bus/support.hpp"
#include "tests/support/random_message.hpp"
#include "tools/recording/reader.hpp"
#include "tools/recording/writer.hpp"

using namespace signalbox;
using namespace signalbox::recording;
using namespace signalbox::tests;

namespace {

constexpr int per_second = 40;

Header header() {
  return {"laptop", instant_at(5s),       1'700'000'000s, "--message beat", "fleet = \"laptop\"\n",
          18080,    kinds_of_this_build()};
}

/// Messages of every kind, drawn by seed; `seconds` of them.
std::vector<RecordedMessage> messages(int seconds) {
  Rng rng(7);
  RandomMessage random(rng, 4);
  Author author{nullptr, proxy.id};
  std::vector<RecordedMessage> out;
  for (int i = 0; i < seconds * per_second; ++i) {
    const auto message = random.make_at(rng.below(schema::message_count));
    const Packet packet = author.say(message);
    out.push_back({instant_at(5s + i * (1000ms / per_second)), Duration(rng.below(1'000'000)),
                   schema::topic_of(message, author.id), packet.parts[1], packet.parts[2]});
  }
  return out;
}

std::uint16_t kind_of(const RecordedMessage& message) {
  return codec::decode_envelope(message.envelope).value().kind;
}

/// Writes them; `whole`: with an index at the end.
void record(const std::string& path, const std::vector<RecordedMessage>& all, bool whole = true) {
  auto writer = Writer::create(path, header());
  BOOST_TEST_REQUIRE(error_of(writer) == "");
  for (const auto& m : all)
    BOOST_TEST_REQUIRE(error_of(writer->write(m.arrived, m.age, kind_of(m), m.topic, m.envelope, m.body)) ==
                       "");
  if (whole) BOOST_TEST_REQUIRE(error_of(writer->close()) == "");
}

bool same(const RecordedMessage& a, const RecordedMessage& b) {
  return a.arrived == b.arrived && a.age == b.age && a.topic == b.topic && a.envelope == b.envelope &&
         a.body == b.body;
}

std::vector<RecordedMessage> read_all(Reader& reader) {
  std::vector<RecordedMessage> out;
  while (auto message = reader.next_recorded()) out.push_back(std::move(*message));
  return out;
}

/// Every message that was read is one that was written, and they are in order.
bool is_part_of(const std::vector<RecordedMessage>& part, const std::vector<RecordedMessage>& whole) {
  auto at = whole.begin();
  for (const auto& message : part) {
    at = std::find_if(at, whole.end(), [&](const auto& m) { return same(m, message); });
    if (at == whole.end()) return false;
    ++at;
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_recording_gives_back_what_it_took) {
  const Folder folder;
  const std::string path = folder / "a.sbx";
  const auto all = messages(5);
  record(path, all);
  BOOST_TEST((Writer::create(path, header()).error().kind == ErrorKind::conflict));

  auto reader = Reader::open(path);
  BOOST_TEST_REQUIRE(error_of(reader) == "");
  BOOST_TEST(to_text(reader->header()) == to_text(header()));
  BOOST_TEST(unknown_to_this_build(reader->header()) == "");
  BOOST_TEST(reader->messages() == all.size());
  BOOST_TEST((reader->first() == all.front().arrived && reader->last() == all.back().arrived));
  const auto got = read_all(*reader);
  BOOST_TEST(std::equal(got.begin(), got.end(), all.begin(), all.end(), same));
  BOOST_TEST(reader->damage().empty());
}

BOOST_AUTO_TEST_CASE(the_index_finds_a_time_and_the_chunks_of_a_kind) {
  const Folder folder;
  const std::string path = folder / "a.sbx";
  auto all = messages(5);
  const std::uint16_t alert = schema::Alert::info.kind;
  std::erase_if(all, [&](const auto& m) { return kind_of(m) == alert && m.arrived < instant_at(8s); });
  record(path, all);
  auto reader = Reader::open(path).value();
  BOOST_TEST(reader.index().size() == 5u, "a chunk a second");
  reader.seek(instant_at(8s + 500ms));
  const auto tail = read_all(reader);
  BOOST_TEST((tail.front().arrived > instant_at(7s) && tail.front().arrived <= instant_at(8s + 500ms)));
  BOOST_TEST(same(tail.back(), all.back()));

  reader.seek(instant_at(0s));
  reader.only_kinds(kind_bit(alert));
  const auto some = read_all(reader);
  const auto alerts = [&](const std::vector<RecordedMessage>& list) {
    return std::count_if(list.begin(), list.end(), [&](const auto& m) { return kind_of(m) == alert; });
  };
  BOOST_TEST(alerts(some) == alerts(all));
  BOOST_TEST(some.size() < all.size());
}

BOOST_AUTO_TEST_CASE(without_its_end_a_recording_is_read_up_to_there) {
  const Folder folder;
  const std::string path = folder / "a.sbx";
  const auto all = messages(4);
  record(path, all, false);
  auto reader = Reader::open(path).value();
  const auto got = read_all(reader);
  BOOST_TEST(got.size() == 3u * per_second, "the chunk that was open when the recorder died is lost");
  BOOST_TEST(is_part_of(got, all));
  BOOST_TEST(reader.damage().size() == 1u);

  const std::string whole = tests::read_file(path);
  for (std::size_t cut = 8; cut < whole.size(); cut += 997) {
    tests::write_file(path, std::string_view(whole).substr(0, cut));
    auto shorter = Reader::open(path);
    if (shorter) BOOST_TEST(is_part_of(read_all(*shorter), all), cut);
  }
}

BOOST_AUTO_TEST_CASE(damage_costs_the_chunk_that_it_is_in_and_is_told) {
  const Folder folder;
  const std::string path = folder / "a.sbx";
  const auto all = messages(6);
  record(path, all);
  const std::string whole = tests::read_file(path);
  const auto chunk = Reader::open(path).value().index()[2];
  std::string flipped = whole;
  flipped[chunk.offset + 200] ^= 0x10;
  tests::write_file(path, flipped);
  auto reader = Reader::open(path).value();
  const auto got = read_all(reader);
  BOOST_TEST(got.size() == all.size() - chunk.messages);
  BOOST_TEST(is_part_of(got, all));
  BOOST_TEST_REQUIRE(reader.damage().size() == 1u);
  BOOST_TEST(reader.damage()[0] ==
             fmt::format("byte {}: a chunk of {} messages is damaged", chunk.offset, chunk.messages));

  // The same without the index: what is between two whole chunks is told as bytes.
  tests::write_file(path, std::string_view(flipped).substr(0, flipped.size() - 3));
  auto searched = Reader::open(path).value();
  BOOST_TEST(read_all(searched).size() == all.size() - chunk.messages);
  BOOST_TEST(searched.damage()[0].starts_with(fmt::format("bytes {} to ", chunk.offset)));
}

BOOST_AUTO_TEST_CASE(random_damage_never_invents_a_message) {
  const Folder folder;
  const std::string path = folder / "a.sbx";
  const auto all = messages(3);
  record(path, all);
  const std::string whole = tests::read_file(path);
  Rng rng(11);
  for (int round = 0; round < 200; ++round) {
    std::string damaged = whole;
    for (std::uint64_t i = rng.below(6) + 1; i-- > 0;)
      damaged[rng.below(damaged.size())] ^= static_cast<char>(1u << rng.below(8));
    if (rng.chance(0.3)) damaged.erase(rng.below(damaged.size()), rng.below(300));
    tests::write_file(path, damaged);
    auto reader = Reader::open(path);
    if (reader) BOOST_TEST(is_part_of(read_all(*reader), all), round);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_recording_is_refused) {
  const Folder folder;
  const std::string path = folder / "a.sbx";
  BOOST_TEST((Reader::open(path).error().kind == ErrorKind::not_found));
  record(path, messages(1));
  std::string other = tests::read_file(path);
  other[6] = 9;
  for (const auto& [content, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "not a recording"},
           {"SBXCAP\1", "not a recording"},
           {other, "a recording of format 9, this build reads format 1"},
           {other.substr(0, 6) + "\1" + std::string(1, '\0') + "rubbish", "its header is damaged"}}) {
    tests::write_file(path, content);
    const auto reader = Reader::open(path);
    BOOST_TEST_REQUIRE(!reader.has_value());
    BOOST_TEST(reader.error().what == why);
  }
}

BOOST_AUTO_TEST_CASE(messages_of_later_builds_are_named) {
  Header later = header();
  later.kinds.push_back({999, 1, "premonition"});
  later.kinds[0].version = 77;
  const auto parsed = parse_header(to_text(later));
  BOOST_TEST_REQUIRE(error_of(parsed) == "");
  BOOST_TEST(unknown_to_this_build(*parsed) ==
             fmt::format("engine_signal is of version 77, here {}: later fields are left out; premonition is "
                         "not known to this build and is left out",
                         schema::EngineSignal::info.version));
}
