// Files of `export NAME=value` lines, as users source them before a run. Read, never executed.
//
// Understood: export or none, several assignments on a line, single and double quotes, backslashes, comments behind a
// value, $NAME, ${NAME} and ${NAME:-word} from the lines before and the environment, ~ at the beginning of a value, a
// line that goes on after a backslash. A value that only a shell could give ($(hostname), `date`) is kept as unknown:
// whoever needs that name refuses it, and nobody minds for other names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "core/environment.h"

namespace tessera {

struct EnvFileEntry {
  std::string name, value;
  std::size_t line = 0;
  std::string unknown;  // why the value cannot be known: "$(...) would have to be executed"; empty: it is known
};

// In the order of the file. `origin` is what messages call it. Throws UsageError with the line where something is
// neither an assignment nor a comment.
std::vector<EnvFileEntry> parse_env_file(std::string_view text, const std::string& origin,
                                         const Environment& environment);

// Gives the schema the values of its own names; of one name the last counts. Values of other names are dropped: they
// may be secrets. One note lists those names, without what users need for other programs (WANDB_API_KEY, CONDA_*).
// `elsewhere` are names that other jobs have.
void read_env_file(const std::string& path, const Environment& environment, const std::vector<std::string>& elsewhere,
                   Schema& schema, std::vector<std::string>& notes);

}  // namespace tessera
