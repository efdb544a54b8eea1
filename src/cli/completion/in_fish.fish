R"fish(function __tessera_command
    set -l command ''
    set -l before ''
    for each in $argv
        if not __tessera_value "$command" "$before" >/dev/null
            set -l next "$command $each"
            contains -- "$command" '' launch; and set next "$each"
            __tessera_knows "$next"; and set command "$next"
        end
        set before "$each"
    end
    echo "$command"
end

function __tessera_complete
    set -l token (commandline -ct)
    set -l words (commandline -opc)
    set -l before "$words[-1]"
    set -l command (__tessera_command $words[2..-1])
    set -l start ''
    if string match -qr '^--[^=]*=' -- "$token"
        set before (string split -m 1 = -- "$token")[1]
        set start "$before="
    end
    if set -l values (__tessera_value "$command" "$before")
        switch "$values[1]"
            case @file
                for each in (__fish_complete_path (string replace -- "$start" '' "$token"))
                    echo "$start$each"
                end
            case @value
            case '*'
                for each in $values
                    echo "$start$each"
                end
        end
    else if string match -q -- '-*' "$token"
        __tessera_options "$command"
    else
        __tessera_words "$command"; or __fish_complete_path "$token"
        test "$command" = launch; and __fish_complete_path "$token"
    end
end

complete -c tessera -e
complete -c tessera -f -a '(__tessera_complete)'
)fish"
