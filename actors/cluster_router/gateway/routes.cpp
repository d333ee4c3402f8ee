#include "actors/cluster_router/gateway/routes.hpp"

namespace signalbox::gateway {
namespace {

std::string authority_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  return std::string(url.substr(0, url.find('/')));
}

EngineDoor door_of(const schema::EngineRow& row, const EngineAccessMap& access, net::TlsTrust& trust) {
  EngineDoor door{row.name, authority_of(row.url), {}, {}, {}, {}};
  if (const auto found = access.find(row.name); found != access.end()) door.access = found->second;
  auto address = net::resolve_url(row.url);
  auto tls = trust.client_for(row.url, row.tls_identity, door.access.tls_authorities);
  if (!address || !tls)
    door.problem = !address ? address.error().text() : tls.error().text();
  else
    door.address = *address, door.tls = *std::move(tls);
  return door;
}

}  // namespace

std::shared_ptr<const AddressBook> build_address_book(const schema::FleetTable& table,
                                                      const EngineAccessMap& access) {
  auto book = std::make_shared<AddressBook>();
  book->reserve(table.engines.size());
  net::TlsTrust trust;
  for (const schema::EngineRow& row : table.engines) book->push_back(door_of(row, access, trust));
  return book;
}

}  // namespace signalbox::gateway
