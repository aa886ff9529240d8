import { reasonOf } from '@plat/core'
import type { Ledgers, Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import { AdminError } from '../../admin/index.ts'
import type { ViewMode } from './endings.ts'

/** A session whose sandbox is viewed. */
export interface ViewedSession {
  readonly tenant: string
  readonly namespace: string
  readonly agent: string
  readonly session: string
  readonly user: string | null
}

/** Names of one view. */
export interface ViewName {
  /** UUIDv7 of the view. */
  readonly id: string
  readonly by: string
  readonly requestId: string
  readonly mode: ViewMode | 'page'
  readonly of: ViewedSession
}

export interface ViewRecordsOptions {
  readonly ledgers: Ledgers
  /** `auditFailurePolicy` is `closed`. */
  readonly recordsFirst: boolean
  readonly log: Log
}

/** Records of views, in the ledger of the session's tenant: they are part of its timeline and of evidence about it. */
export class ViewRecords {
  readonly #options: ViewRecordsOptions

  constructor(options: ViewRecordsOptions) {
    this.#options = options
  }

  /** Called before anything is shown. Throws `audit_unavailable` where records must come first and this one is not durable. */
  async begin(name: ViewName, more: Omit<Rec, 'kind'> = {}): Promise<void> {
    try {
      await this.#append(name, 'view.begin', more)
    } catch (error) {
      this.#options.log.error({ view: name.id, error: reasonOf(error) }, 'the begin of a view could not be recorded')
      if (!this.#options.recordsFirst) return
      throw new AdminError('audit_unavailable', 'nothing is shown: the audit ledger cannot be written')
    }
  }

  /** Never rejects. */
  async end(name: ViewName, result: Omit<Rec, 'kind'>): Promise<void> {
    await this.#append(name, 'view.end', result).catch((error: unknown) => {
      console.error(error)
      this.#options.log.error({ view: name.id, error: reasonOf(error) }, 'the end of a view could not be recorded')
    })
  }

  async #append({ id, by, requestId, mode, of }: ViewName, action: string, more: Omit<Rec, 'kind'>): Promise<void> {
    const { tenant, namespace, agent, session } = of
    const names = { namespace, agent, session, view: id, mode }
    await this.#options.ledgers.of(tenant).append({ kind: 'admin', action, by, requestId, ...names, ...more })
  }
}
