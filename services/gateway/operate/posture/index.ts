import type { Log } from '@plat/process'
import { findings } from './checks.ts'
import type { Posture } from './posture.ts'

export { type Check, checks, findings, idleAccepts } from './checks.ts'
export type { Posture } from './posture.ts'

/** Says at start what a valid configuration risks: one line a check, with its id, unless `posture.accept` names it. */
export function tellPosture(config: Posture, log: Pick<Log, 'warn'>): void {
  for (const { id, risk, fix } of findings(config)) log.warn({ check: id, fix }, `posture: ${risk}`)
}
