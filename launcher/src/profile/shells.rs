//! Commands that shells execute without a program: built-in ones and reserved words. No rule about programs holds for
//! them.

/// Those of sh, bash and zsh by whose names there are hardly programs.
const ALONE: &str = "\
    . alias autoload bg bindkey break builtin bye caller case cd chdir command compctl compgen compopt continue \
    coproc declare dirs disown do done echotc echoti elif else emulate esac eval exec exit export fc fg fi for \
    foreach function getln getopts history if in jobs let local logout mapfile nocorrect noglob popd pushd pushln \
    readarray readonly rehash return select set setopt shift shopt source suspend then times trap ttyctl type \
    typeset ulimit umask unalias unfunction unhash unlimit unset unsetopt until vared wait whence while zcompile \
    zformat zle zmodload zparseopts zregexparse zstyle";

/// Those by whose names there are programs as well. `:`, `[` and their like are in neither list: no name of a command
/// in a rule has such characters.
const LIKE_PROGRAMS: &str = "\
    bind complete disable echo enable end false float functions hash help integer kill limit log print printf pwd r \
    read repeat sched test time true where which";

/// Whether some shell executes no program for a command, though there may be one of its name.
pub fn is_of_shells(name: &str) -> bool {
    is_of_shells_alone(name) || is_in(LIKE_PROGRAMS, name)
}

/// Whether only shells have such a command.
pub fn is_of_shells_alone(name: &str) -> bool {
    is_in(ALONE, name)
}

fn is_in(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_shells_are_told_from_programs() {
        for name in ["cd", "export", "while", ".", "shopt", "setopt", "noglob"] {
            assert!(is_of_shells(name) && is_of_shells_alone(name), "{name}");
        }
        for name in ["echo", "kill", "time", "which", "print"] {
            assert!(is_of_shells(name) && !is_of_shells_alone(name), "{name}");
        }
        for name in ["", "env", "killall", "cd ", "eval exec", "EXPORT"] {
            assert!(!is_of_shells(name), "{name}");
        }
    }
}
