#include "actors/cluster_router/gateway/meters.hpp"

#include <algorithm>

namespace signalbox::gateway {

void Histogram::add(double value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  sum_ += value;
}

Histogram& Histogram::operator+=(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  sum_ += other.sum_;
  return *this;
}

Meter& Meter::operator+=(const Meter& other) {
  requests += other.requests;
  running += other.running;
  for (std::size_t i = 0; i < endings; ++i) ended[i] += other.ended[i];
  duration_s += other.duration_s;
  first_token_s += other.first_token_s;
  per_token_s += other.per_token_s;
  input_tokens += other.input_tokens;
  output_tokens += other.output_tokens;
  return *this;
}

std::vector<Meter> summed(std::vector<Meter> meters) {
  std::map<std::pair<std::string, http::Endpoint>, Meter> rows;
  for (const Meter& meter : meters)
    if (const auto [row, first] = rows.try_emplace({meter.model, meter.endpoint}, meter); !first)
      row->second += meter;
  std::vector<Meter> out;
  for (const auto& [key, meter] : rows) out.push_back(meter);
  return out;
}

std::string_view error_type(Ending ending) {
  switch (ending) {
    case Ending::good: return "";
    case Ending::refused: return "refused";
    case Ending::engine_error: return "engine_error";
    case Ending::broken: return "broken";
    case Ending::client_left: return "client_left";
  }
  return "";
}

Meter& Meters::of(std::string_view model, http::Endpoint endpoint) {
  if (const auto known = meters_.find({model, endpoint}); known != meters_.end()) return *known->second;
  auto meter = std::make_unique<Meter>();
  meter->model = model;
  meter->endpoint = endpoint;
  const Key key{meter->model, endpoint};
  return *meters_.emplace(key, std::move(meter)).first->second;
}

std::vector<Meter> Meters::all() const {
  std::vector<Meter> out;
  for (const auto& [key, meter] : meters_) out.push_back(*meter);
  return out;
}

}  // namespace signalbox::gateway
