#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "messages/base/rng.hpp"
#include "tests/support/random_message.hpp"
#include "tools/top/screen/screen.hpp"

using namespace signalbox;
using namespace signalbox::top;

namespace {

constexpr Instant now = instant_at(100s);

schema::Delivery delivery(std::string_view from, schema::Message message) {
  schema::Delivery out;
  out.envelope.source = ProcessName(from);
  out.message = std::move(message);
  return out;
}

/// `count` engines in two clusters, loaded more and more; the last one is gone.
fleet_view::FleetView fleet(std::size_t count) {
  fleet_view::FleetView view;
  schema::FleetTable table;
  table.content = digest_of("table");
  table.clusters = {{ClusterName("east"), {}, {}}, {ClusterName("west"), {}, {}}};
  schema::RoutingSnapshot plan;
  plan.cluster = ClusterName("east"), plan.table = table.content, plan.version = {{3, ProcessName("o1")}, 7};
  for (std::size_t i = 0; i < count; ++i) {
    schema::EngineRow row;
    row.name = EngineName(fmt::format("gpu-{:03}", i));
    row.cluster = ClusterIndex(i % 2);
    row.models = {ModelName(i % 3 == 0 ? "small" : "large")};
    table.engines.push_back(row);
    plan.prices.push_back(
        {EngineIndex(i), 1.0, 0.8 * static_cast<double>(i) / static_cast<double>(count), 0.8, 1, {}});
    schema::HealthVerdict verdict;
    verdict.engine = row.name;
    verdict.state = i + 1 == count ? HealthState::gone : HealthState::ready;
    view.on(delivery("monitor", verdict), now);
  }
  view.on(delivery("o1", table), now);
  view.on(delivery("o1", plan), now);
  return view;
}

std::string text_of(const Screen& screen) {
  std::string out;
  for (const Line& line : screen.lines) out += top::text_of(line) + "\n";
  return out;
}

std::vector<std::string> names(const Screen& screen) {
  std::vector<std::string> out;
  for (const EngineName& name : screen.shown) out.push_back(name.str());
  return out;
}

void press(Ui& ui, const Screen& screen, std::initializer_list<int> keys) {
  for (const int key : keys) ui.on_key(key, screen.shown, screen.rows, screen.page);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_picture_fits_its_terminal) {
  const auto view = fleet(300);
  for (const Size size : {Size{80, 24}, Size{120, 40}, Size{40, 10}, Size{200, 60}, Size{20, 3}, Size{1, 1}})
    for (std::size_t tab = 0; tab < enum_size<Tab>; ++tab) {
      Ui ui;
      ui.tab = static_cast<Tab>(tab);
      const Screen screen = draw(view, ui, "big", now, size);
      BOOST_TEST(screen.lines.size() == size.lines);
      for (const Line& line : screen.lines) BOOST_TEST(top::text_of(line).size() <= size.columns);
    }
}

BOOST_AUTO_TEST_CASE(the_summary_tells_what_is_wrong) {
  Ui ui;
  const std::string text = text_of(draw(fleet(6), ui, "big", now, {100, 24}));
  BOOST_TEST(text.find("6 engines, 5 serving, 1 gone") != std::string::npos, text);
  BOOST_TEST(text.find("no leader") != std::string::npos);
  BOOST_TEST(text.find("east: 3 engines, 3 ready") != std::string::npos);
  BOOST_TEST(text.find("west: 3 engines, 2 ready") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(engines_are_sorted_reversed_and_filtered) {
  const auto view = fleet(6);
  Ui ui;
  ui.by_cluster = false;
  ui.sort = Sort::use;
  BOOST_TEST(names(draw(view, ui, "", now, {80, 24})).front() == "gpu-005");
  ui.reverse = true;
  BOOST_TEST(names(draw(view, ui, "", now, {80, 24})).front() == "gpu-000");
  ui.reverse = false, ui.sort = Sort::health;
  BOOST_TEST(names(draw(view, ui, "", now, {80, 24})).front() == "gpu-005");
  ui.filter = "small";
  BOOST_TEST(names(draw(view, ui, "", now, {80, 24})).size() == 2u);
  ui.filter = "gone";
  BOOST_TEST((names(draw(view, ui, "", now, {80, 24})) == std::vector<std::string>{"gpu-005"}));
  ui.filter = "nobody";
  BOOST_TEST(text_of(draw(view, ui, "", now, {80, 24})).find("no engine passes the filter") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_chosen_row_is_always_on_the_screen) {
  const auto view = fleet(300);
  Ui ui;
  Rng rng(5);
  constexpr std::array<int, 9> keys{key_up, key_down, key_page_up, key_page_down, key_home, key_end,
                                    's',    'c',      'r'};
  Screen screen = draw(view, ui, "", now, {80, 24});
  for (int i = 0; i < 500; ++i) {
    press(ui, screen, {keys[rng.below(keys.size())]});
    screen = draw(view, ui, "", now, {80, 24});
    const auto chosen = std::count_if(screen.lines.begin() + 4, screen.lines.end(), [](const Line& line) {
      return std::any_of(line.begin(), line.end(),
                         [](const Span& span) { return span.look == Look::chosen; });
    });
    BOOST_TEST(chosen == 1, "after " << i);
  }
}

BOOST_AUTO_TEST_CASE(keys_lead_into_an_engine_and_back) {
  const auto view = fleet(6);
  Ui ui;
  Screen screen = draw(view, ui, "", now, {80, 24});
  press(ui, screen, {key_down, key_enter});
  BOOST_TEST(ui.detail.str() == screen.shown[1].str());
  BOOST_TEST(text_of(draw(view, ui, "", now, {80, 24})).find("engine " + ui.detail.str()) !=
             std::string::npos);
  press(ui, screen, {key_escape});
  BOOST_TEST(ui.detail.empty());
  press(ui, screen, {'/', 'w', 'x', key_back, key_enter});
  BOOST_TEST(ui.filter == "w");
  press(ui, screen, {'/', key_escape});
  BOOST_TEST(ui.filter == "");
  press(ui, screen, {'e', 'a', '-', '1'});
  BOOST_TEST((ui.on_key(key_enter, screen.shown, screen.rows, screen.page) == Wish::explain));
  BOOST_TEST(ui.typed == "a-1");
  BOOST_TEST((ui.on_key('q', screen.shown, screen.rows, screen.page) == Wish::quit));
}

BOOST_AUTO_TEST_CASE(whatever_is_said_and_pressed_there_is_a_picture) {
  Rng rng(11);
  tests::RandomMessage random(rng, 5);
  fleet_view::FleetView view;
  Ui ui;
  Screen screen = draw(view, ui, "", now, {80, 24});
  for (int i = 0; i < 400; ++i) {
    view.on(delivery("a", random.make_at(rng.below(schema::message_count))), now);
    const int key = rng.chance(0.5) ? static_cast<int>(rng.below(128))
                                    : static_cast<int>(key_up) + static_cast<int>(rng.below(9));
    if (key != 'q') press(ui, screen, {key});
    const Size size{1 + rng.below(200), 1 + rng.below(60)};
    screen = draw(view, ui, "", now, size);
    BOOST_TEST(screen.lines.size() == size.lines);
  }
}
