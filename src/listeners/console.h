// A run's console: log lines on standard output, progress on standard error. On a terminal they share the screen.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tessera {

class Console {
 public:
  using Write = std::function<void(std::string_view)>;

  // `num_columns`: the width of the terminal that shows the progress; 0 if it is a file.
  Console(Write out, Write progress, int num_columns);
  static Console of_process();

  bool is_terminal() const { return num_columns_ > 0; }
  int num_columns() const { return num_columns_; }

  // Prints a whole line; a visible bar reappears below it. If a line cannot be written, one warning says so and the run
  // continues: the console's owner checks failure() at the end.
  void print_line(std::string_view line);
  const std::string& failure() const { return failure_; }  // why a line was lost; empty: none was
  // On a terminal: replaces the previous bar. In a file: a line of its own.
  void show_progress(const std::string& text);
  // The bar stays on the screen; what follows starts on the next line.
  void keep_progress();
  void clear_progress();

 private:
  Write out_, progress_;
  int num_columns_;
  std::string shown_, failure_;
};

}  // namespace tessera
