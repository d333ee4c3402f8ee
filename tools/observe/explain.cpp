#include "tools/observe/explain.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "tools/observe/record_text.hpp"

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

}  // namespace

Status explain(const ExplainOptions& options) {
  const auto decision = clean(options.decision);
  if (!decision) return tl::unexpected(decision.error());
  const auto fleet = cli::open_fleet(options.fleet);
  if (!fleet) return tl::unexpected(fleet.error());
  std::vector<std::string> names;
  for (const auto& engine : fleet->config.engines) names.push_back(engine.name.str());
  std::string troubles;
  bool answered = false;
  for (const config::Process& process : fleet->config.processes) {
    if (process.role != "cluster-router" || process.operator_listen.empty()) continue;
    const auto answer = get(fmt::format("http://{}/explain/{}", process.operator_listen, *decision),
                            from_seconds(options.wait_s));
    if (!answer) {
      troubles += fmt::format("{}{}: {}", troubles.empty() ? "" : "; ", process.id, answer.error().text());
      continue;
    }
    answered = true;
    if (answer->status != 200) continue;
    const auto text =
        options.json ? Result<std::string>(answer->body + "\n") : record_as_text(answer->body, names);
    if (!text) return tl::unexpected(text.error());
    fmt::print("{}", *text);
    return {};
  }
  if (!answered)
    return fail(ErrorKind::unavailable,
                troubles.empty() ? "the fleet has no router with an operator port" : troubles,
                "no router could be asked", "is the fleet up? 'signalbox status' tells");
  return fail(
      ErrorKind::not_found, fmt::format("no router keeps decision '{}'", *decision), troubles,
      "copy the id from an answer's x-signalbox-decision; each router keeps only its latest decisions");
}

}  // namespace signalbox::observe
