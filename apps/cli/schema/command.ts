import type { Command } from 'commander'
import { exitWith } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat schema` is written. */
export function addSchema(plat: Command): void {
  plat
    .command('schema')
    .argument('<kind>', 'a kind such as Agent, or gateway for gateway.json')
    .summary('print the JSON Schema of a resource or of gateway.json')
    .description(
      'Prints the JSON Schema of a kind, or of the gateway.json beside resources/, for editors and other tools.\n' +
        'plat up writes the same schemas into .plat/schemas/.',
    )
    .action(async (kind: string) => {
      const { printSchema } = await import('./schema.ts')
      await exitWith(printSchema(kind, terminal))
    })
}
