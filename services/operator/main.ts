import { readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { parseFlags, readSecret } from '@plat/config'
import { reasonOf, systemClock, systemIds } from '@plat/core'
import { createDialer } from '@plat/http'
import { clusterAccess, kubeconfigAccess } from '@plat/kubernetes'
import {
  createLog,
  giveBackStartMemoryWhenIdle,
  onShutdown,
  printUsage,
  printVersion,
  refuseStart,
} from '@plat/process'
import { flagProblems, type OperatorFlags, operatorFlags } from './flags.ts'
import { type Operator, type ServiceCredentials, startOperator } from './start.ts'

/** Runs the operator until a stop signal. Returns the exit status: 0, 1 for an invalid configuration, 2 for wrong usage. */
export async function main(argv: readonly string[]): Promise<number> {
  const parsed = parseFlags(operatorFlags, argv, 'plat-operator')
  if (!parsed.ok) return printUsage(parsed)
  if (parsed.values.version) return printVersion('operator')
  const problems = flagProblems(parsed.values)
  if (problems.length > 0) return refuseStart(problems)
  const log = createLog({ service: 'plat-operator' })
  const clock = systemClock
  const dialer = createDialer({ clock, log })
  const stopped = Promise.withResolvers<number>()
  let operator: Operator | null = null
  onShutdown(async (why) => {
    log.info({ why }, 'draining')
    await operator?.drain()
    dialer.close()
    stopped.resolve(0)
  })
  try {
    const access = await accessOf(parsed.values)
    const broker = await serviceOf(parsed.values, 'identity', 'PLAT_BROKER_TOKEN')
    const attestation = await serviceOf(parsed.values, 'attestation', 'PLAT_ATTESTATION_TOKEN')
    const parts = { access, broker, attestation, dialer, clock, ids: systemIds(clock), log, host: hostname() }
    operator = await startOperator({ flags: parsed.values, ...parts })
  } catch (error) {
    dialer.close()
    return refuseStart([reasonOf(error)])
  }
  giveBackStartMemoryWhenIdle({ clock: systemClock })
  return stopped.promise
}

function accessOf({ kubeconfig, context }: OperatorFlags) {
  return kubeconfig === '' ? clusterAccess({ env: process.env }) : kubeconfigAccess(kubeconfig, context)
}

/** Credentials of a service that the flags name, or null. Rejects with one line if there is no token for it. */
async function serviceOf(
  flags: OperatorFlags,
  name: 'identity' | 'attestation',
  secret: string,
): Promise<ServiceCredentials | null> {
  if (flags[`${name}-url`] === '') return null
  const token = readSecret(process.env, secret)
  if (token === null) throw new Error(`-${name}-url: needs ${secret} or ${secret}_FILE`)
  const file = flags[`${name}-ca-file`]
  return { token, caPEM: file === '' ? null : await readFile(file, 'utf8') }
}
