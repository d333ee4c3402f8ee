#include <boost/test/unit_test.hpp>

#include "messages/codec/codec.hpp"
#include "tests/support/files.hpp"
#include "tests/support/random_message.hpp"
#include "tests/support/results.hpp"
#include "tests/support/source_dir.hpp"

using namespace signalbox;

namespace {

const std::filesystem::path root = signalbox::tests::source_path("");

/// The golden message of a kind: the same in every run.
schema::Message sample(std::size_t index) {
  Rng rng(schema::catalog()[index].kind);
  return tests::RandomMessage(rng, 2).make_at(index);
}

codec::Bytes from_hex(std::string_view hex) {
  codec::Bytes out;
  for (std::size_t i = 0; i + 1 < hex.size() && hex[i] != '\n'; i += 2)
    out.push_back(static_cast<std::uint8_t>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return out;
}

std::string seed_of(std::uint16_t kind, const codec::Bytes& body) {
  std::string out{static_cast<char>(kind & 0xff), static_cast<char>(kind >> 8)};
  out.append(body.begin(), body.end());
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(bytes_and_json_of_every_message_stay_as_they_are) {
  for (std::size_t i = 0; i < schema::message_count; ++i) {
    const auto& info = schema::catalog()[i];
    const auto stem = fmt::format("tests/golden/messages/{}.v{}", info.name, info.version);
    const auto body = codec::encode(sample(i));
    tests::check_golden(root / (stem + ".hex"), to_hex(body) + "\n");
    tests::check_golden(root / (stem + ".json"), codec::to_json(sample(i)) + "\n");
    const auto decoded = codec::decode(info.kind, body);
    BOOST_TEST_REQUIRE(decoded.has_value(), tests::error_of(decoded));
    BOOST_TEST(codec::to_json(*decoded) == codec::to_json(sample(i)));
    if (tests::rewriting())
      tests::write_file(root / fmt::format("tests/fuzz/corpus/decode/{}", info.name),
                        seed_of(info.kind, body));
  }
}

BOOST_AUTO_TEST_CASE(every_released_version_can_be_read) {
  std::size_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root / "tests/golden/messages")) {
    if (entry.path().extension() != ".hex") continue;
    const std::string stem = entry.path().stem().string();  // name.v1
    const auto* info = schema::find_info(std::string_view(stem).substr(0, stem.find('.')));
    if (info == nullptr) continue;  // the envelope's
    const auto decoded = codec::decode(info->kind, from_hex(tests::read_file(entry.path())));
    BOOST_TEST(decoded.has_value(), stem << ": " << tests::error_of(decoded));
    ++read;
  }
  BOOST_TEST(read >= schema::message_count);
}

BOOST_AUTO_TEST_CASE(bytes_of_the_envelope_stay_as_they_are) {
  schema::Envelope e;
  e.source = ProcessName("router-east"), e.incarnation = {3, 0x1122334455667788}, e.sequence = 70'000;
  e.sent = 90s, e.sent_wall = Duration(1'700'000'000'000'000'000), e.kind = 33, e.version = 2;
  e.config_fingerprint = 0xfedcba9876543210;
  const auto bytes = codec::encode(e);
  tests::check_golden(root / "tests/golden/messages/envelope.v1.hex", to_hex(bytes) + "\n");
  const auto decoded = codec::decode_envelope(bytes);
  BOOST_TEST_REQUIRE(decoded.has_value());
  BOOST_TEST((*decoded == e));
}

BOOST_AUTO_TEST_CASE(the_page_on_messages_is_the_catalog) {
  tests::check_golden(root / "docs/messages.md", codec::describe_catalog());
}
