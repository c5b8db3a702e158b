// The two tables of filters, by what they work on.
#pragma once

#include <span>

#include "text/jinja/callable.h"

namespace eider::jinja {

std::span<const NamedBuiltin> text_filters();      // filters.cpp: strings, numbers, JSON
std::span<const NamedBuiltin> sequence_filters();  // sequence_filters.cpp: what iterates

}  // namespace eider::jinja
