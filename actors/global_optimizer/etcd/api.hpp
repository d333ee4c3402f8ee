// The few calls of etcd's HTTP/JSON gateway (version 3.4 and later) that leadership takes, as text.
#pragma once

#include <string>
#include <string_view>

#include "actors/global_optimizer/machine/tenure.hpp"
#include "messages/base/result.hpp"

namespace signalbox::global_optimizer {

struct EtcdKeys {
  std::string leader, counter;
};
/// The keys of one fleet.
EtcdKeys etcd_keys(std::string_view fleet);

struct EtcdCall {
  std::string path;  ///< below the endpoint
  std::string body;
};
/// The call that puts a question; `self` is who stands.
EtcdCall call_for(const AskEtcd& ask, const EtcdKeys& keys, std::string_view self);

/// What etcd answered. Errors: invalid (not what etcd says), unavailable (it says that it cannot).
Result<EtcdAnswer> read_answer(const AskEtcd& ask, std::string_view body);

}  // namespace signalbox::global_optimizer
