#include "optimizer/wire/wire.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <msgpack.hpp>
#include <type_traits>

namespace signalbox::optimizer {
namespace {

static_assert(std::endian::native == std::endian::little,
              "columns are sent in the machine's order, which must be little-endian");

/// Rows of any table: above what the largest message could hold.
constexpr std::size_t max_rows = max_message_bytes / 4;

/// A message is one array of scalars and binary columns, in the order in which both ends name them.
class Writer {
 public:
  explicit Writer(std::uint32_t items) : packer_(buffer_) { packer_.pack_array(items); }
  void unsigned_number(std::uint64_t value) { packer_.pack(value); }
  void number(double value) { packer_.pack(value); }
  void text(const std::string& value) { packer_.pack(value); }
  template <class T>
  void column(const std::vector<T>& values) {
    const std::size_t bytes = values.size() * sizeof(T);
    packer_.pack_bin(static_cast<std::uint32_t>(bytes));
    packer_.pack_bin_body(reinterpret_cast<const char*>(values.data()), static_cast<std::uint32_t>(bytes));
  }
  /// One member of each row.
  template <class Row, class Get>
  void column_of(const std::vector<Row>& rows, Get get) {
    std::vector<std::decay_t<decltype(get(rows[0]))>> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(get(row));
    column(values);
  }
  /// A mostly zero column: its size, then the places and the values of what is not zero.
  void sparse(const std::vector<double>& values) {
    std::vector<std::uint32_t> places;
    std::vector<double> kept;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != 0.0) places.push_back(static_cast<std::uint32_t>(i)), kept.push_back(values[i]);
    unsigned_number(values.size());
    column(places);
    column(kept);
  }
  std::vector<std::uint8_t> take() const {
    const auto* data = reinterpret_cast<const std::uint8_t*>(buffer_.data());
    return {data, data + buffer_.size()};
  }

 private:
  msgpack::sbuffer buffer_;
  msgpack::packer<msgpack::sbuffer> packer_;
};

/// Reads what a Writer wrote. The first thing that is wrong is kept; after it everything reads as empty.
class Reader {
 public:
  Reader(std::span<const std::uint8_t> bytes, std::uint32_t items) { open(bytes, items); }

  std::uint64_t unsigned_number(std::string_view name) {
    const msgpack::object* item = next(name, msgpack::type::POSITIVE_INTEGER);
    return item ? item->via.u64 : 0;
  }
  /// MessagePack writes a whole number in the form of an integer, whatever it was.
  double number(std::string_view name) {
    if (!ok()) return 0.0;
    double value = std::numeric_limits<double>::quiet_NaN();
    if (at_ < items_.size()) {
      const msgpack::object& item = items_[at_++];
      if (item.type == msgpack::type::FLOAT64) value = item.via.f64;
      if (item.type == msgpack::type::POSITIVE_INTEGER) value = static_cast<double>(item.via.u64);
      if (item.type == msgpack::type::NEGATIVE_INTEGER) value = static_cast<double>(item.via.i64);
    }
    if (!std::isfinite(value)) return fail_with(fmt::format("{} is not a finite number", name)), 0.0;
    return value;
  }
  std::string text(std::string_view name) {
    const msgpack::object* item = next(name, msgpack::type::STR);
    return item ? std::string(item->via.str.ptr, item->via.str.size) : std::string();
  }
  template <class T>
  std::vector<T> column(std::string_view name) {
    const msgpack::object* item = next(name, msgpack::type::BIN);
    if (!item || item->via.bin.size == 0) return {};
    if (item->via.bin.size % sizeof(T) != 0)
      return fail_with(fmt::format("{} is not whole numbers of {} bytes", name, sizeof(T))), std::vector<T>();
    std::vector<T> values(item->via.bin.size / sizeof(T));
    std::memcpy(values.data(), item->via.bin.ptr, item->via.bin.size);
    if constexpr (std::is_same_v<T, double>)
      for (const double value : values)
        if (!std::isfinite(value))
          return fail_with(fmt::format("{} holds a number that is not finite", name)), std::vector<T>();
    return values;
  }
  /// A column of exactly this many rows.
  template <class T>
  std::vector<T> column(std::string_view name, std::size_t rows) {
    auto values = column<T>(name);
    if (ok() && values.size() != rows)
      fail_with(fmt::format("{} has {} rows, want {}", name, values.size(), rows));
    values.resize(rows);
    return values;
  }
  std::vector<double> sparse(std::string_view name) {
    const std::uint64_t size = unsigned_number(name);
    const auto places = column<std::uint32_t>(name);
    const auto kept = column<double>(name, places.size());
    if (size > max_rows) fail_with(fmt::format("{} has {} rows", name, size));
    if (!ok()) return {};
    std::vector<double> values(size, 0.0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] >= size)
        return fail_with(fmt::format("{} names row {} of {}", name, places[i], size)), std::vector<double>();
      values[places[i]] = kept[i];
    }
    return values;
  }
  bool ok() const { return what_.empty(); }
  void fail_with(std::string what) {
    if (what_.empty()) what_ = std::move(what);
  }
  tl::unexpected<Error> error(std::string where) const { return invalid(what_, std::move(where)); }

 private:
  void open(std::span<const std::uint8_t> bytes, std::uint32_t items) {
    if (bytes.size() > max_message_bytes)
      return fail_with(fmt::format("{} bytes exceed the limit of {}", bytes.size(), max_message_bytes));
    // Columns stay where they are; only the one array, of a known few items, is built. Nothing may nest.
    const msgpack::unpack_limit limit(items, 0, 4096, max_message_bytes, 0, 2);
    try {
      std::size_t offset = 0;
      handle_ = msgpack::unpack(
          reinterpret_cast<const char*>(bytes.data()), bytes.size(), offset,
          [](msgpack::type::object_type, std::size_t, void*) { return true; }, nullptr, limit);
      if (offset != bytes.size()) return fail_with("bytes follow the message");
    } catch (const std::exception& error) {
      return fail_with(fmt::format("not MessagePack within the limits: {}", error.what()));
    }
    const msgpack::object& object = handle_.get();
    if (object.type != msgpack::type::ARRAY || object.via.array.size != items)
      return fail_with(fmt::format("want one array of {} items", items));
    items_ = {object.via.array.ptr, items};
  }

  const msgpack::object* next(std::string_view name, msgpack::type::object_type type) {
    if (!ok()) return nullptr;
    if (at_ == items_.size() || items_[at_].type != type)
      return fail_with(fmt::format("{} is of the wrong type", name)), nullptr;
    return &items_[at_++];
  }

  msgpack::object_handle handle_;
  std::span<const msgpack::object> items_;
  std::size_t at_ = 0;
  std::string what_;
};

