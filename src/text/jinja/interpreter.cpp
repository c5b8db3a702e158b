#include "text/jinja/interpreter.h"

#include <algorithm>

namespace eider::jinja {

void Scope::set(std::string_view name, Value value) {
  const auto found = std::ranges::find(variables, name, &std::pair<std::string, Value>::first);
  if (found != variables.end()) {
    found->second = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

class Interpreter::EnterScope {
 public:
  explicit EnterScope(Interpreter& interpreter) : EnterScope(interpreter, interpreter.scope_) {}
  EnterScope(Interpreter& interpreter, std::shared_ptr<Scope> parent)
      : interpreter_(interpreter), outer_(std::move(interpreter.scope_)) {
    interpreter.scope_ = std::make_shared<Scope>(std::move(parent));
  }
  ~EnterScope() { interpreter_.scope_ = std::move(outer_); }
  EnterScope(const EnterScope&) = delete;
  EnterScope& operator=(const EnterScope&) = delete;

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> outer_;
};

std::string Interpreter::render(const Body& body, const Value& variables) {
  scope_ = std::make_shared<Scope>(nullptr);
  for (const auto& [name, value] : variables.dict()->entries) scope_->set(*name.string(), value);
  execute(body);
  return std::move(output_);
}

Namespace* Interpreter::make_namespace() {
  budget_.allocate(sizeof(Namespace));
  return namespaces_.emplace_back(std::make_unique<Namespace>()).get();
}

const Value* Interpreter::find_variable(std::string_view name) const {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    const auto found = std::ranges::find(scope->variables, name, &std::pair<std::string, Value>::first);
    if (found != scope->variables.end()) return &found->second;
  }
  return nullptr;
}

void Interpreter::print(std::string_view text) {
  budget_.grow_string(output_.size(), text.size());
  output_.append(text);
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const Statement& statement : body) {
    const Flow flow = execute(statement);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  return enter(statement, [this](const auto& node) { return run(node); });
}

Interpreter::Flow Interpreter::run(const Data& node) {
  print(node.text);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const Print& node) {
  print(to_text(evaluate(node.value), budget_));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const If& node) {
  for (const auto& [test, body] : node.branches) {
    if (is_true(evaluate(test))) return execute(body);
  }
  return execute(node.otherwise);
}

std::shared_ptr<const Sequence> Interpreter::filter_items(const For& node,
                                                          std::shared_ptr<const Sequence> items) {
  if (!node.filter) return items;
  std::vector<Value> kept;
  for (const Value& item : items->items) {
    const EnterScope enter(*this);
    assign(node.target, item);
    if (is_true(evaluate(node.filter))) kept.push_back(item);
  }
  return std::make_shared<const Sequence>(Sequence::Kind::kList, std::move(kept));
}

Interpreter::Flow Interpreter::run(const For& node) {
  return run_loop(node, evaluate(node.iterable), 1);
}

Interpreter::Flow Interpreter::run_loop(const For& node, const Value& iterable, int depth) {
  const auto items = filter_items(node, iterate(iterable));
  if (items->items.empty()) {
    execute(node.otherwise);
    return Flow::kNext;
  }
  const auto loop = std::make_shared<LoopState>(LoopState{items, depth});
  if (node.is_recursive) {
    loop->recursive = &node;
    loop->scope = keep_scope();
  }
  for (; loop->index < items->items.size(); ++loop->index) {
    budget_.spend(1);
    const EnterScope enter(*this);
    scope_->set("loop", loop);
    assign(node.target, items->items[loop->index]);
    if (execute(node.body) == Flow::kBreak) break;
  }
  return Flow::kNext;
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.elements.empty()) {
    const auto items = iterate(value);
    if (items->items.size() != target.elements.size()) {
      throw failure("{} values to unpack into {} names", items->items.size(), target.elements.size());
    }
    for (std::size_t i = 0; i < target.elements.size(); ++i) assign(target.elements[i], items->items[i]);
  } else if (target.attribute.empty()) {
    scope_->set(target.name, value);
  } else {
    const Value* space = find_variable(target.name);
    if (space == nullptr || space->space() == nullptr) {
      throw failure("cannot assign to an attribute of '{}', which is not a namespace", target.name);
    }
    space->space()->set(target.attribute, value);
  }
}

Interpreter::Flow Interpreter::run(const Set& node) {
  assign(node.target, evaluate(node.value));
  return Flow::kNext;
}

Value Interpreter::capture(const Body& body) {
  std::string outer = std::exchange(output_, {});
  {
    const EnterScope enter(*this);
    execute(body);
  }
  return std::exchange(output_, std::move(outer));
}

Value Interpreter::apply_filters(const ExpressionPtr& filter, Value printed) {
  if (!filter) return printed;
  Value outer = std::exchange(block_output_, std::move(printed));
  Value result = evaluate(filter);
  block_output_ = std::move(outer);
  return result;
}

Interpreter::Flow Interpreter::run(const SetBlock& node) {
  assign(node.target, apply_filters(node.filter, capture(node.body)));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const FilterBlock& node) {
  print(to_text(apply_filters(node.filter, capture(node.body)), budget_));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const With& node) {
  const EnterScope enter(*this);
  for (const auto& [target, value] : node.assignments) assign(target, evaluate(value));
  return execute(node.body);
}

Interpreter::Flow Interpreter::run(const Scoped& node) {
  const EnterScope enter(*this);
  return execute(node.body);
}

Scope* Interpreter::keep_scope() {
  if (closures_.empty() || closures_.back() != scope_) {
    budget_.allocate(sizeof(Scope));
    closures_.push_back(scope_);
  }
  return scope_.get();
}

Interpreter::Flow Interpreter::run(const DefineMacro& node) {
  scope_->set(node.macro->name, Callable{Macro{node.macro.get(), keep_scope()}, node.macro->name});
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const CallBlock& node) {
  const auto& call_node = std::get<Call>(node.call->node);
  const Value callee = evaluate(call_node.callee);
  Arguments arguments = evaluate(call_node.arguments);
  arguments.named.emplace_back("caller", Callable{Macro{node.caller.get(), keep_scope()}, "caller"});
  print(to_text(call(callee, arguments), budget_));
  return Flow::kNext;
}

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  if (const LoopState* loop = callee.loop()) return call_loop(*loop, arguments);
  const Callable* callable = callee.callable();
  if (callable == nullptr) {
    if (const auto* undefined = std::get_if<Undefined>(&callee.data()); undefined && undefined->reason) {
      throw Failure(*undefined->reason);
    }
    throw failure("'{}' object is not callable", type_name(callee));
  }
  if (const auto* method = std::get_if<Method>(&callable->target)) {
    return method->function(*this, method->self, arguments);
  }
  return call_macro(std::get<Macro>(callable->target), arguments);
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  budget_.enter_call();
  std::string outer = std::exchange(output_, {});
  {
    const EnterScope enter(*this, macro.scope->shared_from_this());
    bind_parameters(*macro.definition, arguments);
    execute(macro.definition->body);
  }
  budget_.leave_call();
  return std::exchange(output_, std::move(outer));
}

