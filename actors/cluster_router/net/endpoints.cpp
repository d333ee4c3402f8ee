#include "actors/cluster_router/net/endpoints.hpp"

#include <array>

#include "actors/cluster_router/http/errors.hpp"

namespace signalbox::net {

Answer json_answer(int status, std::string body) { return {status, "application/json", std::move(body)}; }

const Endpoints::Function* Endpoints::find(const Table& table, std::string_view path,
                                           std::string_view& rest) {
  rest = {};
  if (const auto exact = table.find(path); exact != table.end()) return &exact->second;
  for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    if (const auto prefix = table.find(path.substr(0, slash + 1)); prefix != table.end()) {
      rest = path.substr(slash + 1);
      return &prefix->second;
    }
  }
  return nullptr;
}

void Endpoints::on_request(ResponseWriterPtr writer) {
  const Request& request = writer->request();
  const std::string_view path = request.head.path();
  const bool posted = request.head.method == "POST";
  const bool known_method = posted || request.head.method == "GET" || request.head.method == "HEAD";
  std::string_view rest;
  if (const Function* function = known_method ? find(posted ? posts_ : gets_, path, rest) : nullptr) {
    const Answer answer = (*function)(request, rest);
    const std::array fields{http::Field{"content-type", answer.content_type}};
    return writer->respond(answer.status, fields, answer.body);
  }
  const bool other_method = find(gets_, path, rest) != nullptr || find(posts_, path, rest) != nullptr;
  if (other_method)
    respond_error(*writer, 405, "method_not_allowed", "this path is served to another method");
  else
    respond_error(*writer, 404, "unknown_path", "there is nothing at this path");
}

}  // namespace signalbox::net
