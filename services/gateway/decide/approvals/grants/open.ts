import { type Clock, reasonOf } from '@plat/core'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Journals } from '@plat/state'
import type { Approvals } from '../approvals.ts'
import type { ApprovalsOptions } from '../options.ts'
import { type GrantEvent, grantsJournal } from './events.ts'
import { Repeats } from './repeats.ts'
import { createGrantRoutes, type LabelsOf } from './routes.ts'
import { type GrantEntry, GrantStore } from './store.ts'

/** Interval at which grants of ended sessions are ended, in milliseconds. */
const SWEEP_EVERY_MS = 1_000

export interface GrantsParts extends Pick<ApprovalsOptions, 'approvalRules' | 'mayApprove' | 'hasEnded'> {
  readonly config: { readonly approvalStorePath: string }
  readonly journals: Journals
  readonly ledgers: Ledgers
  readonly clock: Clock
  readonly log: Log
  /** When absent, no session has labels. */
  readonly labelsOf?: LabelsOf | undefined
  /** Called with each change of a grant, of this replica and of others. */
  readonly onGrant?: ((event: GrantEvent['t'], entry: GrantEntry) => void) | undefined
}

/** Opens approvals for sessions, in a journal beside that of approvals. Rejects if it cannot be read. */
export async function openGrants(parts: GrantsParts, approvals: Approvals) {
  const { config, journals, ledgers, clock, log, onGrant, labelsOf = () => [] } = parts
  const journal = await journals.open(grantsJournal(config))
  const onFault = (error: unknown) =>
    log.error({ error: reasonOf(error) }, 'an approval for a session could not be stored')
  const store = await GrantStore.open({ journal, onFault, onChange: (event, entry) => onGrant?.(event, entry) })
  const record: ConstructorParameters<typeof Repeats>[0]['record'] = (rec, tenant) => ledgers.of(tenant).append(rec)
  const repeats = new Repeats({ ...parts, store, approvals, record, onFault })
  const stopSweep = clock.every(SWEEP_EVERY_MS, () => void repeats.sweep())
  return {
    repeats,
    routes: createGrantRoutes({ store, repeats, labelsOf, onFault }),
    async close() {
      stopSweep()
      store.close()
      await journal.close()
    },
  }
}

/** The event of a change for readers of `GET /v1/events`. */
export function grantEvent(change: GrantEvent['t'], { id, grant, state }: GrantEntry) {
  const { namespace, agent, session, server, tool } = grant
  return {
    type: `approval.session_${change}`,
    namespace,
    data: { approval: id, state, namespace, agent, session, server, tool },
  }
}
