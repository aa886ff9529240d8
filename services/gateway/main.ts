import { type FlagTable, formatProblem, parseFlags } from '@plat/config'
import { buildInfo, systemClock, systemIds } from '@plat/core'
import {
  createLog,
  giveBackStartMemoryWhenIdle,
  onShutdown,
  printUsage,
  printVersion,
  refuseStart,
} from '@plat/process'
import { loadGatewayConfig } from './config.ts'
import { checkFiles } from './config-files.ts'
import { startGateway } from './gateway.ts'

/** The flags of docs/spec/gateway.md, "Loading rules". */
const flags = {
  config: {
    type: 'string',
    default: '',
    help: 'path of gateway.json (default $PLAT_GATEWAY_CONFIG, then /etc/plat/gateway.json)',
  },
  listen: { type: 'string', default: '', help: 'replaces "listen" of the file, such as 127.0.0.1:8080' },
  'check-config': { type: 'bool', default: false, help: 'check the file with every rule, start nothing' },
  'verify-ledger': {
    type: 'bool',
    default: false,
    help: 'read and verify the whole ledger before serving, and rebuild from it what is saved (totals, recent records)',
  },
  version: { type: 'bool', default: false, help: 'print the version and exit' },
} as const satisfies FlagTable

/** `plat-gateway`: flags, configuration, compose, listen, drain. Answers the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseFlags(flags, argv, 'plat-gateway')
  if (!parsed.ok) return printUsage(parsed)
  const { values } = parsed
  if (values.version) return printVersion('gateway')
  const loaded = loadGatewayConfig({ env: process.env, flags: { config: values.config, listen: values.listen } })
  if (!loaded.ok) return refuseStart(loaded.problems.map(formatProblem))
  for (const warning of loaded.warnings) console.error(formatProblem(warning))
  if (values['check-config']) {
    for (const warning of checkFiles(loaded.config, process.env)) console.error(formatProblem(warning))
    console.log(`config OK: ${loaded.path}`)
    return 0
  }
  const log = createLog({ service: 'gateway', level: loaded.config.logLevel })
  const gateway = await startGateway({
    config: loaded.config,
    env: process.env,
    build: buildInfo('gateway'),
    clock: systemClock,
    ids: systemIds(systemClock),
    log,
    verifyLedger: values['verify-ledger'],
    consoleAssets: async () => (await import('@plat/console')).consoleAssets(),
  })
  return new Promise((resolve) => {
    onShutdown(async () => {
      await gateway.drain()
      resolve(0)
    })
    giveBackStartMemoryWhenIdle({ clock: systemClock })
  })
}
