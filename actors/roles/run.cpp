#include "actors/roles/run.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <span>

#include "actors/kit/process.hpp"
#include "actors/operator/server.hpp"
#include "actors/roles/forwarder.hpp"
#include "actors/roles/roles.hpp"

namespace signalbox::actors {

namespace {

constexpr int failed = 1, misused = 2;

int complain(std::string_view text, int code) {
  std::fputs(fmt::format("signalbox run: {}\n", text).c_str(), stderr);
  return code;
}

const kit::RoleEntry* find_role(std::string_view name) {
  for (const kit::RoleEntry& entry : roles())
    if (name_of(entry.role) == name) return &entry;
  return nullptr;
}

}  // namespace

std::string role_list() {
  std::string out = fmt::format("{}: {}\n", name_of(Role::forwarder), sentence_of(Role::forwarder));
  for (const kit::RoleEntry& entry : roles())
    out += fmt::format("{}: {}\n", name_of(entry.role), entry.sentence);
  return out;
}

int run_role(std::string_view role, const config::Config& config, const ProcessName& id,
             const RunOptions& options) {
  if (role == name_of(Role::forwarder)) return run_forwarder(config, id, options);
  const kit::RoleEntry* entry = find_role(role);
  if (!entry)
    return complain(fmt::format("there is no role '{}'; there are:\n{}", role, role_list()), misused);
  const config::Process* row = config.find_process(id);
  if (!row || row->role != role)
    return complain(
        fmt::format("{}: no process '{}' of role {}; add a [[process]] for it", config.file, id, role),
        misused);
  kit::ProcessOptions opened{entry->role,     config,           id, options.config_file, options.overrides,
                             options.program, options.log_level};
  auto process = kit::Process::open(std::move(opened));
  if (!process) return complain(process.error().text(), failed);
  if (const auto started = entry->start(**process); !started) return complain(started.error().text(), failed);
  std::unique_ptr<operators::Server> operator_port;
  if (!row->operator_listen.empty()) {
    auto listening = operators::Server::start(row->operator_listen, operators::subject_of(**process));
    if (!listening) return complain(listening.error().text(), failed);
    operator_port = *std::move(listening);
  }
  return (*process)->run();
}

}  // namespace signalbox::actors
