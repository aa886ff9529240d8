import { type Command, InvalidArgumentError, Option } from 'commander'
import { dir, exitWith, format } from '../shared/options.ts'
import { terminal } from '../shared/output.ts'

/** How `plat login`, `plat logout`, `plat whoami` and `plat console` are written. */
export function addLogin(plat: Command): void {
  const target = (command: Command) =>
    command
      .addOption(dir())
      .option('--context <name>', 'a gateway of plat context list')
      .option('--admin-url <url>', 'the admin API of a gateway')
  target(plat.command('login'))
    .summary('log in as a person, to approve and revoke under your own name')
    .description(
      'Logs in at the identity provider of a gateway (adminAuth.oidc), with a browser of this machine, or with a code on another device. Commands ' +
        'then use this login instead of the static token. Tokens are stored in logins.json of your configuration folder, readable by you only.',
    )
    .option('--device', 'log in on another device, with a code')
    .addOption(
      new Option('--port <port>', 'port of the redirect, for providers that compare it')
        .argParser(portIn)
        .default(0, 'any'),
    )
    .action(async (options) => {
      const { login } = await import('./login.ts')
      await exitWith(login(options, terminal))
    })
  target(plat.command('logout'))
    .summary('end a login, and revoke its tokens')
    .action(async (options) => {
      const { logout } = await import('./logout.ts')
      await exitWith(logout(options, terminal))
    })
  plat
    .command('whoami')
    .summary('show the name and roles that commands have at the gateway')
    .addOption(dir())
    .addOption(format())
    .action(async (options) => {
      const { whoami } = await import('./whoami.ts')
      await exitWith(whoami(options, terminal))
    })
  plat
    .command('console')
    .summary('open the console in a browser')
    .description(
      'Opens the console of a gateway. With the static token, such as that of plat up, a link logs your browser in: it can be used once, within a ' +
        'minute. With a login of yours the console logs you in at the identity provider.',
    )
    .addOption(dir())
    .option('--no-open', 'print the address, open nothing')
    .action(async (options) => {
      const { openConsole } = await import('../console/console.ts')
      await exitWith(openConsole(options, terminal))
    })
}

function portIn(text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new InvalidArgumentError('write a number from 0 to 65535.')
}
