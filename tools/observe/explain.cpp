#include "tools/observe/explain.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

#include "actors/cluster_router/records/record_file.hpp"
#include "messages/codec/codec.hpp"
#include "tools/cli/observer.hpp"
#include "tools/fleet_view/show.hpp"
#include "tools/observe/record_text.hpp"
#include "tools/observe/what_if.hpp"

namespace signalbox::observe {
namespace {

struct Answer {
  long status = 0;
  std::string body;
};

std::size_t collect(char* bytes, std::size_t size, std::size_t count, void* out) {
  static_cast<std::string*>(out)->append(bytes, size * count);
  return size * count;
}

Result<Answer> get(const std::string& url, Duration longest) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(), curl_easy_cleanup);
  Answer answer;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(longest / 1ms));
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, collect);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) return fail(ErrorKind::unavailable, curl_easy_strerror(code), url);
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

/// A decision id as it may be pasted out of a header: without what surrounds it.
Result<std::string> clean(std::string_view decision) {
  constexpr std::string_view around = " \t\r\n\"'";
  const std::size_t first = decision.find_first_not_of(around);
  const std::string_view id = first == std::string_view::npos
                                  ? std::string_view()
                                  : decision.substr(first, decision.find_last_not_of(around) + 1 - first);
  // Letters, digits and a dash: nothing that would lead to another page of the router.
  if (!id.empty() &&
      std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c) || c == '-'; }))
    return std::string(id);
  return fail(ErrorKind::not_found, fmt::format("'{}' is not the id of a decision", id), {},
              "copy it from an answer's x-signalbox-decision");
}

tl::unexpected<Error> nobody_keeps(const std::string& decision, std::string where, std::string hint) {
  return fail(ErrorKind::not_found, fmt::format("no {} keeps decision '{}'", where, decision), {},
              std::move(hint));
}

Result<std::string> ask_routers(const cli::Source& source, const std::string& decision, Duration longest) {
  std::string troubles;
  bool answered = false;
  for (const config::Process& process : source.fleet.config.processes) {
    if (process.role != "cluster-router" || process.operator_listen.empty()) continue;
    auto answer = get(fmt::format("http://{}/explain/{}", process.operator_listen, decision), longest);
    if (!answer) {
      troubles += fmt::format("{}{}: {}", troubles.empty() ? "" : "; ", process.id, answer.error().text());
      continue;
    }
    answered = true;
    if (answer->status != 200) continue;
    while (answer->body.ends_with('\n')) answer->body.pop_back();
    return std::move(answer->body);
  }
  if (!answered)
    return fail(ErrorKind::unavailable,
                troubles.empty() ? "the fleet has no router with an operator port" : troubles,
                "no router could be asked", "is the fleet up? 'signalbox status' tells");
  return nobody_keeps(decision, "router",
                      "copy the id from an answer's x-signalbox-decision; each router keeps its latest "
                      "decisions, router.decisions of them");
}

/// Reads the recording from its begin; `see` says when it has seen enough.
template <class F>
Status read_recording(const std::string& file, std::uint64_t kinds, F&& see) {
  auto reader = recording::Reader::open(file);
  if (!reader) return tl::unexpected(std::move(reader.error()));
  reader->only_kinds(kinds);
  while (const auto message = reader->next())
    if (see(*message->delivery)) break;
  return {};
}

Result<std::string> read_record(const std::string& file, const std::string& decision) {
  std::string found;
  const Status read = read_recording(file, recording::kind_bit(schema::DecisionRecord::info.kind),
                                     [&](const schema::Delivery& d) {
                                       const auto* record = std::get_if<schema::DecisionRecord>(&d.message);
                                       if (record != nullptr && record->decision == decision)
                                         found = codec::to_json(d.message);
                                       return !found.empty();
                                     });
  if (!read) return tl::unexpected(read.error());
  if (found.empty())
    return nobody_keeps(decision, "message of this recording",
                        "'signalbox tap --replay FILE --message decision_record' shows which it has");
  return found;
}

Result<std::string> hear_record(const cli::Source& source, const std::string& decision, Duration longest) {
  std::mutex mutex;
  std::condition_variable heard;
  std::string found;
  bus::NodeHandlers handlers;
  handlers.on_delivery = [&](const schema::DeliveryPtr& delivery) {
    const auto* record = std::get_if<schema::DecisionRecord>(&delivery->message);
    if (record == nullptr || record->decision != decision) return;
    const std::lock_guard lock(mutex);
    found = codec::to_json(delivery->message);
    heard.notify_one();
  };
  auto node = cli::join_source(source, {"decision/"}, std::move(handlers));
  if (!node) return tl::unexpected(std::move(node.error()));
  {
    std::unique_lock lock(mutex);
    heard.wait_for(lock, longest, [&] { return !found.empty(); });
  }
  (*node)->stop();
  if (found.empty())
    return nobody_keeps(decision, "message that was said meanwhile",
                        "wait longer with --wait, or look into the file with --recording");
  return found;
}

