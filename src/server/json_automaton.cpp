#include "server/json_automaton.h"

#include <algorithm>

namespace eider::server {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

}  // namespace

bool JsonAutomaton::take(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [this](char c) { return take(c); });
}

bool JsonAutomaton::take(char c) {
  if (state_ == State::kString || state_ == State::kEscape || state_ == State::kHex) return take_in_string(c);
  if (state_ == State::kLiteral) {
    if (c != *literal_++) return false;
    if (*literal_ == '\0') state_ = State::kAfterValue;
    return true;
  }
  if (in_number()) return take_in_number(c);
  if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
    return state_ != State::kDone && ++spaces_ <= kMostSpaces;
  spaces_ = 0;
  switch (state_) {
    case State::kStart:
      return c == '{' && open(true, State::kFirstKey);
    case State::kFirstKey:
    case State::kKey:
      if (c == '}') return state_ == State::kFirstKey && close(true);
      state_ = State::kString;
      string_is_key_ = true;
      return c == '"';
    case State::kColon:
      state_ = State::kValue;
      return c == ':';
    case State::kFirstValue:
      return c == ']' ? close(false) : begin_value(c);
    case State::kValue:
      return begin_value(c);
    case State::kAfterValue:
      return take_after_value(c);
    default:
      return false;
  }
}

bool JsonAutomaton::open(bool object, State next) {
  if (levels_ == kMostLevels) return false;
  is_object_[levels_++] = object;
  state_ = next;
  return true;
}

bool JsonAutomaton::close(bool object) {
  if (is_object_[levels_ - 1U] != object) return false;
  state_ = --levels_ == 0 ? State::kDone : State::kAfterValue;
  return true;
}

bool JsonAutomaton::begin_value(char c) {
  if (c == '{') return open(true, State::kFirstKey);
  if (c == '[') return open(false, State::kFirstValue);
  if (c == '"') {
    state_ = State::kString;
    string_is_key_ = false;
    return true;
  }
  if (c == '-' || is_digit(c)) {
    state_ = c == '-' ? State::kMinus : c == '0' ? State::kZero : State::kInteger;
    return true;
  }
  for (const char* literal : {"true", "false", "null"}) {
    if (c != *literal) continue;
    state_ = State::kLiteral;
    literal_ = literal + 1;
    return true;
  }
  return false;
}

bool JsonAutomaton::take_in_string(char c) {
  if (state_ == State::kEscape) {
    state_ = c == 'u' ? State::kHex : State::kString;
    digits_left_ = 4;
    return std::string_view("\"\\/bfnrtu").find(c) != std::string_view::npos;
  }
  if (state_ == State::kHex) {
    if (--digits_left_ == 0) state_ = State::kString;
    return is_hex_digit(c);
  }
  if (c == '"') state_ = string_is_key_ ? State::kColon : State::kAfterValue;
  if (c == '\\') state_ = State::kEscape;
  return static_cast<unsigned char>(c) >= 0x20;
}

bool JsonAutomaton::take_in_number(char c) {
  const auto go_to = [this](State next) {
    state_ = next;
    return true;
  };
  switch (state_) {
    case State::kMinus:
      return is_digit(c) && go_to(c == '0' ? State::kZero : State::kInteger);
    case State::kPoint:
      return is_digit(c) && go_to(State::kFraction);
    case State::kExponentSign:
      return is_digit(c) && go_to(State::kExponent);
    case State::kExponentStart:
      if (c == '+' || c == '-') return go_to(State::kExponentSign);
      return is_digit(c) && go_to(State::kExponent);
    default:
      break;
  }
  if (is_digit(c) && state_ != State::kZero) return true;
  const bool in_integer = state_ == State::kZero || state_ == State::kInteger;
  if (c == '.' && in_integer) return go_to(State::kPoint);
  if ((c == 'e' || c == 'E') && state_ != State::kExponent) return go_to(State::kExponentStart);
  state_ = State::kAfterValue;  // the byte behind a number ends it
  return take(c);
}

bool JsonAutomaton::take_after_value(char c) {
  if (c == ',') {
    state_ = is_object_[levels_ - 1U] ? State::kKey : State::kValue;
    return true;
  }
  return (c == '}' || c == ']') && close(c == '}');
}

}  // namespace eider::server
