import { type Command, command } from './command.ts';
import { exits } from './failure.ts';
import { everywhere } from './parse.ts';

const shells = ['bash', 'zsh'] as const;

/** The command that prints what a shell needs; it is made of the commands themselves. */
export function completionOf(commands: () => readonly Command[]) {
  return command({
    name: 'completion',
    operands: ['SHELL'],
    words: shells,
    says: 'what a shell needs to complete these commands',
    about: ['bash: source <(kusanya completion bash)', 'zsh:  source <(kusanya completion zsh)'],
    options: {},
    run: async ({ operands, output }) => {
      const text = (operands[0] === 'bash' ? bashOf : zshOf)(choicesOf(commands()));
      output.result({ script: text }, text);
      return exits.ok;
    },
  });
}

/** The choices for what was typed, as branches of a `case` that bash and zsh read alike. */
function choicesOf(commands: readonly Command[]): string {
  // A longer name goes first, for each stands for all that begins with it.
  const branches = commands.toSorted((a, b) => b.name.length - a.name.length).map(branchOf);
  const beginnings = new Map<string, Set<string>>();
  for (const { name } of commands) {
    const words = name.split(' ');
    for (const [at, word] of words.entries()) {
      const before = words.slice(0, at).join(' ');
      beginnings.set(before, (beginnings.get(before) ?? new Set()).add(word));
    }
  }
  const groups = [...beginnings].map(
    ([before, next]) => `    '${before}') choices='${[...next].join(' ')}' ;;`,
  );
  return [...branches, ...groups].join('\n');
}

function branchOf({ name, words = [], options }: Command): string {
  const all = Object.entries({ ...options, ...everywhere });
  const flags = all.map(([flag]) => `--${flag}`).join(' ');
  const values = all.flatMap(([flag, option]) => {
    const { type, words: known = [] }: { type: string; words?: readonly string[] } = option;
    return type === 'boolean' ? [] : [`--${flag}) choices='${known.join(' ')}' ;;`];
  });
  const first = words.length === 0 ? [] : [`    '${name}') choices='${[...words, flags].join(' ')}' ;;`];
  return [
    ...first,
    `    '${name}'*) case "$prev" in ${values.join(' ')} *) choices='${flags}' ;; esac ;;`,
  ].join('\n');
}

function bashOf(choices: string): string {
  return `_kusanya() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" typed='' choices='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) typed="\${typed:+$typed }$word" ;; esac
  done
  case "$typed" in
${choices}
  esac
  COMPREPLY=($(compgen -W "$choices" -- "$cur"))
}
complete -o default -F _kusanya kusanya`;
}

function zshOf(choices: string): string {
  return `_kusanya() {
  local prev="\${words[CURRENT-1]}" typed='' choices='' word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$word" in -*) ;; *) typed="\${typed:+$typed }$word" ;; esac
  done
  case "$typed" in
${choices}
  esac
  if [[ -n "$choices" ]]; then compadd -- \${=choices}; else _files; fi
}
compdef _kusanya kusanya`;
}
