#include "cluster-config/policy/compiled.hpp"

#include <algorithm>
#include <numeric>

#include "cluster-config/policy/quantity.hpp"

namespace signalbox::policy {
namespace {

constexpr std::uint16_t not_found = 404;

bool matches(const ClassRow& row, const RequestAttributes& request, Version version) {
  const std::size_t asked_bit = request.asked ? static_cast<std::size_t>(*request.asked) : criticality_count;
  return row.asked.test(asked_bit) && row.versions.contains(version) &&
         row.tokens_low <= request.estimated_tokens && request.estimated_tokens <= row.tokens_high &&
         std::ranges::any_of(row.tenants, [&](const TenantPattern& p) { return p.matches(request.tenant); });
}

Classified refuse(Rule rule, std::uint16_t status) {
  Classified out;
  out.rule = rule;
  out.status = status;
  return out;
}

Classified admit(ClassIndex index, const ClassRow& row, std::optional<Criticality> asked) {
  Classified out;
  out.index = index;
  out.rule = Rule::matched;
  out.criticality = asked ? std::min(*asked, row.criticality) : row.criticality;
  out.capped = asked && *asked > row.criticality;
  return out;
}

}  // namespace

bool Retry::retries_status(int status) const {
  return std::ranges::any_of(statuses, [status](std::uint16_t s) { return s == status; });
}

bool CompiledPolicy::limits_rows() const {
  return limits.caps_weights() || !limits.survive.empty() || limits.churn.limited() ||
         std::ranges::any_of(classes, [](const ClassRow& row) { return row.spread_engines > 1; });
}

void CompiledPolicy::index() {
  classes_of_model.assign(models.size(), {});
  for (std::size_t i = 0; i < classes.size(); ++i)
    classes_of_model[classes[i].model.at()].push_back(ClassIndex(i));
  models_by_name.clear();
  for (std::size_t i = 0; i < models.size(); ++i) models_by_name.push_back(ModelIndex(i));
  std::ranges::sort(models_by_name, {},
                    [this](ModelIndex m) -> const std::string& { return at(m).name.str(); });
}

std::optional<ModelIndex> CompiledPolicy::find_model(std::string_view model) const {
  const auto name_at = [this](ModelIndex m) -> std::string_view { return at(m).name.str(); };
  const auto found = std::ranges::lower_bound(models_by_name, model, {}, name_at);
  if (found == models_by_name.end() || name_at(*found) != model) return std::nullopt;
  return *found;
}

std::optional<ClassIndex> CompiledPolicy::find_class(std::string_view class_name) const {
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (classes[i].name.str() == class_name) return ClassIndex(i);
  return std::nullopt;
}

Classified CompiledPolicy::classify(const RequestAttributes& request) const {
  const std::optional<ModelIndex> model = find_model(request.model);
  if (!model) return refuse(Rule::unknown_model, not_found);
  Version asked_version = at(*model).versions.high;
  if (!request.version.empty()) {
    const std::optional<Version> parsed = read_version(request.version);
    if (!parsed || !at(*model).versions.contains(*parsed)) return refuse(Rule::unknown_version, not_found);
    asked_version = *parsed;
  }
  for (const ClassIndex index : classes_of_model[model->at()])
    if (matches(at(index), request, asked_version)) return admit(index, at(index), request.asked);
  return refuse(Rule::otherwise, otherwise_status);
}

bool CompiledPolicy::allows(ClassIndex index, const DomainPath& path) const {
  const ClassRow& row = at(index);
  if (row.any_zone) return true;
  for (std::size_t z = 0; z < zones.size(); ++z) {
    if (!row.zones.test(z) || zones[z].name.str() != path.zone) continue;
    return std::ranges::any_of(zones[z].regions,
                               [&](const DomainName& region) { return region.str() == path.region; });
  }
  return false;
}

}  // namespace signalbox::policy
