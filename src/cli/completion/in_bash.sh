R"sh(_tessera() {
  # bash cuts --strategy=ddp into three words.
  local command REPLY word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  if [ "$word" = = ]; then
    word=
  elif [ "$before" = = ]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  _tessera_command "${COMP_WORDS[@]:1:COMP_CWORD - 1}"
  if ! _tessera_value "$command" "$before"; then
    case $word in
      -*) _tessera_options "$command" ;;
      *) _tessera_words "$command" ;;
    esac
  fi
  COMPREPLY=()
  case $REPLY in
    @file) compopt -o default 2>/dev/null ;;
    @value) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$REPLY" -- "$word") ;;
  esac
  # A program to launch may be any file.
  if [ "$command" = launch ] && [ ${#COMPREPLY[@]} = 0 ]; then compopt -o default 2>/dev/null; fi
}
complete -F _tessera tessera
)sh"
