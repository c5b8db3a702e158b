// What the readers of tokenizer.json's parts share: lists of components, and patterns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"
#include "weights/json_element.h"

namespace eider {

/// The parts of a component that may be a Sequence of several (its member `list`), in order; none where it is
/// absent.
Result<std::vector<JsonElement>> component_parts(const std::optional<JsonElement>& component,
                                                 std::string_view list);

/// The error of a part whose type is not among `known`.
Error unknown_component(const JsonElement& part, std::string_view known);

/// The member `pattern` of a Split or Replace: plain text, or a regular expression for our engine.
struct ComponentPattern {
  std::string text;
  bool is_regex = false;
};
Result<ComponentPattern> component_pattern(const JsonElement& part);
/// One that must be plain text.
Result<std::string> plain_component_pattern(const JsonElement& part);

/// Whether `part` puts spaces where encoding does not want them kept, by Metaspace's `prepend_scheme` and
/// `add_prefix_space`. A replacement other than U+2581 is an error.
Result<SpaceRule> read_metaspace(const JsonElement& part);

// The parts themselves; each adds to `vocabulary` what `root`, the whole document, says. An unknown type is
// an error that names it.
Status read_normalizer(const JsonElement& root, Vocabulary& vocabulary);
Status read_pre_tokenizer(const JsonElement& root, Vocabulary& vocabulary);
Status read_decoder(const JsonElement& root, Vocabulary& vocabulary);
Status read_post_processor(const JsonElement& root, Vocabulary& vocabulary);

}  // namespace eider
