// Puts questions to etcd over HTTP, one at a time, on a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/global_optimizer/etcd/api.hpp"

namespace signalbox::global_optimizer {

struct EtcdOptions {
  std::vector<std::string>
      endpoints;                 ///< http(s)://host:port; the next one is asked when one does not answer
  std::string authorities;       ///< PEM file for https; empty: the system's
  std::string certificate, key;  ///< PEM files to show to etcd; empty: none
  EtcdKeys keys;
  std::string self;
};

class EtcdClient {
 public:
  /// Called on the client's thread, once for each question, unless the client ends first.
  using Done = std::function<void(EtcdAnswer answer)>;

  explicit EtcdClient(EtcdOptions options);
  ~EtcdClient();

  /// Thread-safe; never waits.
  void ask(const AskEtcd& question, Done done);

 private:
  struct Job {
    AskEtcd question;
    Done done;
  };
  void run(std::stop_token stop);
  EtcdAnswer answer(const AskEtcd& question, std::stop_token stop);

  EtcdOptions options_;
  std::size_t endpoint_ = 0;  ///< that answered last
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::vector<Job> waiting_;
  std::jthread thread_;  ///< last: it ends before what it uses
};

}  // namespace signalbox::global_optimizer
