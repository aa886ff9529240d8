import type { Command } from 'commander'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** One place of the command line: the words before it, and those that can follow. */
interface Place {
  /** `approvals`, `approvals list`, or empty for `plat` itself. */
  readonly path: string
  readonly words: readonly { readonly word: string; readonly about: string }[]
}

/** Writes the completion script of a shell from the table of commands. */
export function completionScript(shell: Shell, plat: Command): string {
  const places = placesOf(plat, [])
  if (shell === 'fish') return fish(places)
  return shell === 'bash' ? bash(places) : `#compdef plat\nautoload -U +X bashcompinit && bashcompinit\n${bash(places)}`
}

function placesOf(command: Command, path: readonly string[]): readonly Place[] {
  const inner = command.commands.map((one) => ({ word: one.name(), about: one.summary() || one.description() }))
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? [])
  const flags = command.options.map(({ long, description }) => ({
    word: (long ?? '').replace(/^--/, '-'),
    about: description,
  }))
  const words = [...inner, ...choices.map((word) => ({ word, about: '' })), ...flags]
  return [{ path: path.join(' '), words }, ...command.commands.flatMap((one) => placesOf(one, [...path, one.name()]))]
}

/** Words become shell code, so they must need no quoting. */
function safe(word: string): string {
  if (!/^[A-Za-z0-9.-]+$/.test(word)) throw new Error(`${word} cannot be completed`)
  return word
}

function bash(places: readonly Place[]): string {
  const cases = places.map(
    ({ path, words }) => `    '${path}') words='${words.map(({ word }) => safe(word)).join(' ')}' ;;`,
  )
  const paths = places.map(({ path }) => `'${path}'`)
  return `_plat() {
  local current path next words word
  current=\${COMP_WORDS[COMP_CWORD]}
  path=
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*) continue ;; esac
    next="\${path:+$path }$word"
    case $next in
      ${paths.slice(1).join('|')}) path=$next ;;
      *) break ;;
    esac
  done
  words=
  case $path in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ \${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -F _plat plat
`
}

function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, words }) => {
    const seen = path.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`)
    const test = path === '' ? '__fish_use_subcommand' : seen.join('; and ')
    return words.map(({ word, about }) => {
      const name = word.startsWith('-') ? `-o ${safe(word.slice(1))}` : `-f -a ${safe(word)}`
      return `complete -c plat -n '${test}' ${name} -d '${about.replace(/['\\]/g, '')}'`
    })
  })
  return `${lines.join('\n')}\n`
}
