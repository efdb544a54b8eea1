// Every argument of Hugging Face's TrainingArguments that is not a setting of Tessera, and what happens to it.
//
// Users bring command lines with dozens of them. One that changes nothing here is accepted, and a note says why. One
// that asks for a missing feature is refused with advice, unless it turns the feature off (`--push_to_hub False`).
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
  const char* neutral;  // values that are accepted all the same, separated by |; nullptr: none
  bool is_secret = false;
};

const std::vector<ForeignArgument>& foreign_arguments();

// Adds them to the schema, hidden from the help.
void declare_foreign(Schema& schema, DeclaredSettings& s);

// Call after all sources are read. Throws UsageError for a refused argument; one note lists the accepted ones.
void check_foreign(const Schema& schema, std::vector<std::string>& notes);

}  // namespace tessera