/// A record of a ring file as JSON, with the names of the engines that its rows index.
struct RingRecord {
  std::string json;
  std::vector<std::string> engines;
};

/// Errors: not_found, io, invalid.
Result<RingRecord> find_in_ring(const std::string& file, const std::string& text) {
  const auto decision = clean(text);
  if (!decision) return tl::unexpected(decision.error());
  const auto id = routing::parse_decision_id(*decision);
  if (!id)
    return fail(ErrorKind::not_found, fmt::format("'{}' is not the id of a decision", *decision), {},
                "copy it from an answer's x-signalbox-decision");
  auto found = cluster_router::RecordFile::find(file, *id);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (!*found)
    return nobody_keeps(
        *decision, "record of this file",
        "it is another router's, older than the file goes back, or was lost when its machine stopped");
  const auto& names = (*found)->names;
  return RingRecord{
      codec::to_json(schema::Message(routing::as_message((*found)->record, names ? &*names : nullptr))),
      names ? names->engines : std::vector<std::string>()};
}

/// The plan that a decision read, from the router that made it; nothing if it keeps it no longer.
std::optional<schema::RoutingSnapshot> ask_for_plan(const cli::Source& source, const std::string& decision,
                                                    Duration longest) {
  for (const config::Process& process : source.fleet.config.processes) {
    if (process.role != "cluster-router" || process.operator_listen.empty()) continue;
    const auto answer = get(fmt::format("http://{}/plan/{}", process.operator_listen, decision), longest);
    if (!answer || answer->status != 200) continue;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(answer->body.data());
    auto message = codec::decode(schema::RoutingSnapshot::info.kind, {bytes, answer->body.size()});
    if (!message) continue;
    return std::get<schema::RoutingSnapshot>(*std::move(message));
  }
  return std::nullopt;
}

/// The view that holds the plan of that version, or else the plan in force; nothing if nobody tells.
std::optional<fleet_view::FleetView> view_of_plan(const cli::Source& source, const PlanOfRecord& plan,
                                                  Duration longest) {
  const auto knows = [&](const fleet_view::FleetView& view) {
    return view.compiled && view.newest_table() != nullptr && view.snapshots.contains(plan.cluster);
  };
  if (!source.recording) {
    auto view = cli::observe(source.fleet, {"policy/", "fleet/", fmt::format("snapshot/{}/", plan.cluster)},
                             longest, knows);
    if (!view || !knows(*view)) return std::nullopt;
    schema::RoutingSnapshot& shown = view->snapshots.at(plan.cluster).message;
    if (fmt::format("{}", shown.version) == plan.version) return *std::move(view);
    auto read = ask_for_plan(source, plan.decision, longest);
    // Its rows have names only by the policy and the table that it was made for.
    if (read && read->policy == shown.policy && read->table == shown.table) shown = *std::move(read);
    return *std::move(view);
  }
  fleet_view::FleetView view;
  const std::uint64_t kinds = recording::kind_bit(schema::Policy::info.kind) |
                              recording::kind_bit(schema::FleetTable::info.kind) |
                              recording::kind_bit(schema::RoutingSnapshot::info.kind);
  const Status read = read_recording(source.fleet.file, kinds, [&](const schema::Delivery& d) {
    view.on(d, {});
    const auto heard = view.snapshots.find(plan.cluster);
    return heard != view.snapshots.end() && fmt::format("{}", heard->second.message.version) == plan.version;
  });
  return read && knows(view) ? std::optional(std::move(view)) : std::nullopt;
}

std::string with_reasons(std::string json, const std::vector<fleet_view::Table>& reasons) {
  const auto end = json.rfind('}');
  if (reasons.empty() || end == std::string::npos) return json + "\n";
  std::string tables = fleet_view::as_json(reasons);
  while (tables.ends_with('\n')) tables.pop_back();
  return json.substr(0, end) + ",\"reasons\":" + tables + "}\n";
}

std::vector<std::string> engine_names(const cli::Source& source) {
  std::vector<std::string> out;
  for (const auto& engine : source.fleet.config.engines) out.push_back(engine.name.str());
  return out;
}

