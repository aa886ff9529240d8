import type { JournalSpec } from '@plat/state'
import { accountsJournal } from './authn/token-vault/store/open-accounts.ts'
import { memoryJournal } from './builtin/memory/events.ts'
import { bindingJournal } from './call/bindings/events.ts'
import type { GatewayConfig } from './config.ts'
import { grantsJournal } from './decide/approvals/grants/events.ts'
import { approvalsJournal } from './decide/approvals/store/events.ts'
import { argumentsJournal } from './decide/approvals/store/open-arguments.ts'
import { pinsJournal } from './decide/pins/events.ts'
import { revocationsJournal } from './decide/revocations/format.ts'
import { taintsJournal } from './decide/taint/events.ts'
import { outboxJournal } from './operate/notifications/open.ts'
import { usageJournal } from './operate/sandbox-usage/events.ts'
import { batchesJournal } from './targets/models/batches/events.ts'

type FileJournal = Pick<JournalSpec<unknown>, 'name' | 'path' | 'decode'>

/** Every journal of a gateway that stores its state in files. An empty path: it is in memory. */
export function stateJournals(config: GatewayConfig): readonly FileJournal[] {
  return [
    approvalsJournal(config),
    argumentsJournal(config),
    grantsJournal(config),
    revocationsJournal(config),
    taintsJournal(config),
    pinsJournal(config),
    bindingJournal(config, 'bindings'),
    bindingJournal(config, 'tasks'),
    bindingJournal(config, 'responses'),
    bindingJournal(config, 'files'),
    batchesJournal(config),
    memoryJournal(config),
    usageJournal(config),
    accountsJournal(config),
    outboxJournal(config),
  ]
}
