R"sh(# Sets `command` to what the words before the cursor name, and REPLY to the values of an option.
_tessera_command() {
  local each before= next
  command=
  for each in "$@"; do
    if ! _tessera_value "$command" "$before"; then
      case $command in
        '' | launch) next=$each ;;
        *) next="$command $each" ;;
      esac
      if _tessera_knows "$next"; then command=$next; fi
    fi
    before=$each
  done
}

)sh"
