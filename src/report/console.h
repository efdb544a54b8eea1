// Where a run is watched: log lines on standard output, progress on standard error, which on a terminal share the
// screen.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tessera {

class Console {
 public:
  using Write = std::function<void(std::string_view)>;

  // `num_columns` of the terminal that shows the progress; 0 where it is a file.
  Console(Write out, Write progress, int num_columns);
  static Console of_process();

  bool is_terminal() const { return num_columns_ > 0; }
  int num_columns() const { return num_columns_; }

  // A whole line; a bar that is shown makes room and comes back below it. One that cannot be written is warned of once,
  // and is no reason to end a run: whoever made the console looks at failure() in the end.
  void print_line(std::string_view line);
  const std::string& failure() const { return failure_; }  // why a line was lost; empty: none was
  // Terminals: in place of the bar before it. Files: a line of its own.
  void show_progress(const std::string& text);
  // The bar stays on the screen, what follows begins on the next line.
  void keep_progress();
  void clear_progress();

 private:
  Write out_, progress_;
  int num_columns_;
  std::string shown_, failure_;
};

}  // namespace tessera
