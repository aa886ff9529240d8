import { type Command, Option } from 'commander'
import { dir, exitWith } from '../shared/options.ts'
import { type Format, formats, terminal } from '../shared/output.ts'

export function addToken(plat: Command): void {
  plat
    .command('token')
    .description('session tokens')
    .command('mint')
    .argument('<agent>', 'name, or namespace/name')
    .summary('mint a session token for manual tests')
    .description('Mints a session token with the scopes of the agent at the broker of the running plat.')
    .addOption(dir())
    .option('--session <id>', 'session id', 'by-hand')
    .option('--user <name>', 'the user it acts for (default: you)')
    .addOption(new Option('--scope <scope...>', 'such as tools:notes').default([], 'those of the agent'))
    .option(
      '--ttl <duration>',
      'lifetime, such as 15m; gateways accept a token for identity.leewaySeconds longer (30 s)',
    )
    .addOption(
      new Option('-o, --output <format>', 'how to print: for people (table), for programs, or the token alone')
        .choices([...formats, 'token'])
        .default('table'),
    )
    .action(
      async (agent: string, { output, ...options }: { output: Format | 'token'; session: string; scope: string[] }) => {
        const { tokenMint } = await import('./mint.ts')
        await exitWith(tokenMint({ ...options, agent, format: output }, terminal))
      },
    )
}
