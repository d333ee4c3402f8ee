#include "actors/policy_keeper/machine/machine.hpp"

#include <utility>

#include "cluster-config/policy/compile.hpp"

namespace signalbox::policy_keeper {

namespace {
constexpr auto refused_alert = kit::AlertName::policy_refused;
constexpr std::size_t most_orders = 16;
}  // namespace

const kit::RoleInfo& Machine::role_info() {
  static constexpr std::string_view hears[] = {"order"};
  static constexpr std::string_view says[] = {"policy", "alert", "order_receipt"};
  static constexpr kit::RoleInfo info{Role::policy_keeper, "compiles and publishes the policy in force",
                                      hears, says};
  return info;
}

void Machine::on(const schema::Delivery& delivery, Instant, Effects& effects) {
  const auto* order = std::get_if<schema::Order>(&delivery.message);
  if (!order || order->kind != schema::OrderKind::reload_config) return;
  if (order->target != options_.id && order->target.str() != "all") return;
  if (orders_.size() == most_orders) orders_.erase(orders_.begin());
  orders_.push_back(order->id);
  effects.command(ReadPolicy{});
}

void Machine::on(const Input& input, Instant now, Effects& effects) {
  if (const auto* text = std::get_if<PolicyText>(&input))
    answer_orders(take(text->text, true, now, effects), effects);
  else
    answer_orders(refuse(std::get<PolicyUnreadable>(input).error, now, effects), effects);
}

/// Whoever ordered the reading is told what came of it.
void Machine::answer_orders(const Status& taken, Effects& effects) {
  const std::string detail =
      taken ? fmt::format("{} is in force", view().standing.state) : taken.error().text();
  for (const std::string& order : std::exchange(orders_, {}))
    effects.say(schema::OrderReceipt{Role::policy_keeper, options_.id, order, taken.has_value(),
                                     detail.substr(0, 512)});
}

Status Machine::take(std::string text, bool keep, Instant now, Effects& effects) {
  const auto compiled = policy::compile_text(text, options_.file);
  if (!compiled) return refuse(compiled.error().text(), now, effects);
  const policy::CompiledPolicy& p = *compiled;
  std::string whole = policy::canonical_text(p);
  if (whole.size() > policy::max_policy_bytes)
    return refuse(
        fmt::format("with every number said it has {} bytes, of {}", whole.size(), policy::max_policy_bytes),
        now, effects);
  alerts_.clear(refused_alert, effects);
  if (in_force_ && source_ == text) return {};
  effects.note("policy_in_force",
               fmt::format("policy {} version {}, hash {}", p.name, p.version, p.hash.brief()));
  if (keep) effects.persist.push_back({std::string(kept_name), text});
  source_ = std::move(text);
  in_force_ = schema::Policy{p.name, static_cast<std::uint32_t>(p.version), p.hash, std::move(whole)};
  say_policy(now, effects);
  return {};
}

Status Machine::refuse(std::string why, Instant now, Effects& effects) {
  ++refused_;
  std::string summary =
      fmt::format("{} stays in force: {}", in_force_ ? "the last good policy" : "no policy", why);
  if (summary.size() > 1000) summary.resize(1000);
  alerts_.clear(refused_alert, effects);  // the newest error is the one to show
  alerts_.raise(refused_alert, std::move(summary), options_.id.str(), now, effects,
                fmt::format("signalbox policy check {}", options_.file).substr(0, 256));
  return invalid(std::move(why));
}

void Machine::say_policy(Instant now, Effects& effects) {
  effects.say(*in_force_);
  say_next_ = now + options_.repeat;
  effects.wake_at(say_next_);
}

void Machine::on_wake(Instant now, Effects& effects) {
  if (!started_) {
    started_ = true;
    if (!options_.kept.empty()) static_cast<void>(take(options_.kept, false, now, effects));
    effects.command(ReadPolicy{});
  }
  alerts_.repeat_due(now, effects);
  if (in_force_ && now >= say_next_) say_policy(now, effects);
  effects.wake_at(in_force_ ? say_next_ : now + options_.repeat);
}

/// The policy is not said before it is durable: a keeper that forgot it would publish an older one after a restart.
void Machine::on_persist_failed(const kit::Persist&, Instant now, Effects& effects) {
  alerts_.raise(kit::AlertName::policy_not_kept,
                "the policy in force could not be written to disk; it is published all the same",
                options_.id.str(), now, effects);
  if (in_force_) say_policy(now, effects);
}

View Machine::view() const {
  View out;
  out.standing.ready = in_force_.has_value();
  out.refused = refused_;
  if (!in_force_) {
    out.standing.state = "no policy compiles yet";
    return out;
  }
  out.standing.state = fmt::format("policy {} version {}", in_force_->name, in_force_->version);
  out.standing.policy = in_force_->hash;
  out.name = in_force_->name;
  out.version = in_force_->version;
  return out;
}

}  // namespace signalbox::policy_keeper
