import { createPreviewRoutes } from '../decide/revocations/index.ts'
import type { Features } from './features.ts'
import type { Shared } from './shared.ts'

/** Preview of revocations: calls in progress, and sessions with their pending approvals. */
export function previewOf(
  { live, clock, tenancy }: Pick<Shared, 'live' | 'clock' | 'tenancy'>,
  { sessions, authenticator, approvals }: Pick<Features, 'sessions' | 'authenticator' | 'approvals'>,
) {
  return createPreviewRoutes({
    live,
    clock,
    *sessions() {
      for (const one of sessions.listed())
        yield tenancy.isOn ? one : { ...one, tenant: authenticator.tenantOf(one.namespace) }
    },
    pendingOf: (session) => approvals.pendingOf(session),
  })
}
