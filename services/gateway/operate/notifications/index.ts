import type { Clock, Ids, PoolObservers } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Ledgers, Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { FastifyInstance } from 'fastify'
import type { Decider } from './callbacks/routes.ts'
import type { NotifierConfig } from './config.ts'
import type { ApprovalView } from './notice.ts'

export interface NotificationsOptions {
  readonly config: {
    readonly consoleURL: string
    readonly notifiers: readonly NotifierConfig[]
    readonly notifyOutboxPath: string
  }
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly extraCA: string | null
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly pools?: PoolObservers<'notifications' | 'callback_marks'>
}

/** Approvals as the admin API shows them; null: there is none of this id. */
export type ApprovalOf = (id: string) => ApprovalView | null

/** Telling people of approvals, budgets, revocations, pins and the ledger (docs/spec/gateway.md, `notifiers`). Nothing waits for it. */
export interface Notifications {
  /** Something was recorded that somebody may want to know of. */
  record(rec: Rec): void
  /** Begins to tell; `recorded`: what the ledger had of it at start. */
  begin(approvalOf: ApprovalOf, recorded: readonly Rec[]): void
  /** The ledger cannot be written. */
  auditUnavailable(reason: string): void
  /** Mounts the callbacks. */
  pages(app: FastifyInstance, decider: Decider): void
  close(): Promise<void>
}

const OFF: Notifications = {
  record() {},
  begin() {},
  auditUnavailable() {},
  pages() {},
  close: () => Promise.resolve(),
}

/** Notifications, where there are notifiers. Rejects when the outbox cannot be read. */
export async function createNotifications(options: NotificationsOptions): Promise<Notifications> {
  if (options.config.notifiers.length === 0) return OFF
  const { openNotifications } = await import('./open.ts')
  return openNotifications(options)
}

/** Ledgers whose records are told of, once they are durable, and also where that failed: people want to know either way. */
export function listened(ledgers: Ledgers, notifications: Pick<Notifications, 'record'>): Ledgers {
  if (notifications === OFF) return ledgers
  return {
    of(tenant) {
      const ledger = ledgers.of(tenant)
      return {
        append(rec) {
          const appended = ledger.append(rec)
          const tell = () => notifications.record(rec)
          appended.then(tell, tell)
          return appended
        },
        enter: (rec, waiter) => ledger.enter(rec, waiter),
        head: () => ledger.head(),
        get health() {
          return ledger.health
        },
        close: () => ledger.close(),
      }
    },
  }
}
