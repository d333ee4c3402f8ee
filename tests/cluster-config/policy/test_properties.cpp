// Properties of random policies. A policy whose class nobody can reach is refused; then the reference must agree.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "cluster-config/policy/compile.hpp"
#include "tests/cluster-config/policy/random_policy.hpp"
#include "tests/support/files.hpp"

using namespace signalbox;
using namespace signalbox::policy;
using namespace signalbox::policy::test;

namespace {

RequestAttributes attributes(const PlainRequest& request, const std::string& model) {
  RequestAttributes out{
      request.tenant, model, request.version, {}, 0, static_cast<std::uint64_t>(request.tokens)};
  if (!request.asked.empty()) out.asked = parse_criticality(request.asked);
  return out;
}

std::string without_quotes(std::string text) {
  std::erase(text, '"');
  return text;
}

PlainAnswer answer_of(const CompiledPolicy& policy, const PlainRequest& request) {
  const Classified got = policy.classify(attributes(request, without_quotes(request.model)));
  if (!got.admitted()) return {fmt::format("reject {}", got.status), ""};
  return {policy.at(got.index).name.str(), std::string(name_of(got.criticality))};
}

std::multiset<std::string> comments(const std::string& text) {
  std::multiset<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t hash = line.find("# ");  // the one in a quoted name has no space behind it
    if (hash != std::string::npos) out.insert(line.substr(hash));
  }
  return out;
}

/// The classes that a refusal calls unreachable; empty optional if it complains of anything else.
std::optional<std::set<std::string>> unreachable(const Compilation& compiled) {
  constexpr std::string_view before = "no request can reach class ";
  std::set<std::string> out;
  for (const Diagnostic& error : compiled.errors) {
    if (!error.what.starts_with(before)) return std::nullopt;
    const std::string rest = error.what.substr(before.size());
    out.insert(rest.substr(0, rest.find(':')));
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(classification_agrees_with_the_reference) {
  Rng rng(1);
  int compiled_policies = 0, refused_policies = 0;
  for (int i = 0; i < 2'000; ++i) {
    const PlainPolicy plain = random_policy(rng);
    const std::string text = text_of(plain, rng);
    const Compilation compiled = compile(text);
    const auto dead = compiled.policy ? std::set<std::string>{} : unreachable(compiled);
    BOOST_REQUIRE_MESSAGE(dead.has_value(), render(compiled.errors, text, "random") << text);
    (compiled.policy ? compiled_policies : refused_policies) += 1;
    for (int j = 0; j < 100; ++j) {
      const PlainRequest request = random_request(plain, rng);
      const PlainAnswer expected = answer(plain, request);
      BOOST_REQUIRE_MESSAGE(!dead->count(expected.outcome), expected.outcome << " is reached in\n" << text);
      if (!compiled.policy) continue;
      const PlainAnswer got = answer_of(*compiled.policy, request);
      BOOST_REQUIRE_MESSAGE(got.outcome == expected.outcome && got.criticality == expected.criticality,
                            got.outcome << " for " << expected.outcome << " in\n"
                                        << text);
    }
  }
  BOOST_TEST(compiled_policies > 500);
  BOOST_TEST(refused_policies > 100);
}

BOOST_AUTO_TEST_CASE(layout_and_canonical_text_keep_the_hash) {
  Rng rng(2);
  for (int i = 0; i < 1'000; ++i) {
    const std::string text = text_of(random_policy(rng), rng);
    const auto once = format(text);
    BOOST_REQUIRE_MESSAGE(once.has_value(), (once ? "" : once.error().text()) << text);
    BOOST_REQUIRE_EQUAL(*format(*once), *once);
    BOOST_REQUIRE_MESSAGE(comments(text) == comments(*once), text << "\nbecame\n" << *once);

    const Compilation compiled = compile(text);
    BOOST_REQUIRE_EQUAL(compile(*once).policy.has_value(), compiled.policy.has_value());
    if (!compiled.policy) continue;
    const std::string canonical = canonical_text(*compiled.policy);
    const Compilation again = compile(canonical);
    BOOST_REQUIRE_MESSAGE(again.policy.has_value(), render(again.errors, canonical, "canonical"));
    BOOST_REQUIRE_EQUAL(canonical_text(*again.policy), canonical);
    BOOST_REQUIRE((again.policy->hash == compiled.policy->hash &&
                   compile(*once).policy->hash == compiled.policy->hash));
  }
}

BOOST_AUTO_TEST_CASE(damaged_policies_are_refused_within_the_text_or_mean_what_they_say) {
  const std::string good =
      signalbox::tests::read_file(signalbox::tests::source_path("cluster-config/examples/laptop.policy"));
  const auto lines = std::ranges::count(good, '\n') + 1;
  constexpr std::string_view bytes = "{}()[],;|<>=!.-*#\"% \n\t\x80z9";
  Rng rng(3);
  int refused = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string text = good;
    for (std::uint64_t n = 1 + rng.below(3); n > 0; --n) {
      const std::size_t at = rng.below(text.size());
      switch (rng.below(3)) {
        case 0: text.erase(at, 1 + rng.below(8)); break;
        case 1: text.insert(at, 1, bytes[rng.below(bytes.size())]); break;
        default: text[at] = bytes[rng.below(bytes.size())];
      }
    }
    const Compilation compiled = compile(text);
    BOOST_REQUIRE_NE(compiled.policy.has_value(), !compiled.errors.empty());
    refused += !compiled.policy;
    for (const Diagnostic& error : compiled.errors) {
      BOOST_REQUIRE(error.span.line >= 1 && error.span.line <= lines + 4);
      BOOST_REQUIRE(error.span.column >= 1 && !error.what.empty());
    }
    BOOST_REQUIRE(compiled.policy || !render(compiled.errors, text, "damaged").empty());
    if (compiled.policy)
      BOOST_REQUIRE((compile(canonical_text(*compiled.policy)).policy->hash == compiled.policy->hash));
  }
  BOOST_TEST(refused > 2'500);
}

BOOST_AUTO_TEST_CASE(every_number_in_force_changes_the_hash) {
  const std::string head =
      "policy t version 1\nmodels { m }\nclass a { tenants *  model m  criticality standard  residency any "
      "}\notherwise reject 403\n";
  std::set<Digest> seen{compile(head).policy->hash};
  for (const char* statement : {"retry ratio 21%",
                                "retry burst 51",
                                "retry on connect",
                                "retry not on 400",
                                "penalty connect 0.21",
                                "penalty floor 0.03",
                                "timeouts connect 3s",
                                "eject max 31% of engines",
                                "eject panic below 51% ready",
                                "stale signal soft 900ms",
                                "stale snapshot degrade 61s",
                                "health degraded 51%",
                                "lead coverage 61%",
                                "queue depth 65",
                                "queue retry_after to 31s",
                                "routing draws 5",
                                "routing xi 0.61",
                                "limits { load(engine) <= 0.86 * capacity }",
                                "limits { weight(engine) <= 0.5 }",
                                "limits { in_flight(engine) <= 255 }",
                                "shed order sheddable",
                                "shed cost standard 121s",
                                "shed floor standard 5%",
                                "objective { ttft weight 1.1 }",
                                "objective { ttft weight 1 in [0.5, 2] }"}) {
    const std::string text = head + statement + "\n";
    const Compilation compiled = compile(text);
    BOOST_REQUIRE_MESSAGE(compiled.policy.has_value(), render(compiled.errors, text, statement));
    BOOST_TEST(seen.insert(compiled.policy->hash).second, statement << " does not change the hash");
  }
}