constexpr std::uint32_t request_items = 29, plan_items = 21, refusal_items = 5;
enum class ReplyKind : std::uint8_t { plan = 1, refusal = 2 };

std::uint32_t bounded(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}

void write_problem(Writer& out, const Problem& problem) {
  out.column_of(problem.sources, [](const Source& s) { return s.cluster.value; });
  out.column_of(problem.sources, [](const Source& s) { return s.service_class.value; });
  out.column_of(problem.sources, [](const Source& s) { return s.demand_per_s; });
  out.column_of(problem.sources, [](const Source& s) { return s.shed_cost_s; });
  out.column_of(problem.sources, [](const Source& s) { return s.floor_fraction; });
  out.column_of(problem.sources, [](const Source& s) { return s.floor_shed_cost_s; });
  out.column_of(problem.sources, [](const Source& s) { return s.pair_count; });
  out.column_of(problem.engines, [](const EngineLoad& e) { return e.curve.q; });
  out.column_of(problem.engines, [](const EngineLoad& e) { return e.curve.capacity; });
  out.column_of(problem.engines, [](const EngineLoad& e) { return e.curve.ceiling; });
  out.column_of(problem.pairs, [](const Pair& p) { return p.engine.value; });
  out.column_of(problem.pairs, [](const Pair& p) { return p.cost_s; });
  out.column_of(problem.pairs, [](const Pair& p) { return p.work_s; });
  out.sparse(problem.reference_per_s);
  out.number(problem.churn_cost_s);
  out.column_of(problem.caps, [](const ShareCap& cap) { return cap.most; });
  std::vector<std::uint32_t> groups;
  for (const ShareCap& cap : problem.caps) groups.insert(groups.end(), cap.group.begin(), cap.group.end());
  out.column(groups);
}

