// Any other expression, with PCRE2 and its JIT compiler.
#include "data/tokenizer/pattern.h"

#ifndef TESSERA_HAS_PCRE2

namespace tessera::internal {

bool has_pcre() {
  return false;
}
std::unique_ptr<Pattern> make_pcre_pattern(const std::string&, const std::string&) {
  return nullptr;
}

}  // namespace tessera::internal

#else

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/expression.h"
#include "data/tokenizer/utf8.h"

namespace tessera::internal {
namespace {

// An expression that backtracks more often than this is stopped. GPT-2's needs about two steps per character;
// Oniguruma's own limit is ten million per match.
constexpr std::uint32_t kMaxSteps = 10'000'000;
constexpr std::size_t kMaxJitStackBytes = 8 << 20;  // for deep repetitions of groups; beyond it, PCRE2 interprets
constexpr std::uint32_t kMaxHeapKib = 1 << 20;

template <auto Free>
struct FreeBy {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, FreeBy<pcre2_code_free> >;
using CompileContext = std::unique_ptr<pcre2_compile_context, FreeBy<pcre2_compile_context_free> >;
using MatchContext = std::unique_ptr<pcre2_match_context, FreeBy<pcre2_match_context_free> >;
using MatchData = std::unique_ptr<pcre2_match_data, FreeBy<pcre2_match_data_free> >;
using JitStack = std::unique_ptr<pcre2_jit_stack, FreeBy<pcre2_jit_stack_free> >;

std::string message_of(int code) {
  char text[256] = "";
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text), sizeof text);
  return text;
}

class PcrePattern : public Pattern {
 public:
  PcrePattern(const std::string& expression, const std::string& where) : expression_(expression), where_(where) {
    const std::string translated = to_pcre(expression, where);
    const CompileContext context(pcre2_compile_context_create(nullptr));
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                              PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY, &error,
                              &offset, context.get()));
    if (code_ == nullptr) fail("cannot be used", error);
    // Where PCRE2 has no JIT compiler for the machine, it interprets.
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    const MatchData data(pcre2_match_data_create(1, nullptr));
    const MatchContext context(pcre2_match_context_create(nullptr));
    pcre2_set_match_limit(context.get(), kMaxSteps);
    pcre2_set_heap_limit(context.get(), kMaxHeapKib);
    const PCRE2_SIZE* const place = pcre2_get_ovector_pointer(data.get());
    std::size_t from = 0;
    bool has_last = false;
    while (from <= text.size()) {
      const int result = search(text, from, data.get(), context.get());
      if (result == PCRE2_ERROR_NOMATCH) return;
      if (result < 0) fail("gave up on a text", result);
      // An empty match right after the last one does not count (as in the original's iterator).
      if (place[0] == place[1] && has_last && matches.back().end == place[1]) {
        if (from == text.size()) return;
        from += utf8_length(static_cast<unsigned char>(text[from]));
        continue;
      }
      matches.push_back({place[0], place[1]});
      has_last = true;
      from = place[1];
    }
  }

 private:
  int search(std::string_view text, std::size_t from, pcre2_match_data* data, pcre2_match_context* context) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const int result = pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context);
    if (result != PCRE2_ERROR_JIT_STACKLIMIT) return result;
    const JitStack stack(pcre2_jit_stack_create(32 << 10, kMaxJitStackBytes, nullptr));
    pcre2_jit_stack_assign(context, nullptr, stack.get());
    const int second = pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context);
    pcre2_jit_stack_assign(context, nullptr, nullptr);
    if (second != PCRE2_ERROR_JIT_STACKLIMIT) return second;
    return pcre2_match(code_.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, context);
  }

  [[noreturn]] void fail(const std::string& what, int code) const {
    throw UsageError(
        fmt::format("{}: the expression \"{}\" {}: {}", where_, printable(expression_, 200), what, message_of(code)));
  }

  Code code_;
  std::string expression_, where_;
};

}  // namespace

bool has_pcre() {
  return true;
}

std::unique_ptr<Pattern> make_pcre_pattern(const std::string& expression, const std::string& where) {
  return std::make_unique<PcrePattern>(expression, where);
}

}  // namespace tessera::internal

#endif
