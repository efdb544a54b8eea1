#!/usr/bin/env bash
# Generates docs/settings.md from the declarations in the program: settings_docs.sh TESSERA > docs/settings.md
# With --check FILE: fails if FILE is out of date.
set -euo pipefail
tessera=$1

write() {
  cat <<'END_OF_TEXT'
# Settings

Written by `tools/settings_docs.sh` from the declarations in the code; a test holds this page against them.
Hyphens and underscores in names are the same. A value comes from the command line, else for `tessera train` from its JSON
files, else from the environment, else for `tessera train` from `--env_file`, else it is the default; `--print_config`
shows each with where it came from. What is the same in all jobs of `tessera train` stands once; below each job is what it
adds, and what has another default there.
END_OF_TEXT
  "$tessera" __settings
}

if [ "${2:-}" = --check ]; then
  diff "$3" <(write) || { echo "run: tools/settings_docs.sh $tessera > docs/settings.md" >&2; exit 1; }
else
  write
fi
