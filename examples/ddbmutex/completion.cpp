#include "examples/ddbmutex/completion.hpp"

#include <string_view>

#include "examples/ddbmutex/options.hpp"

namespace command {
namespace {

std::string names_of_subcommands() {
  std::string names;
  for (const Subcommand& one : subcommands()) {
    names += (names.empty() ? "" : " ") + std::string(one.name);
  }
  return names;
}

bool takes_name(const Subcommand& one) {
  return std::string_view(one.operands).find("NAME") != std::string_view::npos;
}

// "run|show": the subcommands that take the NAME of a lock.
std::string subcommands_of_locks(const std::string& between) {
  std::string names;
  for (const Subcommand& one : subcommands()) {
    if (takes_name(one)) names += (names.empty() ? "" : between) + one.name;
  }
  return names;
}

// "--table -t"
std::string spellings(const Option& option, const std::string& between) {
  std::string all = std::string("--") + option.name;
  if (option.letter != 0) all += between + "-" + option.letter;
  return all;
}

// The options that take a value, as a pattern for `case`.
std::string bash_takes_value() {
  std::string pattern;
  for (const Option& option : options()) {
    if (option.is_flag()) continue;
    pattern += (pattern.empty() ? "" : "|") + spellings(option, "|");
  }
  return pattern;
}

// What the value of each option may be, as branches of `case`.
std::string bash_values() {
  std::string cases;
  for (const Option& option : options()) {
    if (*option.choices == '\0') continue;
    cases += "    " + spellings(option, "|") + ") words='" + option.choices +
             "' ;;\n";
  }
  return cases + "    " + bash_takes_value() + ") return ;;\n";
}

// The options of each subcommand, as branches of `case`.
std::string bash_options() {
  std::string cases;
  for (const Subcommand& one : subcommands()) {
    std::string words;
    for (const Option& option : options()) {
      if (!is_option_of(option, one.command)) continue;
      words += spellings(option, " ") + " ";
    }
    cases += "    " + std::string(one.name) + ") words='" + words + "--help";
    if (one.command == Command::completion) cases += " bash zsh fish";
    if (one.command == Command::help) cases += " " + names_of_subcommands();
    cases += "' ;;\n";
  }
  return cases;
}

// From COMMAND on, the line is completed as another program's.
std::string bash_run() {
  return "  if [[ ${COMP_WORDS[1]} == run ]]; then\n"
         "    for ((i = 2; i < COMP_CWORD; ++i)); do\n"
         "      case ${COMP_WORDS[i]} in\n"
         "      " +
         bash_takes_value() +
         ")\n"
         "        ((++i))\n"
         "        [[ ${COMP_WORDS[i]} == = ]] && ((++i)) ;;\n"
         "      --) ((names > 0)) && names=2 ;;\n"
         "      -*) [[ ${COMP_WORDS[i + 1]} == = ]] && ((i += 2)) ;;\n"
         "      *) ((++names)) ;;\n"
         "      esac\n"
         "      # The parts of http://host:1 are words of their own.\n"
         "      while [[ ${COMP_WORDS[i + 1]} == :* ]]; do ((i += 2)); done\n"
         "      ((names >= 2)) && break\n"
         "    done\n"
         "    ((names == 1 && i == COMP_CWORD)) && [[ $word != -* ]] && "
         "names=2\n"
         "    if ((names >= 2)); then\n"
         "      [[ ${COMP_WORDS[i]} == -- ]] && ((++i))\n"
         "      if declare -F _command_offset >/dev/null; then\n"
         "        _command_offset $i\n"
         "      elif ((i >= COMP_CWORD)); then\n"
         "        COMPREPLY=($(compgen -c -- \"$word\"))\n"
         "      fi\n"
         "      return\n"
         "    fi\n"
         "  fi\n";
}

constexpr char kBashNames[] =
    "# The names of locks, in place of options and files, if a NAME is "
    "due.\n"
    "_ddbmutex_names() {\n"
    "  local name offers=()\n"
    "  local typed=\" ${COMP_WORDS[*]:1:COMP_CWORD-1} \"\n"
    "  [[ $word == -* && $typed != *' -- '* ]] && return\n"
    "  compopt +o default 2>/dev/null\n"
    "  while IFS= read -r name; do offers+=(\"$name\"); done < <(\n"
    "    command ddbmutex completion names bash \\\n"
    "      \"${COMP_LINE:0:COMP_POINT}\" \"$COMP_WORDBREAKS\" "
    "2>/dev/null)\n"
    "  ((${#offers[@]})) && COMPREPLY=(\"${offers[@]}\")\n"
    "}\n"
    "complete -o default -F _ddbmutex ddbmutex\n";

std::string for_bash() {
  return "# Completion of ddbmutex for bash.\n"
         "_ddbmutex() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} words='' names=0 i\n"
         "  COMPREPLY=()\n"
         "  if ((COMP_CWORD == 1)); then\n"
         "    COMPREPLY=($(compgen -W '" +
         names_of_subcommands() +
         " --help --version' -- \"$word\"))\n"
         "    return\n"
         "  fi\n" +
         bash_run() + "  case ${COMP_WORDS[COMP_CWORD - 1]} in\n" +
         bash_values() + "    *) case ${COMP_WORDS[1]} in\n" + bash_options() +
         "    esac ;;\n"
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "  case ${COMP_WORDS[1]} in\n"
         "    " +
         subcommands_of_locks("|") +
         ") _ddbmutex_names ;;\n"
         "  esac\n"
         "}\n" +
         kBashNames;
}

// The text for a place between single quotes.  Characters that mean something
// to zsh's _arguments there become spaces.
std::string plain(const char* text) {
  std::string all;
  for (; *text != '\0'; ++text) {
    if (*text == '\'') {
      all += "'\\''";
    } else {
      all += std::string_view(":[]").find(*text) == std::string_view::npos
                 ? *text
                 : ' ';
    }
  }
  return all;
}

// A value may follow as in "--table x", "--table=x", "-t x" and "-tx".
std::string zsh_option(const Option& option) {
  const std::string name = std::string("--") + option.name;
  std::string what = "[" + plain(option.help) + "]";
  if (!option.is_flag()) {
    what += std::string(":") + option.value + ":";
    if (*option.choices != '\0') {
      what += std::string("(") + option.choices + ")";
    }
  }
  const std::string joined = name + (option.is_flag() ? "" : "=");
  if (option.letter == 0) return "      '" + joined + what + "' \\\n";
  const std::string letter = std::string("-") + option.letter;
  return "      '(" + letter + " " + name + ")'{" + letter +
         (option.is_flag() ? "" : "+") + "," + joined + "}'" + what + "' \\\n";
}

std::string zsh_operands(Command command) {
  switch (command) {
    case Command::run:
      return "'1:NAME:_ddbmutex_names' '(-)2:COMMAND:_command_names -e' "
             "'*::ARG:_normal'";
    case Command::show:
    case Command::watch:
    case Command::unlock:
      return "'1:NAME:_ddbmutex_names'";
    case Command::completion:
      return "'1:shell:(bash zsh fish)'";
    case Command::help:
      return "'1:subcommand:(" + names_of_subcommands() + ")'";
    default:
      return "";
  }
}

std::string for_zsh() {
  std::string text =
      "#compdef ddbmutex\n"
      "# Completion of ddbmutex for zsh.\n"
      "_ddbmutex_names() {\n"
      "  local -a names typed\n"
      "  typed=(\"${(@Q)words[1,CURRENT-1]}\")\n"
      "  names=(${(f)\"$(command ddbmutex completion names zsh ddbmutex \\\n"
      "    \"${typed[@]}\" 2>/dev/null)\"})\n"
      "  compadd -a names\n"
      "}\n"
      "_ddbmutex() {\n"
      "  local -a subcommands=(\n";
  for (const Subcommand& one : subcommands()) {
    text += "    '" + std::string(one.name) + ":" + plain(one.help) + "'\n";
  }
  text +=
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe subcommand subcommands\n"
      "    return\n"
      "  fi\n"
      "  local subcommand=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  local end=${words[(i)--]}\n"
      "  if [[ $subcommand == run ]] && ((end < CURRENT)); then\n"
      "    shift $end words\n"
      "    ((CURRENT -= end))\n"
      "    _normal\n"
      "    return\n"
      "  fi\n"
      "  case $subcommand in\n";
  for (const Subcommand& one : subcommands()) {
    text += "    " + std::string(one.name) + ") _arguments -s -S \\\n";
    for (const Option& option : options()) {
      if (is_option_of(option, one.command)) text += zsh_option(option);
    }
    text += "      '(-h --help)'{-h,--help}'[show help]' " +
            zsh_operands(one.command) + " ;;\n";
  }
  return text +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] == _ddbmutex ]]; then\n"
         "  _ddbmutex \"$@\"\n"
         "else\n"
         "  compdef _ddbmutex ddbmutex\n"
         "fi\n";
}

