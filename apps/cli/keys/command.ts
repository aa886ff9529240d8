import type { Command } from 'commander'
import { exitWith, format } from '../shared/options.ts'
import { type Format, terminal } from '../shared/output.ts'

/** How `plat keys` is written. */
export function addKeys(plat: Command): void {
  plat
    .command('keys')
    .description('signing keys')
    .command('generate')
    .argument('[dir]', 'where key.pem and pub.pem go', '.')
    .summary('create an Ed25519 key pair')
    .addOption(format())
    .action(async (folder: string, options: { output: Format }) => {
      const { keysGenerate } = await import('./generate.ts')
      await exitWith(keysGenerate({ dir: folder, format: options.output }, terminal))
    })
}
