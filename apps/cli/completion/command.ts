import { Argument, type Command } from 'commander'
import { terminal } from '../shared/output.ts'
import { SHELLS, type Shell } from './scripts.ts'

/** How `plat completion` is written. */
export function addCompletion(plat: Command): void {
  plat
    .command('completion')
    .addArgument(new Argument('<shell>', 'your shell').choices([...SHELLS]))
    .summary('print the completion script of a shell')
    .description(
      'Prints a script that completes commands and flags. bash: source <(plat completion bash); ' +
        'zsh: source <(plat completion zsh); fish: plat completion fish | source',
    )
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./scripts.ts')
      terminal.out(completionScript(shell, plat).trimEnd())
    })
}
