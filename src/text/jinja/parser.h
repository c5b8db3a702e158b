// Parser: tokens to the syntax tree, by Jinja2's grammar.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"

namespace eider::jinja {

/// `source`: as normalize_source() returns it. Throws Failure with the offset.
Body parse(std::string_view source);

}  // namespace eider::jinja
