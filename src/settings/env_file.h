// Files of `export NAME=value` lines, as users source them before a run. Read, never executed.
//
// Understood: `export` or not, several assignments per line, quotes that close on the same line, backslashes, comments,
// $NAME, ${NAME} and ${NAME:-word} from earlier lines and the environment, $((...)), ~ at the start of a value, and a
// line continued after a backslash. A value that only a shell can compute ($(hostname), `date`) is kept as unknown; it
// is refused only if a setting needs that name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "core/environment.h"

namespace tessera {

struct EnvFileEntry {
  std::string name, value;
  std::size_t line = 0;
  std::string unknown;  // why the value cannot be known: "$(date) would have to be executed"; empty: it is known
};

// In file order. `origin` is what messages call the file. Throws UsageError with the line of anything that is neither
// an assignment nor a comment.
std::vector<EnvFileEntry> parse_env_file(std::string_view text, const std::string& origin,
                                         const Environment& environment);

// Gives the schema the values of its own names; if a name repeats, the last value counts. Values of other names are
// dropped: they may be secrets. Notes list those names, except those that users set for other programs (WANDB_API_KEY,
// CONDA_*): one for settings of other jobs, which `elsewhere` holds with the job, and one for names that nobody has.
void read_env_file(const std::string& path, const Environment& environment,
                   const std::map<std::string, std::string>& elsewhere, Schema& schema,
                   std::vector<std::string>& notes);

}  // namespace tessera
