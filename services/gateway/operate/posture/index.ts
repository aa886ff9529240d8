import type { Log } from '@plat/process'
import { findings } from './checks.ts'
import type { Posture } from './posture.ts'

export { type Check, checks, findings, idleAccepts } from './checks.ts'
export type { Posture } from './posture.ts'

/** Logs the risks of a valid configuration at startup: one line per check that `posture.accept` does not name. */
export function logPosture(config: Posture, log: Pick<Log, 'warn'>): void {
  for (const { id, risk, fix } of findings(config)) log.warn({ check: id, fix }, `posture: ${risk}`)
}
