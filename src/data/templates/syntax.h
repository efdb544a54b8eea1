// A parsed template: statements that hold expressions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/templates/tokens.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind {  // what its parts are
    kConstant,       // none; `value`
    kName,           // none; `name`
    kList,           // items
    kTuple,          // items
    kDict,           // key, value, key, value, ...
    kOperation,      // left, right; `name`: its symbol
    kNot,            // operand
    kNegative,       // operand
    kConditional,    // test, chosen, otherwise, which may be null
    kAttribute,      // base; `name`
    kItem,           // base, key
    kSlice,          // base, start, stop, step: the last three may be null
    kCall,           // function, arguments
    kFilter,         // value, arguments; `name`
    kTest,           // value, arguments; `name`
  };

  Kind kind;
  Offset offset;
  std::vector<ExpressionPtr> parts = {};
  std::string name = {};
  std::vector<std::string> keywords = {};  // of the last arguments: f(1, name=2)
  Value value = {};                        // shared by all renderings
  std::size_t height = 1;                  // levels of expressions
};

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  enum class Kind {
    kData,     // `text`
    kPrint,    // `value`
    kIf,       // `value`, `body`, `otherwise`, where {% elif %} is another one
    kFor,      // `target`, `value`, `filter`, which may be null, `body`
    kSet,      // `target`, `value`
    kCapture,  // `body`, whose text kCaptured names; `value` of it goes to `target`, or to the output if that is null
    kMacro,    // `text`: its name, `parameters`, `defaults` of the last of them, `body`
    kGeneration,  // `body`
    kBreak,
    kContinue,
  };

  Kind kind;
  Offset offset;
  std::string text = {};
  ExpressionPtr target = {};  // a name, a member of a namespace, or a tuple of targets
  ExpressionPtr value = {}, filter = {};
  Block body = {}, otherwise = {};
  std::vector<std::string> parameters = {};
  std::vector<ExpressionPtr> defaults = {};
};

inline constexpr const char* kCaptured = "(text)";

struct Program {
  explicit Program(std::string text, const std::string& origin) : original(std::move(text)), source(original, origin) {}

  std::string original;
  SourceText source;
  Block body = {};
  bool marks_generation = false;
};

}  // namespace tessera::internal::jinja
