// Fields: a request's JSON object, read field by field. The first thing that is wrong is kept, with the
// field's name, and reading goes on with defaults, so that an endpoint lists its fields like its API's page
// does. What nobody asked for is refused by name at the end.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"

namespace eider::server {

using Json = nlohmann::ordered_json;

/// The first problem that was met.
class Problem {
 public:
  void add(std::string param, std::string message, std::string code = {});
  const std::optional<ApiError>& first() const { return first_; }
  bool none() const { return !first_; }

 private:
  std::optional<ApiError> first_;
};

class Fields {
 public:
  /// `object` and `problem` must outlive this; `place` is the object's own name, empty for the body. What is
  /// no object is a problem, and reads like an empty one.
  Fields(const Json& object, std::string place, Problem& problem);

  // A field that is absent or null gives nothing; one of another type or out of range is a problem.

  /// Any value; null where there is none. Valid as long as the object.
  const Json* value(std::string_view key);
  std::optional<std::string> string(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<double> number(std::string_view key, double low, double high);
  /// One string, or an array of at most `most` of them.
  std::vector<std::string> strings(std::string_view key, std::size_t most);
  const Json* array(std::string_view key);
  const Json* object(std::string_view key);
  /// The field is one of these; the index of which.
  std::optional<std::size_t> choice(std::string_view key, std::initializer_list<std::string_view> choices);

  /// Fields without effect on the answer.
  void ignore(std::initializer_list<std::string_view> keys);
  /// Fields that would have an effect and are not built: a problem where they are there.
  void refuse(std::initializer_list<std::string_view> keys, std::string_view why);
  /// A required field is missing.
  void require(std::string_view key);
  /// Says that a field is wrong.
  void fail(std::string_view key, std::string message, std::string code = {});
  /// The rest: fields that nobody asked for are problems.
  void finish();

  /// "messages[2].content"
  std::string path(std::string_view key) const;
  Problem& problem() { return *problem_; }

 private:
  const Json* object_;
  std::string place_;
  Problem* problem_;
  std::set<std::string, std::less<>> known_;
};

/// The body as an object: valid UTF-8, of bounded depth, no key twice.
std::optional<Json> parse_body(std::string_view body, Problem& problem);

}  // namespace eider::server
