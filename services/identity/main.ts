import { parseFlags, settingsOf } from '@plat/config'
import { reasonOf, systemClock, systemIds } from '@plat/core'
import { createDialer } from '@plat/http'
import {
  createLog,
  giveBackStartMemoryWhenIdle,
  onShutdown,
  printUsage,
  printVersion,
  refuseStart,
} from '@plat/process'
import { openCluster } from './bootstrap/cluster.ts'
import { cloudProviders } from './exchange/providers/clouds.ts'
import { flagProblems, identityFlags, settingFlags } from './flags.ts'
import { createChecks } from './proof/checks.ts'
import { type Identity, startIdentity } from './start.ts'
import { type OpenState, openState } from './state/open.ts'

/** Runs the broker until it is signalled to stop. Resolves with the exit status: 0, 1 for an invalid configuration, 2 for invalid usage. */
export async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseFlags(identityFlags, argv, 'plat-identity')
  if (!parsed.ok) return printUsage(parsed)
  if (parsed.values.version) return printVersion('identity')
  const problems = flagProblems(parsed.values)
  if (problems.length > 0) return refuseStart(problems)
  const log = createLog({ service: 'plat-identity' })
  const stopped = Promise.withResolvers<number>()
  let identity: Identity | null = null
  const clock = systemClock
  const ids = systemIds(clock)
  const dialer = createDialer({ clock, log })
  let opened: OpenState | null = null
  onShutdown(async (why) => {
    log.info({ why }, 'draining')
    await identity?.drain()
    await dialer.close()
    await opened?.close()
    stopped.resolve(0)
  })
  try {
    opened = await openState(parsed.values['state-dsn-file'], { clock, ids, log })
    const { state } = opened
    identity = await startIdentity({
      ...settingsOf(settingFlags, parsed.values),
      providers: (federation) => (federation === null ? [] : cloudProviders({ federation, dialer, clock })),
      checks: await createChecks(parsed.values, { dialer, clock, log, firstUse: state.firstUse }),
      ...(parsed.values['bootstrap-listen'] !== 'off' && {
        cluster: await openCluster(parsed.values, { dialer, clock, log }),
      }),
      env: process.env,
      clock,
      ids,
      state,
      log,
    })
  } catch (error) {
    await opened?.close()
    return refuseStart([reasonOf(error)])
  }
  giveBackStartMemoryWhenIdle({ clock: systemClock })
  return stopped.promise
}
