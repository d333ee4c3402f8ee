#include <boost/test/unit_test.hpp>
#include <limits>
#include <set>

#include "messages/schema/catalog.hpp"

using namespace signalbox;
using namespace signalbox::schema;

BOOST_AUTO_TEST_CASE(topics_carry_fields_then_the_author) {
  EngineSignal signal;
  signal.cluster = ClusterName("east"), signal.engine = EngineName("e1");
  BOOST_TEST(topic_of(signal, ProcessName("proxy-1")) == "signal/east/e1/");
  HealthVerdict verdict;
  verdict.engine = EngineName("e1");
  BOOST_TEST(topic_of(verdict, ProcessName("monitor-1")) == "verdict/e1/monitor-1/");
  Beat beat;
  beat.role = Role::cluster_router, beat.id = ProcessName("router-east");
  BOOST_TEST(topic_of(beat, beat.id) == "beat/cluster-router/router-east/");
  BOOST_TEST(topic_of(KeepAlive{}, ProcessName("o1")) == "alive/o1/");
}

BOOST_AUTO_TEST_CASE(every_message_is_declared_well) {
  std::set<std::string_view> roots;
  for (const auto& info : catalog()) {
    BOOST_TEST(info.topic.ends_with('/'), info.name);
    BOOST_TEST(info.topic.find('<') != std::string_view::npos, info.name);
    BOOST_TEST(roots.insert(topic_root(info)).second, info.name << " shares its topic root");
    BOOST_TEST(!info.sentence.empty(), info.name);
    BOOST_TEST(info.max_bytes >= 1024, info.name);
    BOOST_TEST(find_info(info.kind) == find_info(info.name));
  }
  BOOST_TEST(find_info(std::uint16_t{65535}) == nullptr);
}

namespace {
template <class T>
void fields_are_well_declared() {
  std::set<unsigned> numbers;
  std::set<std::string_view> names;
  for_each_field<T>([&](const auto& f) {
    BOOST_TEST(f.number > 0);
    BOOST_TEST(numbers.insert(f.number).second, f.name << ": a number used twice");
    BOOST_TEST(names.insert(f.name).second, f.name << ": a name used twice");
    BOOST_TEST(!f.sentence.empty(), f.name);
    using Member = typename std::decay_t<decltype(f)>::member;
    if constexpr (is_vector<Member>::value || std::is_same_v<Member, std::string>)
      BOOST_TEST(f.most_items > 0, f.name << ": no bound on its size");
    if constexpr (is_vector<Member>::value)
      if constexpr (Described<typename Member::value_type>)
        fields_are_well_declared<typename Member::value_type>();
  });
}
}  // namespace

BOOST_AUTO_TEST_CASE(fields_have_unique_numbers_names_and_bounds) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (fields_are_well_declared<MessageType<I>>(), ...); }
  (std::make_index_sequence<message_count>());
}

BOOST_AUTO_TEST_CASE(check_names_the_field_that_is_wrong) {
  RoutingSnapshot snapshot;
  BOOST_TEST(check(snapshot).has_value());
  snapshot.weights.push_back(WeightRow{ClassIndex(0u), EngineIndex(0u), 0.5, 1});
  snapshot.weights.push_back(WeightRow{ClassIndex(0u), EngineIndex(1u), 1.5, 1});
  BOOST_TEST(check(snapshot).error().text() == "weights[1].weight: 1.5 is outside 0..1");
  snapshot.weights[1].weight = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(check(snapshot).error().text() == "weights[1].weight: not a finite number");
  EngineSignal signal;
  signal.waiting = -1;
  BOOST_TEST(check(signal).error().where == "waiting");
  signal.waiting.reset();
  signal.scrape = static_cast<ScrapeState>(99);
  BOOST_TEST(check(signal).error().where == "scrape");
}
