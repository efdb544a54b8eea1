#include "config/command.h"

#include "core/output.h"

namespace tessera {

Schema Command::schema() const {
  Schema made("tessera " + name, about.empty() ? summary : about);
  if (declare) declare(made);
  return made;
}

bool read_settings(Schema& schema, const std::vector<std::string>& args, const std::function<void()>& read_more) {
  if (!schema.read_command_line(args)) return false;
  if (read_more) read_more();
  if (!schema.wants_print_config()) return true;
  print_out(schema.config_text());
  return false;
}

}  // namespace tessera
