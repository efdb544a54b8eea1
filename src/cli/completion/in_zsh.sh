R"sh(# Read by `source`, or found in $fpath as the function _tessera itself.
_tessera() {
  local command REPLY word=${words[CURRENT]} before=${words[CURRENT - 1]}
  local -a reply
  _tessera_command "${(@)words[2,CURRENT - 1]}"
  if [[ $word == --*=* ]]; then
    before=${word%%=*}
    compset -P '*='
  fi
  if _tessera_value "$command" "$before"; then
    case $REPLY in
      @file) _files ;;
      @value) return 1 ;;
      *) compadd -- ${=REPLY} ;;
    esac
  elif [[ $word == -* ]]; then
    _tessera_options "$command"
    _describe -o option reply
  else
    _tessera_words "$command"
    # A program to launch may be any file.
    if (( ${#reply} == 0 )); then
      _files
    elif ! _describe command reply && [[ $command == launch ]]; then
      _files
    fi
  fi
}
if [ "$funcstack[1]" = _tessera ]; then
  _tessera "$@"
else
  compdef _tessera tessera
fi
)sh"
