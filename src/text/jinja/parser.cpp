#include "text/jinja/parser.h"

#include <initializer_list>

#include "text/jinja/expression_parser.h"
#include "text/jinja/lexer.h"
#include "text/jinja/token_stream.h"

namespace eider::jinja {

std::string TokenStream::found() const {
  switch (current().kind) {
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    default:
      return fmt::format("'{}'", current().text);
  }
}

namespace {

class Parser {
 public:
  explicit Parser(TokenStream tokens) : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Body run() { return parse_body({}); }

 private:
  // Statements up to a block tag that is one of `ends` (its name is the current token then), or the
  // template's end.
  Body parse_body(std::initializer_list<std::string_view> ends) {
    if (nesting_ == kMaxNesting) tokens_.fail(fmt::format("blocks nest more than {} deep", kMaxNesting));
    ++nesting_;
    Body body;
    while (true) {
      const std::uint32_t offset = tokens_.offset();
      const TokenKind kind = tokens_.current().kind;
      if (kind == TokenKind::kEnd) {
        if (ends.size() > 0)
          tokens_.fail(fmt::format("expected '{}', found the end of the template", *ends.begin()));
        break;
      }
      const Token token = tokens_.next();
      if (kind == TokenKind::kData) {
        body.push_back({offset, Data{token.text}});
      } else if (kind == TokenKind::kVariableBegin) {
        body.push_back({offset, Print{expressions_.parse_tuple()}});
        tokens_.expect(TokenKind::kVariableEnd, "'}}'");
      } else {
        if (tokens_.at_any_name(ends)) break;
        body.push_back(parse_statement());
      }
    }
    --nesting_;
    return body;
  }

  // The body of a block whose end tag is `end`, which is consumed.
  Body parse_block(std::string_view end) {
    end_tag();
    Body body = parse_body({end});
    tokens_.expect_name(end);
    end_tag();
    return body;
  }

  void end_tag() { tokens_.expect(TokenKind::kBlockEnd, "'%}'"); }

  Statement parse_statement() {
    const std::uint32_t offset = tokens_.offset();
    const std::string name = tokens_.expect_identifier();
    if (name == "if") return {offset, parse_if()};
    if (name == "for") return {offset, parse_for()};
    if (name == "set") return parse_set(offset);
    if (name == "macro") return {offset, DefineMacro{parse_macro()}};
    if (name == "call") return {offset, parse_call_block()};
    if (name == "filter") {
      ExpressionPtr filter = expressions_.parse_filter_chain(nullptr, false);
      return {offset, FilterBlock{std::move(filter), parse_block("endfilter")}};
    }
    if (name == "with") return {offset, parse_with()};
    if (name == "generation") return {offset, Scoped{parse_block("endgeneration")}};
    if (name == "break" || name == "continue") {
      if (loops_ == 0) throw Failure(fmt::format("'{}' outside a loop", name), offset);
      end_tag();
      if (name == "break") return {offset, Break{}};
      return {offset, Continue{}};
    }
    throw Failure(fmt::format("unknown tag '{}'", name), offset);
  }

  If parse_if() {
    If result;
    do {
      ExpressionPtr test = expressions_.parse_tuple(false);
      end_tag();
      result.branches.emplace_back(std::move(test), parse_body({"endif", "elif", "else"}));
    } while (tokens_.take_name("elif"));
    if (tokens_.take_name("else")) {
      end_tag();
      result.otherwise = parse_body({"endif"});
    }
    tokens_.expect_name("endif");
    end_tag();
    return result;
  }

  For parse_for() {
    For result;
    result.target = parse_target();
    tokens_.expect_name("in");
    result.iterable = expressions_.parse_tuple(false);
    if (tokens_.take_name("if")) result.filter = expressions_.parse_expression();
    result.is_recursive = tokens_.take_name("recursive");
    end_tag();
    ++loops_;
    result.body = parse_body({"endfor", "else"});
    --loops_;
    if (tokens_.take_name("else")) {
      end_tag();
      result.otherwise = parse_body({"endfor"});
    }
    tokens_.expect_name("endfor");
    end_tag();
    return result;
  }