Problem read_problem(Reader& in) {
  Problem problem;
  const auto clusters = in.column<std::uint32_t>("sources.cluster");
  const std::size_t sources = clusters.size();
  const auto classes = in.column<std::uint32_t>("sources.class", sources);
  const auto demands = in.column<double>("sources.demand_per_s", sources);
  const auto costs = in.column<double>("sources.shed_cost_s", sources);
  const auto floors = in.column<double>("sources.floor_fraction", sources);
  const auto floor_costs = in.column<double>("sources.floor_shed_cost_s", sources);
  const auto counts = in.column<std::uint32_t>("sources.pair_count", sources);
  const auto qs = in.column<double>("engines.q");
  const auto capacities = in.column<double>("engines.capacity", qs.size());
  const auto ceilings = in.column<double>("engines.ceiling", qs.size());
  const auto engines = in.column<std::uint32_t>("pairs.engine");
  const auto pair_costs = in.column<double>("pairs.cost_s", engines.size());
  const auto works = in.column<double>("pairs.work_s", engines.size());
  problem.reference_per_s = in.sparse("reference_per_s");
  problem.churn_cost_s = in.number("churn_cost_s");
  const auto most = in.column<double>("caps.most");
  const auto groups = in.column<std::uint32_t>("caps.group", most.size() * qs.size());
  if (!in.ok()) return {};
  std::uint32_t first = 0;
  for (std::size_t s = 0; s < sources; ++s) {
    problem.sources.push_back({ClusterIndex(clusters[s]), ClassIndex(classes[s]), demands[s], costs[s],
                               floors[s], floor_costs[s], first, counts[s]});
    first += counts[s];
  }
  for (std::size_t e = 0; e < qs.size(); ++e)
    problem.engines.push_back({{qs[e], capacities[e], ceilings[e]}});
  for (std::size_t i = 0; i < engines.size(); ++i)
    problem.pairs.push_back({EngineIndex(engines[i]), pair_costs[i], works[i]});
  for (std::size_t c = 0; c < most.size(); ++c) {
    const auto first_group = groups.begin() + static_cast<std::ptrdiff_t>(c * qs.size());
    problem.caps.push_back({{first_group, first_group + static_cast<std::ptrdiff_t>(qs.size())}, most[c]});
  }
  return problem;
}

Status check_plan(const Plan& plan, const Problem& problem) {
  const auto sized = [](const auto& column, std::size_t rows) { return column.size() == rows; };
  if (!sized(plan.flow_per_s, problem.pairs.size()) || !sized(plan.shed_per_s, problem.sources.size()) ||
      !sized(plan.load, problem.engines.size()) || !sized(plan.price, problem.engines.size()) ||
      !sized(plan.source_price_s, problem.sources.size()))
    return invalid("the plan is of another size than the problem", "reply");
  for (const auto* column : {&plan.flow_per_s, &plan.shed_per_s, &plan.load})
    for (const double value : *column)
      if (value < 0.0) return invalid("a rate or load is negative", "reply");
  for (const BindingLimit& limit : plan.binding)
    if (limit.row >= (limit.limit == Limit::engine_ceiling ? problem.engines.size() : problem.sources.size()))
      return invalid("a binding limit names no row", "reply");
  return {};
}

}  // namespace

std::vector<std::uint8_t> encode(const SolveRequest& request) {
  Writer out(request_items);
  out.unsigned_number(request.id);
  write_problem(out, request.problem);
  out.number(request.options.target_gap);
  out.unsigned_number(request.options.max_rounds);
  out.unsigned_number(request.options.sweeps_per_round);
  out.unsigned_number(request.options.dual_iterations);
  out.column(request.warm.price);
  out.sparse(request.warm.flow_per_s);
  out.column(request.warm.shed_per_s);
  return out.take();
}

Result<SolveRequest> decode_request(std::span<const std::uint8_t> bytes) {
  Reader in(bytes, request_items);
  SolveRequest request;
  request.id = in.unsigned_number("id");
  request.problem = read_problem(in);
  request.options.target_gap = in.number("target_gap");
  request.options.max_rounds = bounded(in.unsigned_number("max_rounds"));
  request.options.sweeps_per_round = bounded(in.unsigned_number("sweeps_per_round"));
  request.options.dual_iterations = bounded(in.unsigned_number("dual_iterations"));
  request.warm.price = in.column<double>("warm.price");
  request.warm.flow_per_s = in.sparse("warm.flow_per_s");
  request.warm.shed_per_s = in.column<double>("warm.shed_per_s");
  if (!in.ok()) return in.error("solve request");
  if (auto ok = check(request.problem); !ok) return tl::unexpected(std::move(ok.error()).within("problem"));
  return request;
}

