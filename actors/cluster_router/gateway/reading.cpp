#include "actors/cluster_router/gateway/reading.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "actors/cluster_router/http/unpack.hpp"

namespace signalbox::gateway {
namespace {

/// A field by our name, or by the Gateway API inference extension's.
std::optional<std::string_view> field(const http::Fields& fields, std::string_view ours,
                                      std::string_view theirs = {}) {
  if (const auto value = http::find(fields, ours)) return value;
  return theirs.empty() ? std::nullopt : http::find(fields, theirs);
}

tl::expected<void, Misfit> misfit(int status, std::string_view reason, std::string message,
                                  std::string_view param = {}) {
  return tl::unexpected(Misfit{status, reason, std::move(message), std::string(param)});
}

tl::expected<void, Misfit> read_criticality(const http::Fields& fields, routing::RequestFacts& facts) {
  if (const auto text = http::find(fields, "x-signalbox-criticality")) {
    facts.asked = parse_criticality(*text);
    if (!facts.asked)
      return misfit(400, "bad_criticality", "x-signalbox-criticality must be sheddable, standard or critical",
                    "x-signalbox-criticality");
  } else if (const auto objective = http::find(fields, "x-gateway-inference-objective")) {
    // Objectives have names of their own; only those that name a criticality say something here.
    facts.asked = parse_criticality(*objective);
  }
  return {};
}

tl::expected<void, Misfit> read_deadline(const http::Fields& fields, routing::RequestFacts& facts) {
  const auto text = http::find(fields, "x-signalbox-deadline-ms");
  if (!text) return {};
  std::uint32_t milliseconds = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), milliseconds);
  if (error != std::errc() || end != text->data() + text->size() || milliseconds == 0)
    return misfit(400, "bad_deadline", "x-signalbox-deadline-ms must be a positive whole number",
                  "x-signalbox-deadline-ms");
  facts.deadline = std::chrono::milliseconds(milliseconds);
  return {};
}

void fill_from_shape(const http::RequestShape& shape, routing::RequestFacts& facts) {
  facts.model = shape.model.str();
  facts.prompt_bytes = shape.prompt.size();
  facts.max_output_tokens = shape.max_new_tokens.value_or(0);
  facts.stream = shape.stream;
  facts.stateful = shape.stateful;
}

}  // namespace

/// Leaves `body` where the JSON can be read.
tl::expected<void, Misfit> RequestReader::unpack(std::string_view coding_name, std::string_view& body,
                                                 std::string& out) const {
  constexpr std::size_t json_padding_bytes = 64;
  const http::Coding coding = http::coding_of(coding_name);
  if (coding == http::Coding::identity) return {};
  if (coding == http::Coding::unknown)
    return misfit(
        415, "unsupported_encoding",
        fmt::format("the model has to be read, and of compressed bodies only {} can be", http::known_codings),
        "content-encoding");
  switch (http::unpack(coding, body, options_.max_body_bytes, out)) {
    case http::Unpacked::whole: break;
    case http::Unpacked::malformed:
      return misfit(400, "bad_encoding", fmt::format("the body is not {}", coding_name), "content-encoding");
    case http::Unpacked::too_large:
      return misfit(
          413, "body_too_large",
          fmt::format("the request's unpacked body is over the limit of {} bytes", options_.max_body_bytes));
  }
  out.reserve(out.size() + json_padding_bytes);
  body = out;
  return {};
}

tl::expected<void, Misfit> RequestReader::read(const net::Request& request, Reading& out,
                                               const Caller& caller) {
  const http::Fields& fields = request.head.fields;
  std::string_view body = request.body;
  if (const auto coding = http::find(fields, "content-encoding"))
    if (auto unpacked = unpack(*coding, body, out.unpacked); !unpacked) return unpacked;
  out.endpoint = http::endpoint_of(request.head.path());
  auto shape = shapes_.read(body, out.endpoint);
  if (!shape) {
    const Error& error = shape.error();
    return misfit(400, error.where.empty() ? "invalid_json" : "invalid_field", error.text(), error.where);
  }
  out.shape = std::move(*shape);
  fill_from_shape(out.shape, out.facts);
  out.facts.tenant = caller.tenant;
  if (caller.tenant.empty())
    out.facts.tenant = field(fields, "x-signalbox-tenant", "x-gateway-inference-fairness-id")
                           .value_or(options_.default_tenant);
  if (auto read = read_criticality(fields, out.facts); !read) return read;
  if (caller.most < Criticality::critical)
    out.facts.asked = std::min(out.facts.asked.value_or(caller.most), caller.most);
  if (auto read = read_deadline(fields, out.facts); !read) return read;
  if (const auto session = http::find(fields, "x-signalbox-session"))
    out.facts.session_hash = routing::tenant_key(options_.fleet_secret, *session);
  // By model too: engines that hold the same prompt for another model are of no use, and would crowd out those that are.
  const std::uint64_t key =
      routing::tenant_key(routing::tenant_key(options_.fleet_secret, out.facts.tenant), out.facts.model);
  routing::hash_prompt_blocks(out.shape.prompt, key, options_.block_bytes, out.facts.blocks);
  return {};
}

}  // namespace signalbox::gateway
