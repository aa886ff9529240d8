import type { AdminRoutes } from '../../admin/index.ts'
import { findings, idleAccepts } from './checks.ts'
import type { Posture } from './posture.ts'

/** `GET /v1/posture`: the risks that the gateway logged at startup. The table of checks is short, so it is one page. */
export function createPostureRoutes(config: Posture): AdminRoutes {
  const items = findings(config).map(({ id, risk, fix }) => ({ id, risk, fix }))
  const answer = { items, idleAccepts: idleAccepts(config), nextCursor: null }
  return { mount: (context) => context.on('GET /v1/posture', async () => answer) }
}
