// Interpreter: renders one template once. It owns what that rendering makes (namespaces, scopes that macros
// close over), so nothing of one rendering can be seen by the next.
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/budget.h"
#include "text/jinja/callable.h"
#include "text/jinja/value.h"

namespace eider::jinja {

/// Names of a template, a loop's iteration or a macro's call. `if` opens none.
struct Scope : std::enable_shared_from_this<Scope> {
  explicit Scope(std::shared_ptr<Scope> outer) : parent(std::move(outer)) {}

  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Value>> variables;

  void set(std::string_view name, Value value);
};

class Interpreter {
 public:
  /// `now`: what strftime_now() tells.
  Interpreter(const std::tm& now, const Limits& limits) : now_(now), budget_(limits) {}

  /// `variables` must be a dict. Throws Failure.
  std::string render(const Body& body, const Value& variables);
  // For builtins.

  Budget& budget() { return budget_; }
  const std::tm& now() const { return now_; }
  Namespace* make_namespace();
  Value call(const Value& callee, const Arguments& arguments);

  /// object.name: a method or attribute, else an item; Undefined where there is none.
  Value get_attribute(const Value& object, std::string_view name);
  /// object[key]: an item, else an attribute; Undefined where there is none.
  Value get_item(const Value& object, const Value& key);
  /// list(value), shared where it is a list already. Throws Failure for what cannot be iterated.
  std::shared_ptr<const Sequence> iterate(const Value& value);

 private:
  enum class Flow : std::uint8_t { kNext, kBreak, kContinue };

  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow run(const Data& node);
  Flow run(const Print& node);
  Flow run(const If& node);
  Flow run(const For& node);
  Flow run(const Set& node);
  Flow run(const SetBlock& node);
  Flow run(const FilterBlock& node);
  Flow run(const DefineMacro& node);
  Flow run(const CallBlock& node);
  Flow run(const With& node);
  Flow run(const Scoped& node);
  Flow run(const Break&) { return Flow::kBreak; }
  Flow run(const Continue&) { return Flow::kContinue; }

  Value evaluate(const Expression& expression);
  Value evaluate(const ExpressionPtr& expression) { return evaluate(*expression); }
  Value compute(const Literal& node);
  Value compute(const Name& node);
  Value compute(const ListLiteral& node);
  Value compute(const DictLiteral& node);
  Value compute(const Unary& node);
  Value compute(const Binary& node);
  Value compute(const Logical& node);
  Value compute(const Compare& node);
  Value compute(const Concatenation& node);
  Value compute(const Conditional& node);
  Value compute(const Filter& node);
  Value compute(const Test& node);
  Value compute(const Call& node);
  Value compute(const Attribute& node);
  Value compute(const Subscript& node);
  Value compute(const Slice& node);
  Arguments evaluate(const CallArguments& arguments);

  /// Runs `body` in a new scope and returns what it printed.
  Value capture(const Body& body);
  /// `filter` over `printed`, for blocks; `printed` itself where there is no filter.
  Value apply_filters(const ExpressionPtr& filter, Value printed);
  std::shared_ptr<const Sequence> filter_items(const For& node, std::shared_ptr<const Sequence> items);
  Flow run_loop(const For& node, const Value& iterable, int depth);
  Value call_loop(const LoopState& loop, const Arguments& arguments);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  void bind_parameters(const MacroDefinition& definition, const Arguments& arguments);
  void check_arguments(const MacroDefinition& definition, const Arguments& arguments) const;
  /// The current scope, kept for a value that may outlive the block it is made in.
  Scope* keep_scope();
  void assign(const Target& target, const Value& value);
  void print(std::string_view text);
  const Value* find_variable(std::string_view name) const;

  class EnterScope;

  // Counts a node against the budget and the machine's stack while it is evaluated.
  class EnterNode {
   public:
    explicit EnterNode(Interpreter& interpreter) : interpreter_(interpreter) {
      interpreter.budget_.spend(1);
      if (interpreter.depth_ == kMaxDepth) throw failure("evaluation nests more than {} deep", kMaxDepth);
      ++interpreter.depth_;
    }
    ~EnterNode() { --interpreter_.depth_; }
    EnterNode(const EnterNode&) = delete;
    EnterNode& operator=(const EnterNode&) = delete;

   private:
    static constexpr int kMaxDepth = 1000;
    Interpreter& interpreter_;
  };

  /// `visit` on the node of a statement or expression; a Failure out of it learns where it was.
  template <class Located, class Visit>
  auto enter(const Located& located, Visit visit) {
    try {
      const EnterNode entered(*this);
      return std::visit(visit, located.node);
    } catch (Failure& failure) {
      failure.locate(located.offset);
      throw;
    }
  }

  std::tm now_;
  Budget budget_;
  std::shared_ptr<Scope> scope_;
  std::string output_;
  Value block_output_;  // what a filter without input works on
  int depth_ = 0;       // of statements and expressions being evaluated
  std::vector<std::unique_ptr<Namespace>> namespaces_;
  std::vector<std::shared_ptr<Scope>> closures_;
};

}  // namespace eider::jinja