  Statement parse_set(std::uint32_t offset) {
    Target target = parse_target();
    if (tokens_.take_operator("=")) {
      ExpressionPtr value = expressions_.parse_tuple();
      end_tag();
      return {offset, Set{std::move(target), std::move(value)}};
    }
    ExpressionPtr filter;
    if (tokens_.at_operator("|")) filter = expressions_.parse_filter_chain(nullptr, true);
    return {offset, SetBlock{std::move(target), std::move(filter), parse_block("endset")}};
  }

  // One target, or several with commas between them.
  Target parse_target() {
    Target first = parse_single_target();
    if (!tokens_.at_operator(",")) return first;
    Target unpacked;
    unpacked.elements.push_back(std::move(first));
    while (tokens_.take_operator(",")) {
      if (tokens_.at_name("in") || tokens_.at_operator("=")) break;
      unpacked.elements.push_back(parse_single_target());
    }
    return unpacked;
  }

  Target parse_single_target() {
    if (tokens_.take_operator("(")) {
      if (++nesting_ > kMaxNesting) tokens_.fail(fmt::format("targets nest more than {} deep", kMaxNesting));
      Target inner = parse_target();
      --nesting_;
      tokens_.expect_operator(")");
      return inner;
    }
    Target target;
    target.name = tokens_.expect_identifier();
    if (tokens_.take_operator(".")) target.attribute = tokens_.expect_identifier();
    return target;
  }

  std::vector<MacroDefinition::Parameter> parse_parameters() {
    std::vector<MacroDefinition::Parameter> parameters;
    tokens_.expect_operator("(");
    while (!tokens_.at_operator(")")) {
      MacroDefinition::Parameter parameter{tokens_.expect_identifier(), nullptr};
      if (tokens_.take_operator("=")) {
        parameter.fallback = expressions_.parse_expression();
      } else if (!parameters.empty() && parameters.back().fallback) {
        tokens_.fail("a parameter without default after one with");
      }
      parameters.push_back(std::move(parameter));
      if (!tokens_.take_operator(",")) break;
    }
    tokens_.expect_operator(")");
    return parameters;
  }

  std::unique_ptr<MacroDefinition> parse_macro() {
    auto macro = std::make_unique<MacroDefinition>();
    macro->name = tokens_.expect_identifier();
    macro->parameters = parse_parameters();
    parse_callable_body(*macro, "endmacro");
    return macro;
  }

  // A macro's body is no part of the loop it is defined in.
  void parse_callable_body(MacroDefinition& macro, std::string_view end) {
    const int outer_loops = std::exchange(loops_, 0);
    const SpecialNames outer = std::exchange(expressions_.special_names(), {});
    macro.body = parse_block(end);
    loops_ = outer_loops;
    SpecialNames& all = expressions_.special_names();
    macro.uses = all;
    // What a macro within a macro uses, the outer one uses as well.
    all = {all.varargs || outer.varargs, all.kwargs || outer.kwargs, all.caller || outer.caller};
  }

  CallBlock parse_call_block() {
    CallBlock result{std::make_unique<MacroDefinition>(), nullptr};
    result.caller->name = "caller";
    if (tokens_.at_operator("(")) result.caller->parameters = parse_parameters();
    result.call = expressions_.parse_expression();
    if (!std::holds_alternative<Call>(result.call->node)) tokens_.fail("expected a call");
    parse_callable_body(*result.caller, "endcall");
    return result;
  }

  With parse_with() {
    With result;
    while (tokens_.current().kind != TokenKind::kBlockEnd) {
      if (!result.assignments.empty()) tokens_.expect_operator(",");
      Target target = parse_single_target();
      tokens_.expect_operator("=");
      result.assignments.emplace_back(std::move(target), expressions_.parse_expression());
    }
    result.body = parse_block("endwith");
    return result;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int nesting_ = 0;
  int loops_ = 0;
};

}  // namespace

Body parse(std::string_view source) {
  return Parser(TokenStream(tokenize(source))).run();
}

}  // namespace eider::jinja
