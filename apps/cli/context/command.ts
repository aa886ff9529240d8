import { type Command, Option } from 'commander'
import { LOGIN_FLOWS } from '../shared/login-flows.ts'
import { exitWith, wideFormat } from '../shared/options.ts'
import { terminal, type WideFormat } from '../shared/output.ts'

/** How `plat context` is written. */
export function addContext(plat: Command): void {
  const context = plat.command('context').description('gateways by name')
  const load = () => import('./context.ts')
  context
    .command('list')
    .summary('list the gateways that have names')
    .addOption(wideFormat())
    .action(async ({ output }: { output: WideFormat }) => exitWith((await load()).contextList(output, terminal)))
  context
    .command('use')
    .argument('[name]', 'as context list shows it; without it the gateway of the directory')
    .summary('talk to this gateway from now on')
    .action(async (name: string | undefined) => exitWith((await load()).contextUse(name, terminal)))
  context
    .command('set')
    .argument('<name>', 'a new or an existing name')
    .summary('give a gateway a name')
    .description(
      'Stores the directory of a plat up, or addresses with the way to log in or the files of their tokens, in contexts.json of the user. Tokens are read from their ' +
        'files whenever a command needs them.',
    )
    .option('--dir <dir>', 'the directory of a plat up')
    .option('--admin-url <url>', 'address of the admin API')
    .option('--gateway-url <url>', 'address of the gateway, if another one')
    .option('--identity-url <url>', 'address of the identity broker, for plat token mint and plat run')
    .option('--token-file <file>', 'file with the token of the admin API')
    .addOption(new Option('--login <how>', 'people log in with plat login: how').choices([...LOGIN_FLOWS]))
    .option('--broker-token-file <file>', 'file with the token of the broker')
    .action(async (name: string, { adminUrl, gatewayUrl, identityUrl, ...files }) => {
      const urls = { adminURL: adminUrl, gatewayURL: gatewayUrl, identityURL: identityUrl }
      const given = Object.entries({ ...urls, ...files }).filter(([, value]) => value !== undefined)
      await exitWith((await load()).contextSet(name, Object.fromEntries(given), terminal))
    })
}
