#include <boost/test/unit_test.hpp>
#include <functional>
#include <limits>
#include <string>

#include "engines.hpp"

using namespace signalbox;
using namespace signalbox::tests;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

struct Input {
  std::vector<Observation> readings{read(truth, load_of(1)), read(truth, load_of(8))};
  Prior prior = wrong_by_two;
  FitOptions options;
};

struct Row {
  std::string says;  ///< the start of the error
  std::function<void(Input&)> spoil;
};

const std::vector<Row> rows{
    {"readings: no readings", [](Input& i) { i.readings.clear(); }},
    {"readings[1]: tpot_s is nan", [](Input& i) { i.readings[1].tpot_s = nan; }},
    {"readings[0]: tpot_s is 0", [](Input& i) { i.readings[0].tpot_s = 0; }},
    {"readings[0]: tpot_s is -1", [](Input& i) { i.readings[0].tpot_s = -1; }},
    {"readings[0]: tpot_s is inf", [](Input& i) { i.readings[0].tpot_s = infinite; }},
    {"readings[1]: ttft_s is nan", [](Input& i) { i.readings[1].ttft_s = nan; }},
    {"readings[1]: ttft_s is 0", [](Input& i) { i.readings[1].ttft_s = 0; }},
    {"readings[1]: sequences is 0", [](Input& i) { i.readings[1].load.sequences = 0; }},
    {"readings[1]: sequences is -2", [](Input& i) { i.readings[1].load.sequences = -2; }},
    {"readings[0]: output_tokens is 0", [](Input& i) { i.readings[0].load.shape.output_tokens = 0; }},
    {"readings[0]: uncached_prompt_tokens is -1",
     [](Input& i) { i.readings[0].load.shape.uncached_prompt_tokens = -1; }},
    {"readings[0]: context_tokens is nan", [](Input& i) { i.readings[0].load.shape.context_tokens = nan; }},
    {"prior: a_s is 0", [](Input& i) { i.prior.step.a_s = 0; }},
    {"prior: b_s is -1", [](Input& i) { i.prior.step.b_s = -1; }},
    {"prior: slowness is 0", [](Input& i) { i.prior.step.slowness = 0; }},
    {"prior: log_deviation of c is nan", [](Input& i) { i.prior.log_deviation[3] = nan; }},
    {"options: tpot_noise is 0", [](Input& i) { i.options.tpot_noise = 0; }},
    {"options: huber is nan", [](Input& i) { i.options.huber = nan; }},
    {"options: log of widest is 0", [](Input& i) { i.options.widest = 1; }},
    {"options: iterations is 0", [](Input& i) { i.options.iterations = 0; }},
};

}  // namespace

BOOST_AUTO_TEST_CASE(bad_input_is_refused_with_its_place) {
  BOOST_TEST(fit_curve(Input{}.readings, Input{}.prior).has_value());
  for (const Row& row : rows) {
    BOOST_TEST_CONTEXT(row.says) {
      Input input;
      row.spoil(input);
      const auto fit = fit_curve(input.readings, input.prior, input.options);
      BOOST_REQUIRE(!fit.has_value());
      BOOST_TEST((fit.error().kind == ErrorKind::invalid));
      BOOST_TEST(fit.error().text().substr(0, row.says.size()) == row.says);
    }
  }
}