std::string for_fish() {
  std::string text =
      "# Completion of ddbmutex for fish.\n"
      "complete -c ddbmutex -f\n"
      "function __ddbmutex_names\n"
      "  command ddbmutex completion names fish (commandline -opc) "
      "2>/dev/null\n"
      "end\n"
      "complete -c ddbmutex -n '__fish_seen_subcommand_from " +
      subcommands_of_locks(" ") + "' -a '(__ddbmutex_names)'\n";
  for (const Subcommand& one : subcommands()) {
    text += "complete -c ddbmutex -n __fish_use_subcommand -a " +
            std::string(one.name) + " -d '" + plain(one.help) + "'\n";
  }
  for (const Option& option : options()) {
    text += "complete -c ddbmutex -n '__fish_seen_subcommand_from";
    for (const Command command : option.commands) {
      text += std::string(" ") + about(command).name;
    }
    text += std::string("' -l ") + option.name;
    if (option.letter != 0) text += std::string(" -s ") + option.letter;
    if (!option.is_flag()) text += " -x";
    if (*option.choices != '\0') {
      text += std::string(" -a '") + option.choices + "'";
    }
    text += " -d '" + plain(option.help) + "'\n";
  }
  return text +
         "complete -c ddbmutex -n '__fish_seen_subcommand_from completion' "
         "-a 'bash zsh fish'\n"
         "complete -c ddbmutex -n '__fish_seen_subcommand_from help' -a '" +
         names_of_subcommands() +
         "'\n"
         "complete -c ddbmutex -n '__fish_seen_subcommand_from run' "
         "-a '(__fish_complete_subcommand)'\n"
         "complete -c ddbmutex -s h -l help -d 'show help'\n"
         "complete -c ddbmutex -n __fish_use_subcommand -s V -l version "
         "-d 'show the version'\n";
}

}  // namespace

std::string completion(const std::string& shell) {
  if (shell == "bash") return for_bash();
  if (shell == "zsh") return for_zsh();
  if (shell == "fish") return for_fish();
  throw UsageError("completion: there is none for `" + shell +
                   "`, only for bash, zsh and fish");
}

}  // namespace command
