#include "tools/order/order.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <vector>

#include "tools/cli/observer.hpp"

namespace signalbox::order {
namespace {

/// Receipts for one order, as they come in.
struct Receipts {
  std::mutex mutex;
  std::condition_variable came;
  std::vector<schema::OrderReceipt> all;
  bool bus_is_there = false;

  bool done() const {
    for (const schema::OrderReceipt& receipt : all)
      if (receipt.done) return true;
    return false;
  }
};

Status check_names(const config::Config& config, const schema::Order& order) {
  if (!order.engine.empty() && config.find_engine(order.engine) == nullptr)
    return fail(ErrorKind::not_found, fmt::format("the fleet has no engine '{}'", order.engine), {},
                "'signalbox inspect engines' lists them");
  for (const ClusterName& cluster : {order.from, order.to})
    if (!cluster.empty() && config.find_cluster(cluster) == nullptr)
      return fail(ErrorKind::not_found, fmt::format("the fleet has no cluster '{}'", cluster));
  if (order.target.str() != "all" && config.find_process(order.target) == nullptr)
    return fail(ErrorKind::not_found, fmt::format("the fleet has no process '{}'", order.target));
  if (order.kind == schema::OrderKind::resign &&
      config.find_process(order.target)->role != name_of(Role::global_optimizer))
    return fail(ErrorKind::not_found,
                fmt::format("'{}' is not a global-optimizer and leads nobody", order.target), {},
                "'signalbox inspect leader' lists them");
  return {};
}

std::string user_name() {
  char name[65] = {};
  return ::getlogin_r(name, sizeof name - 1) == 0 ? name : fmt::format("uid-{}", ::getuid());
}

}  // namespace

Status give(const cli::Fleet& fleet, GiveOptions options) {
  schema::Order& order = options.order;
  if (const Status names = check_names(fleet.config, order); !names) return names;
  order.id = fmt::format("{}-{}", ::getpid(), cli::monotonic_now().time_since_epoch().count());
  order.operator_name = user_name();
  Receipts receipts;
  bus::NodeHandlers handlers;
  handlers.on_delivery = [&](const schema::DeliveryPtr& delivery) {
    const std::lock_guard lock(receipts.mutex);
    receipts.bus_is_there = true;
    const auto* receipt = std::get_if<schema::OrderReceipt>(&delivery->message);
    if (receipt != nullptr && receipt->order == order.id) receipts.all.push_back(*receipt);
    receipts.came.notify_one();
  };
  auto node = cli::join_bus(fleet, cli::tool_id, {"order_receipt/", "beat/"}, std::move(handlers));
  if (!node) return tl::unexpected(node.error());
  std::unique_lock lock(receipts.mutex);
  const Instant end = cli::monotonic_now() + from_seconds(options.wait_s);
  // A beat says that the way to the bus is open; before that an order would be said to nobody.
  receipts.came.wait_for(lock, from_seconds(options.wait_s), [&] { return receipts.bus_is_there; });
  if (!receipts.bus_is_there) return tl::unexpected(cli::nobody_there(fleet));
  if (const Status said = (*node)->publish(order); !said) return said;
  // Some may refuse where another one does it: the first answer is not the last.
  constexpr Duration others = 500ms;
  receipts.came.wait_for(lock, end - cli::monotonic_now(), [&] { return !receipts.all.empty(); });
  receipts.came.wait_for(lock, others, [&] { return receipts.done(); });
  for (const schema::OrderReceipt& receipt : receipts.all)
    fmt::print("{}: {}{}\n", receipt.id, receipt.done ? "done" : "refused",
               receipt.detail.empty() ? "" : ", " + receipt.detail);
  const bool done = receipts.done(), answered = !receipts.all.empty();
  lock.unlock();
  (*node)->stop();
  if (done) return {};
  if (!answered)
    return fail(ErrorKind::unavailable, fmt::format("nobody answered within {:.1f} s", options.wait_s),
                std::string(name_of(order.kind)), "'signalbox inspect processes' shows who is there");
  return fail(ErrorKind::conflict, "nobody carried it out", std::string(name_of(order.kind)));
}

}  // namespace signalbox::order