Value Interpreter::call_loop(const LoopState& loop, const Arguments& arguments) {
  if (loop.recursive == nullptr)
    throw Failure("The loop must have the 'recursive' marker to be called recursively.");
  budget_.enter_call();
  std::string outer = std::exchange(output_, {});
  {
    const EnterScope enter(*this, loop.scope->shared_from_this());
    run_loop(*loop.recursive, arguments.require(0, "iterable"), loop.depth + 1);
  }
  budget_.leave_call();
  return std::exchange(output_, std::move(outer));
}

namespace {

// Whether `name` is a parameter that no positional argument has taken.
bool is_free_parameter(const MacroDefinition& definition, const Arguments& arguments, std::string_view name) {
  const auto& parameters = definition.parameters;
  const auto place = std::ranges::find(parameters, name, &MacroDefinition::Parameter::name);
  return place != parameters.end() &&
         std::cmp_greater_equal(place - parameters.begin(), arguments.positional.size());
}

}  // namespace

void Interpreter::check_arguments(const MacroDefinition& definition, const Arguments& arguments) const {
  const auto& [varargs, kwargs, caller] = definition.uses;
  if (arguments.positional.size() > definition.parameters.size() && !varargs)
    throw failure("macro '{}' takes not more than {} argument(s)", definition.name,
                  definition.parameters.size());
  for (const auto& [name, value] : arguments.named) {
    if (!is_free_parameter(definition, arguments, name) && !kwargs && !(name == "caller" && caller))
      throw failure("macro '{}' takes no keyword argument '{}'", definition.name, name);
  }
}

void Interpreter::bind_parameters(const MacroDefinition& definition, const Arguments& arguments) {
  check_arguments(definition, arguments);
  const auto& parameters = definition.parameters;
  if (definition.uses.caller) scope_->set("caller", Value::undefined("No caller defined"));
  std::vector<Dict::Entry> rest;
  for (const auto& [name, value] : arguments.named) {
    if (name == "caller" && definition.uses.caller) {
      scope_->set(name, value);
    } else if (!is_free_parameter(definition, arguments, name)) {
      rest.emplace_back(name, value);
    }
  }
  if (definition.uses.kwargs) scope_->set("kwargs", Dict(std::move(rest)));
  if (definition.uses.varargs) {
    const auto taken = std::min(parameters.size(), arguments.positional.size());
    scope_->set("varargs", make_tuple({arguments.positional.begin() + static_cast<std::ptrdiff_t>(taken),
                                       arguments.positional.end()}));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (const Value* given = arguments.find(i, parameters[i].name)) {
      scope_->set(parameters[i].name, *given);
    } else if (parameters[i].fallback) {
      scope_->set(parameters[i].name, evaluate(parameters[i].fallback));
    } else {
      scope_->set(parameters[i].name,
                  Value::undefined(fmt::format("parameter '{}' was not provided", parameters[i].name)));
    }
  }
}

}  // namespace eider::jinja