Status print_record(const ExplainOptions& options, const std::string& json,
                    const std::vector<std::string>& names, const std::vector<fleet_view::Table>& reasons) {
  const auto text =
      options.json ? Result<std::string>(with_reasons(json, reasons)) : record_as_text(json, names, reasons);
  if (!text) return tl::unexpected(text.error());
  fmt::print("{}", *text);
  return {};
}

Status print_what_if(const ExplainOptions& options, const std::string& json,
                     const std::optional<FoundInputs>& inputs, const std::vector<std::string>& names,
                     const std::vector<WhatIf>& changes) {
  const auto answer = answer_what_if(json, inputs, names, changes);
  if (!answer) return tl::unexpected(answer.error());
  fmt::print("{}", options.json ? as_json(*answer) : as_text(*answer));
  return {};
}

}  // namespace

Result<std::string> find_record(const cli::Source& source, const std::string& text, Duration longest) {
  const auto decision = clean(text);
  if (!decision) return tl::unexpected(decision.error());
  if (source.recording) return read_record(source.fleet.file, *decision);
  return source.replayed ? hear_record(source, *decision, longest) : ask_routers(source, *decision, longest);
}

std::vector<fleet_view::Table> reasons_of(const cli::Source& source, const std::string& json,
                                          Duration longest) {
  const auto plan = plan_of_record(json);
  if (!plan || plan->version.empty() || plan->class_name.empty() || (source.replayed && !source.recording))
    return {};
  const auto view = view_of_plan(source, *plan, longest);
  if (!view) return {};
  const std::string version = fmt::format("{}", view->snapshots.at(plan->cluster).message.version);
  std::vector<fleet_view::Table> out = fleet_view::show_reasons(*view, plan->cluster, plan->class_name);
  fleet_view::Table head{"plan", {{"read"}, {"shown"}, {"sentence"}}, {}};
  head.rows.push_back(
      {plan->version, version,
       std::string(version == plan->version
                       ? "the plan that the decision read"
                       : "the plan that the decision read was replaced: this one is in force")});
  out.insert(out.begin(), std::move(head));
  return out;
}

Result<std::string> explanation_of(const cli::Source& source, const std::string& decision, Duration longest) {
  const auto json = find_record(source, decision, longest);
  if (!json) return tl::unexpected(json.error());
  return record_as_text(*json, engine_names(source));
}

std::optional<FoundInputs> find_inputs(const cli::Source& source, const std::string& text) {
  const auto decision = clean(text);
  if (!source.recording || !decision) return std::nullopt;
  std::optional<FoundInputs> out;
  std::map<Digest, std::string> policies;
  const std::uint64_t kinds =
      recording::kind_bit(schema::DecisionInputs::info.kind) | recording::kind_bit(schema::Policy::info.kind);
  const Status read = read_recording(source.fleet.file, kinds, [&](const schema::Delivery& d) {
    if (const auto* policy = std::get_if<schema::Policy>(&d.message)) policies[policy->hash] = policy->text;
    const auto* inputs = std::get_if<schema::DecisionInputs>(&d.message);
    if (inputs != nullptr && inputs->decision == *decision &&
        (!out || inputs->attempt >= out->inputs.attempt))
      out = FoundInputs{*inputs, {}};
    return false;
  });
  if (!read || !out) return std::nullopt;
  const auto policy = policies.find(out->inputs.policy);
  if (policy == policies.end()) return std::nullopt;
  out->policy = policy->second;
  return out;
}

Status explain(const ExplainOptions& options) {
  std::vector<WhatIf> changes;
  for (const std::string& text : options.what_if) {
    auto change = parse_what_if(text);
    if (!change) return tl::unexpected(change.error());
    changes.push_back(std::move(*change));
  }
  if (!options.ring.empty()) {
    const auto& s = options.source;
    if (!s.recording.empty() || !s.bus.empty())
      return invalid("--ring excludes --recording and --bus", {}, "give one of them");
    const auto found = find_in_ring(options.ring, options.decision);
    if (!found) return tl::unexpected(found.error());
    if (!changes.empty()) return print_what_if(options, found->json, std::nullopt, found->engines, changes);
    return print_record(options, found->json, found->engines, {});
  }
  const auto source = cli::open_source(options.source);
  if (!source) return tl::unexpected(source.error());
  const auto json = find_record(*source, options.decision, from_seconds(options.wait_s));
  if (!json) return tl::unexpected(json.error());
  const auto names = engine_names(*source);
  if (!changes.empty())
    return print_what_if(options, *json, find_inputs(*source, options.decision), names, changes);
  return print_record(options, *json, names, reasons_of(*source, *json, from_seconds(options.wait_s)));
}

}  // namespace signalbox::observe
