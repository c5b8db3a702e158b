// JsonAutomaton: reads the text of one JSON object byte by byte and knows at each which may follow: a
// push-down automaton whose stack is the open objects and arrays.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

namespace eider::server {

/// Small and without pointers, so that trying a token is a copy.
class JsonAutomaton {
 public:
  /// Takes one more byte; false, and the automaton is of no further use, where no JSON object goes on like
  /// that. At most 64 levels are opened, and no more than 64 bytes of white space follow each other: a model
  /// that is held to JSON might otherwise print spaces for ever.
  bool take(char c);
  bool take(std::string_view text);

  /// The object is whole; nothing may follow.
  bool done() const { return state_ == State::kDone; }
  /// Inside of a string, where all bytes may follow but quotes, backslashes and control characters, which may
  /// or may not.
  bool in_string() const { return state_ == State::kString; }

 private:
  enum class State : std::uint8_t {
    kStart,          // the object's brace
    kFirstKey,       // behind '{'
    kKey,            // behind ',' in an object
    kColon,          // behind a key
    kFirstValue,     // behind '['
    kValue,          // behind ':', or ',' in an array
    kAfterValue,     // ',' or the end of what is open
    kString,         // in a string ...
    kEscape,         // ... behind a backslash
    kHex,            // ... in the digits of \u
    kMinus,          // in a number: behind '-'
    kZero,           // ... that began with 0
    kInteger,        // ... in its other integer digits
    kPoint,          // ... behind '.'
    kFraction,       // ... in digits of the fraction
    kExponentStart,  // ... behind 'e'
    kExponentSign,   // ... behind its sign
    kExponent,       // ... in its digits
    kLiteral,        // in true, false or null
    kDone,
  };
  static constexpr int kMostLevels = 64;
  static constexpr int kMostSpaces = 64;

  bool open(bool object, State next);
  bool close(bool object);
  bool begin_value(char c);
  bool take_in_string(char c);
  bool take_in_number(char c);
  bool take_after_value(char c);
  bool in_number() const { return state_ >= State::kMinus && state_ <= State::kExponent; }

  State state_ = State::kStart;
  bool string_is_key_ = false;
  std::uint8_t digits_left_ = 0;  // of \u
  std::uint8_t spaces_ = 0;       // of white space outside of strings, in a row
  std::uint8_t levels_ = 0;
  const char* literal_ = nullptr;  // what must still come of it
  std::bitset<kMostLevels> is_object_;
};

}  // namespace eider::server
