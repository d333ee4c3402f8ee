// What the operator of `top` has chosen: the view, the order, the filter, the engine looked into. Keys change it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/base/described.hpp"
#include "messages/base/ids.hpp"

namespace signalbox::top {

enum class Tab : std::uint8_t { engines, demand, routers, processes, alerts };
enum class Sort : std::uint8_t { fleet, name, health, use, running, waiting, kv, latency, weight, failed };

/// Keys that are no characters.
enum Key : int {
  key_up = 1000,
  key_down,
  key_page_up,
  key_page_down,
  key_home,
  key_end,
  key_enter,
  key_escape,
  key_back
};

/// What a key asks of the shell.
enum class Wish : std::uint8_t { none, quit, explain };

struct Ui {
  Tab tab = Tab::engines;
  Sort sort = Sort::fleet;
  bool reverse = false;
  std::string filter;        ///< a part of an engine's name, cluster, model or state
  bool by_cluster = true;    ///< engines under their clusters
  std::size_t selected = 0;  ///< row
  std::size_t first = 0;     ///< row at the top of the list
  EngineName detail;         ///< looked into; empty: the list
  bool help = false;
  bool paused = false;
  enum class Typing : std::uint8_t { nothing, filter, decision } typing = Typing::nothing;
  std::string typed;
  std::string explanation;  ///< shown instead of the list
  std::size_t explanation_first = 0;

  /// `shown`: the engines of the list as drawn; `page`: rows on a page.
  Wish on_key(int key, const std::vector<EngineName>& shown, std::size_t rows, std::size_t page);

 private:
  Wish on_typing(int key);
  void move(std::ptrdiff_t by, std::size_t rows);
};

}  // namespace signalbox::top

template <>
struct signalbox::EnumTable<signalbox::top::Tab> {
  static constexpr std::array rows{
      EnumRow{"engines", "load, health and weight of each engine"},
      EnumRow{"demand", "what is asked for, by cluster and class"},
      EnumRow{"routers", "what each router serves by"},
      EnumRow{"processes", "every process that beats"},
      EnumRow{"alerts", "what is raised now"},
  };
};
template <>
struct signalbox::EnumTable<signalbox::top::Sort> {
  static constexpr std::array rows{
      EnumRow{"fleet", "the fleet table's order"},
      EnumRow{"name", "by name"},
      EnumRow{"health", "the worst first"},
      EnumRow{"use", "planned load over capacity, the highest first"},
      EnumRow{"running", "requests in the batch, the most first"},
      EnumRow{"waiting", "requests that wait, the most first"},
      EnumRow{"kv", "KV memory in use, the fullest first"},
      EnumRow{"latency", "mean end-to-end time, the longest first"},
      EnumRow{"weight", "share of the planned requests, the largest first"},
      EnumRow{"failed", "failed attempts, the most first"},
  };
};
