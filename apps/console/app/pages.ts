import type { ComponentType } from 'preact'
import type { Session } from '../api/client.ts'
import { AccessPage } from '../pages/access/access.tsx'
import { ApprovalPage } from '../pages/approvals/approval.tsx'
import { ApprovalsPage } from '../pages/approvals/approvals.tsx'
import { CostsPage } from '../pages/costs/costs.tsx'
import { LedgerPage } from '../pages/ledger/ledger.tsx'
import { RecordPage } from '../pages/ledger/record.tsx'
import { NowPage } from '../pages/now/now.tsx'
import { PolicyPage } from '../pages/policy/policy.tsx'
import { ServerPage } from '../pages/servers/server.tsx'
import { ServersPage } from '../pages/servers/servers.tsx'
import { SessionPage } from '../pages/sessions/session.tsx'
import { SessionsPage } from '../pages/sessions/sessions.tsx'
import { hasRole, type Role } from './session.ts'

/** A page of the console: a folder in `pages/`. */
export interface Page {
  /** The first segment of its address. */
  readonly name: string
  readonly title: string
  /** Without this role the gateway refuses all of it. */
  readonly role: Role
  readonly list: ComponentType<{ readonly query: URLSearchParams }>
  /** The page of one object. */
  readonly one: ComponentType<{ readonly id: string }> | null
}

/** All pages, in the order of the navigation. */
export const PAGES: readonly Page[] = [
  { name: 'now', title: 'Now', role: 'viewer', list: NowPage, one: null },
  { name: 'approvals', title: 'Approvals', role: 'viewer', list: ApprovalsPage, one: ApprovalPage },
  { name: 'sessions', title: 'Sessions', role: 'viewer', list: SessionsPage, one: SessionPage },
  { name: 'ledger', title: 'Ledger', role: 'auditor', list: LedgerPage, one: RecordPage },
  { name: 'costs', title: 'Costs', role: 'viewer', list: CostsPage, one: null },
  { name: 'policy', title: 'Policy', role: 'auditor', list: PolicyPage, one: null },
  { name: 'servers', title: 'Servers', role: 'viewer', list: ServersPage, one: ServerPage },
  { name: 'access', title: 'Access', role: 'viewer', list: AccessPage, one: null },
]

/** The pages that a person may open. */
export function pagesOf(session: Session): readonly Page[] {
  return PAGES.filter(({ role }) => hasRole(session, role))
}
