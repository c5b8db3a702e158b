// What Python does with strings: characters are code points, white space and case are Unicode's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eider::jinja {

/// Bytes of the character that `text` (not empty) begins with; a byte that is not UTF-8 counts as a
/// character.
std::size_t character_size(std::string_view text);
/// len(text)
std::int64_t text_length(std::string_view text);
/// One string a character.
std::vector<std::string_view> characters(std::string_view text);

bool is_space(char32_t code_point);
/// An empty `set` means white space, as None does in Python.
std::string_view strip_left(std::string_view text, std::string_view set = {});
std::string_view strip_right(std::string_view text, std::string_view set = {});
std::string_view strip(std::string_view text, std::string_view set = {});

std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
std::string capitalize(std::string_view text);
std::string title_case(std::string_view text);
std::string swap_case(std::string_view text);

/// text.split(separator, limit); an empty separator splits at runs of white space. A negative limit is none.
std::vector<std::string_view> split(std::string_view text, std::string_view separator, std::int64_t limit);
std::vector<std::string_view> split_right(std::string_view text, std::string_view separator,
                                          std::int64_t limit);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

/// How often `part` occurs without overlap; an empty one occurs around every character.
std::int64_t count_occurrences(std::string_view text, std::string_view part);
/// text.replace(from, to, limit)
std::string replace(std::string_view text, std::string_view from, std::string_view to, std::int64_t limit);

/// repr(text)
std::string quote(std::string_view text);
/// repr(value): the shortest digits that read back as `value`.
std::string format_float(double value);

}  // namespace eider::jinja
