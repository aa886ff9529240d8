import { parseFlags } from '@plat/config'
import { buildInfo, reasonOf, systemClock, systemIds } from '@plat/core'
import { createDialer } from '@plat/http'
import { createLog, giveBackStartMemory, onShutdown } from '@plat/process'
import { attestationFlags, settingProblems, settingsOf } from './flags.ts'
import { type Attestation, startAttestation } from './start.ts'

/** Runs the service until it is told to stop. The answer is the exit status: 0, 1 for a bad configuration, 2 for bad usage. */
export async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseFlags(attestationFlags, argv, 'plat-attestation')
  if (!parsed.ok) {
    if (parsed.message !== '') process.stderr.write(`${parsed.message}\n`)
    process.stderr.write(parsed.usage)
    return parsed.help ? 0 : 2
  }
  if (parsed.values.version) return printVersion()
  const settings = settingsOf(parsed.values)
  const problems = settingProblems(settings)
  if (problems.length > 0) return refuse(problems)
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
    return refuse([reasonOf(error)])
  }
  giveBackStartMemory()
  return stopped.promise
}

function refuse(lines: readonly string[]): number {
  process.stderr.write(lines.map((line) => `${line}\n`).join(''))
  return 1
}

function printVersion(): number {
  const { component, version, commit, buildDate, goVersion, platform } = buildInfo('attestation')
  process.stdout.write(
    `plat-${component} ${version} (commit ${commit}, built ${buildDate}, ${goVersion}, ${platform})\n`,
  )
  return 0
}
