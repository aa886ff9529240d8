import { createAuthenticator } from '../authn/identity/index.ts'
import { deny } from '../call/index.ts'
import { createRevocations } from '../decide/revocations/index.ts'
import { createEvents } from '../operate/events/index.ts'
import { createNotifications, listened } from '../operate/notifications/index.ts'
import type { Shared } from './shared.ts'

export type Callers = Awaited<ReturnType<typeof startCallers>>

const MOVED = deny('revoked', 'the namespace of the caller belongs to another tenant now', { revoked: 'tenant' })

/** Authentication and revocations. Records appended through these `ledgers` reach the notifiers and the events as well. */
export async function startCallers(shared: Shared) {
  const { config, audit, tenancy, live, keep } = shared
  const { identity, dpop } = config
  const notifications = keep(await createNotifications(shared))
  audit.onUnavailable((reason) => notifications.auditUnavailable(reason))
  const events = keep(createEvents({ ...shared, problems: () => shared.readiness.reasons() }))
  const ledgers = listened(listened(audit.ledgers, notifications), events)
  const keepsTokens = config.tokenExchangeURL !== ''
  const sharedProofs = shared.journals.shared ? shared.once : null
  const authenticator = keep(
    await createAuthenticator({ ...shared, sharedProofs, tenants: tenancy, config: identity, dpop, keepsTokens }),
  )
  const forgetTokens = () => authenticator.clear()
  const revocations = keep(await createRevocations({ ...shared, forgetTokens, ledgers }))
  shared.readiness.add('revocations', () => revocations.isKnown())
  revocations.followChanges((change, { id, target, mode, reason }) => {
    const namespace = (target.session ?? target.agent ?? target.namespace)?.split('/', 1)[0] ?? null
    events.add({ type: `revocation.${change}`, namespace, data: { id, target, mode, reason } })
  })
  tenancy.onChange(() => {
    forgetTokens()
    // Missed events of a namespace are for those who could see it when they happened.
    events.forget()
    live.cut((who) => (tenancy.crossing(who) === null ? null : MOVED))
  })
  return { notifications, events, ledgers, authenticator, revocations }
}
