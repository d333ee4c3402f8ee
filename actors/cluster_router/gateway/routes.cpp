#include "actors/cluster_router/gateway/routes.hpp"

namespace signalbox::gateway {
namespace {

std::string authority_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  return std::string(url.substr(0, url.find('/')));
}

EngineDoor door_of(const schema::EngineRow& row, const EngineAccessMap& access) {
  EngineDoor door{row.name, authority_of(row.url), {}, {}, {}};
  if (const auto found = access.find(row.name); found != access.end()) door.access = found->second;
  if (auto address = net::resolve_url(row.url))
    door.address = *address;
  else
    door.problem = address.error().text();
  return door;
}

}  // namespace

std::shared_ptr<const AddressBook> build_address_book(const schema::FleetTable& table,
                                                      const EngineAccessMap& access) {
  auto book = std::make_shared<AddressBook>();
  book->reserve(table.engines.size());
  for (const schema::EngineRow& row : table.engines) book->push_back(door_of(row, access));
  return book;
}

}  // namespace signalbox::gateway
