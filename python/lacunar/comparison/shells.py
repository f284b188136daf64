"""Scripts that let a shell complete the command's words, made from its parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """What the user's shell reads: `eval "$(lacunar completion bash)"`, or `lacunar completion fish | source`."""
    options = dict(_options(parser))
    if shell == "fish":
        return "".join(_fish(options))
    cases = "\n".join(f"    {name}) words='{' '.join(words)}' ;;" for name, words in options.items())
    first = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return _BASH.format(first=first, commands=" ".join(options), cases=cases)


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[str]]]:
    """The long options of every command."""
    actions = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in actions.choices.items():
        yield name, sorted(word for action in command._actions for word in action.option_strings if word[:2] == "--")


def _fish(options: dict[str, list[str]]) -> Iterator[str]:
    for name, words in options.items():
        yield f"complete -c lacunar -n __fish_use_subcommand -a {name}\n"
        for word in words:
            yield f"complete -c lacunar -n '__fish_seen_subcommand_from {name}' -l {word[2:]}\n"


_BASH = """{first}_lacunar() {{
  local words='{commands}'
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  [ "$COMP_CWORD" -gt 1 ] || words='{commands}'
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _lacunar lacunar
"""
