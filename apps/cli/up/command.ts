import { type Command, Option } from 'commander'
import { exitWith } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat up` is written. */
export function addUp(plat: Command): void {
  plat
    .command('up')
    .argument('[dir]', 'holds resources/ and, if you like, gateway.json', '.')
    .summary('start the identity broker and the gateway on the files of a directory')
    .description(
      'Starts the identity broker, the gateway and the loop that renders resources, in one process.\n' +
        'Resources are read from <dir>/resources/<plural>/<namespace>/<name>.yaml and again whenever they change; ' +
        'state, keys and the ledger are stored in <dir>/.plat/. Stop with Ctrl-C; the next start uses them again.',
    )
    .option('--listen <address>', 'where the gateway listens', '127.0.0.1:8080')
    .option('--identity-listen <address>', 'where the identity broker listens', '127.0.0.1:8081')
    .option(
      '--resources-listen <address>',
      'where kubectl finds the resources; .plat/kubeconfig names it',
      '127.0.0.1:0',
    )
    .addOption(
      new Option('--log <where>', '.plat/logs/<service>.jsonl, or JSON lines on stdout')
        .choices(['file', 'json'])
        .default('file'),
    )
    .action(async (folder: string, options) => {
      const { up } = await import('./foreground.ts')
      await exitWith(up({ dir: folder, ...options }, terminal))
    })
}
