// Every argument of Hugging Face's TrainingArguments that is no setting of ours, and what becomes of it.
//
// Users bring command lines with dozens of them: one that changes nothing here is accepted with a line that says why,
// one that asks for what there is not is refused with what to do instead, unless it says no to it
// (`--push_to_hub False`).
#pragma once

#include <string>
#include <vector>

#include "settings/declared.h"

namespace tessera {

struct ForeignArgument {
  enum class Form { kBool, kNumber, kText };
  const char* name;
  Form form;
  bool is_refused;      // else accepted without effect
  const char* reason;   // why it changes nothing, or what to do instead
  const char* neutral;  // what may be said all the same; several are separated by |. nullptr: nothing
  bool is_secret = false;
};

const std::vector<ForeignArgument>& foreign_arguments();

// Adds them to the schema, out of sight.
void declare_foreign(Schema& schema, DeclaredSettings& s);

// After all sources were read. Throws UsageError; the others that were given go into one note.
void check_foreign(const Schema& schema, std::vector<std::string>& notes);

}  // namespace tessera
