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
import { attestationFlags, settingProblems } from './flags.ts'
import { type Attestation, startAttestation } from './start.ts'

/** Runs the service until it is signalled to stop. Resolves with the exit status: 0, 1 for an invalid configuration, 2 for invalid usage. */
export async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseFlags(attestationFlags, argv, 'plat-attestation')
  if (!parsed.ok) return printUsage(parsed)
  if (parsed.values.version) return printVersion('attestation')
  const settings = settingsOf(attestationFlags, parsed.values)
  const problems = settingProblems(settings)
  if (problems.length > 0) return refuseStart(problems)
  const log = createLog({ service: 'plat-attestation' })
  const clock = systemClock
  const dialer = createDialer({ clock, log })
  const stopped = Promise.withResolvers<number>()
  let attestation: Attestation | null = null
  onShutdown(async (why) => {
    log.info({ why }, 'draining')
    await attestation?.drain()
    dialer.close()
    stopped.resolve(0)
  })
  try {
    attestation = await startAttestation({ ...settings, env: process.env, dialer, clock, ids: systemIds(clock), log })
  } catch (error) {
    dialer.close()
    return refuseStart([reasonOf(error)])
  }
  giveBackStartMemoryWhenIdle({ clock: systemClock })
  return stopped.promise
}