std::vector<std::uint8_t> encode(const SolveReply& reply) {
  if (!reply.plan) {
    Writer out(refusal_items);
    out.unsigned_number(static_cast<std::uint64_t>(ReplyKind::refusal));
    out.unsigned_number(reply.id);
    out.unsigned_number(static_cast<std::uint64_t>(reply.plan.error().kind));
    out.text(reply.plan.error().what.substr(0, 1024));
    out.text(reply.plan.error().where.substr(0, 1024));
    return out.take();
  }
  const Plan& plan = *reply.plan;
  Writer out(plan_items);
  out.unsigned_number(static_cast<std::uint64_t>(ReplyKind::plan));
  out.unsigned_number(reply.id);
  out.sparse(plan.flow_per_s);
  out.column(plan.shed_per_s);
  out.column(plan.load);
  out.column(plan.price);
  out.column(plan.source_price_s);
  out.number(plan.certificate.objective);
  out.number(plan.certificate.lower_bound);
  out.number(plan.certificate.relative_gap);
  for (const double term : plan.terms) out.number(term);
  out.column_of(plan.binding, [](const BindingLimit& b) { return static_cast<std::uint8_t>(b.limit); });
  out.column_of(plan.binding, [](const BindingLimit& b) { return b.row; });
  out.column_of(plan.binding, [](const BindingLimit& b) { return b.value_s; });
  out.unsigned_number((std::uint64_t{plan.sweeps} << 32) | plan.dual_iterations);
  out.unsigned_number(static_cast<std::uint64_t>(plan.stop));
  return out.take();
}

Result<SolveReply> decode_reply(std::span<const std::uint8_t> bytes, const Problem& problem) {
  if (Reader refusal(bytes, refusal_items); refusal.ok()) {
    if (refusal.unsigned_number("kind") != static_cast<std::uint64_t>(ReplyKind::refusal))
      refusal.fail_with("kind is not a refusal");
    const std::uint64_t id = refusal.unsigned_number("id");
    const std::uint64_t kind = refusal.unsigned_number("error kind");
    std::string what = refusal.text("what"), where = refusal.text("where");
    if (!refusal.ok()) return refusal.error("solve reply");
    if (kind > static_cast<std::uint64_t>(ErrorKind::internal))
      return invalid("the error is of an unknown kind", "solve reply");
    return SolveReply{id, fail(static_cast<ErrorKind>(kind), std::move(what), std::move(where))};
  }
  Reader in(bytes, plan_items);
  if (in.ok() && in.unsigned_number("kind") != static_cast<std::uint64_t>(ReplyKind::plan))
    in.fail_with("kind is not a plan");
  const std::uint64_t id = in.unsigned_number("id");
  Plan plan;
  plan.flow_per_s = in.sparse("flow_per_s");
  plan.shed_per_s = in.column<double>("shed_per_s");
  plan.load = in.column<double>("load");
  plan.price = in.column<double>("price");
  plan.source_price_s = in.column<double>("source_price_s");
  plan.certificate = {in.number("objective"), in.number("lower_bound"), in.number("relative_gap")};
  for (double& term : plan.terms) term = in.number("term");
  const auto limits = in.column<std::uint8_t>("binding.limit");
  const auto rows = in.column<std::uint32_t>("binding.row", limits.size());
  const auto values = in.column<double>("binding.value_s", limits.size());
  const std::uint64_t counts = in.unsigned_number("counts");
  const std::uint64_t stop = in.unsigned_number("stop");
  for (const std::uint8_t limit : limits)
    if (limit > static_cast<std::uint8_t>(Limit::floor))
      in.fail_with("a binding limit is of an unknown kind");
  if (stop > static_cast<std::uint64_t>(Stop::stalled)) in.fail_with("the stop reason is unknown");
  if (!in.ok()) return in.error("solve reply");
  for (std::size_t i = 0; i < limits.size(); ++i)
    plan.binding.push_back({static_cast<Limit>(limits[i]), rows[i], values[i]});
  plan.sweeps = static_cast<std::uint32_t>(counts >> 32);
  plan.dual_iterations = static_cast<std::uint32_t>(counts);
  plan.stop = static_cast<Stop>(stop);
  if (auto ok = check_plan(plan, problem); !ok) return tl::unexpected(ok.error());
  return SolveReply{id, std::move(plan)};
}

std::array<std::uint8_t, 4> length_prefix(std::size_t bytes) {
  const auto n = static_cast<std::uint32_t>(bytes);
  return {static_cast<std::uint8_t>(n), static_cast<std::uint8_t>(n >> 8), static_cast<std::uint8_t>(n >> 16),
          static_cast<std::uint8_t>(n >> 24)};
}

std::uint32_t read_length(std::span<const std::uint8_t, 4> prefix) {
  return prefix[0] | (std::uint32_t{prefix[1]} << 8) | (std::uint32_t{prefix[2]} << 16) |
         (std::uint32_t{prefix[3]} << 24);
}

}  // namespace signalbox::optimizer
